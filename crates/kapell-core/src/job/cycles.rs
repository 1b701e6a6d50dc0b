//! Jobs that would kick each other off without end.

use std::collections::{BTreeMap, VecDeque};

use crate::board::JobId;

/// The shortest way from a job back to itself, the job first and last, if there is one.
///
/// `kicks` tells which jobs a job kicks off; of one that is not there, none.
pub fn cycle(job: &JobId, kicks: impl Fn(&JobId) -> Vec<JobId>) -> Option<Vec<JobId>> {
    let mut from: BTreeMap<JobId, JobId> = BTreeMap::new();
    let mut next = VecDeque::from([job.clone()]);
    while let Some(here) = next.pop_front() {
        for kicked in kicks(&here) {
            if kicked == *job {
                return Some(way(job, here, &from));
            }
            if !from.contains_key(&kicked) {
                from.insert(kicked.clone(), here.clone());
                next.push_back(kicked);
            }
        }
    }
    None
}

fn way(job: &JobId, last: JobId, from: &BTreeMap<JobId, JobId>) -> Vec<JobId> {
    let mut way = vec![job.clone()];
    let mut here = last;
    while here != *job {
        let before = from.get(&here).cloned().unwrap_or_else(|| job.clone());
        way.push(here);
        here = before;
    }
    way.push(job.clone());
    way.reverse();
    way
}

/// Says what is wrong with a job that is part of a cycle.
pub fn tell(cycle: &[JobId]) -> String {
    let names: Vec<String> = cycle.iter().map(|job| format!("`{job}`")).collect();
    format!(
        "constraints: kickOffJob goes in a circle: {}; take one of these kickOffJob actions out",
        names.join(" → ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(job: &str, edges: &[(&str, &str)]) -> String {
        let kicks = |from: &JobId| {
            let of = edges.iter().filter(|(one, _)| *one == from.as_str());
            of.map(|(_, to)| JobId::new(*to)).collect()
        };
        let found = cycle(&JobId::new(job), kicks);
        found.map_or_else(String::new, |way| {
            way.iter().map(JobId::as_str).collect::<Vec<_>>().join(" ")
        })
    }

    #[test]
    fn the_shortest_way_back_is_found() {
        assert_eq!(find("a", &[("a", "a")]), "a a");
        assert_eq!(find("a", &[("a", "b"), ("b", "a")]), "a b a");
        let long = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("a", "x"), ("x", "d")];
        assert_eq!(find("a", &long), "a x d a");
        assert_eq!(find("c", &long), "c d a b c");
    }

    #[test]
    fn what_does_not_lead_back_is_no_cycle_even_behind_one() {
        assert_eq!(find("a", &[("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]), "");
        assert_eq!(find("a", &[("a", "b"), ("b", "c"), ("c", "b")]), "");
        assert_eq!(find("a", &[]), "");
    }

    #[test]
    fn a_long_chain_is_walked_without_recursion() {
        let name = |at: usize| JobId::new(format!("j{at}"));
        let kicks = |job: &JobId| {
            let at: usize = job.as_str()[1..].parse().unwrap_or(0);
            vec![name((at + 1) % 50_000)]
        };
        assert_eq!(cycle(&name(0), kicks).map(|way| way.len()), Some(50_001));
    }

    #[test]
    fn it_is_said_what_to_do_about_it() {
        let way = ["a", "b", "a"].map(JobId::new);
        assert_eq!(
            tell(&way),
            "constraints: kickOffJob goes in a circle: `a` → `b` → `a`; take one of these kickOffJob actions out"
        );
    }
}
