use super::excuse::Excuse;
use super::imports::imports;
use super::lexer::{Views, is_word};
use super::problem::Problem;

/// Text that may not occur in some files.
#[derive(Debug, Clone, Copy)]
struct Ban {
    rule: &'static str,
    text: &'static str,
    place: Place,
    instead: &'static str,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    /// The code of `kapell-core`; its tests may read files.
    Core,
    /// Code anywhere.
    Code,
    /// Code and comments anywhere.
    Words,
    /// Code below a `tests` directory.
    Tests,
}

const CORE: &str = "crates/kapell-core/src/";

const fn ban(rule: &'static str, text: &'static str, place: Place, instead: &'static str) -> Ban {
    Ban { rule, text, place, instead }
}

const CLOCK: &str = "core is handed `now`";
const IO: &str = "core does no I/O";
const HASH: &str = "it is seeded at random: use a BTreeMap, a dense index or rustc-hash";
const PRINT: &str = "core returns what is to be said";
const SPAWN: &str = "use a JoinSet: no task outlives its owner";
const UNFINISHED: &str = "finish it or make it an error";
const WORDS: &str = "open an issue instead";
const SLEEP: &str = "wait for the event itself, or poll for it";

#[rustfmt::skip]
const BANS: &[Ban] = &[
    ban("clock",  "Instant::now",              Place::Core,  CLOCK),
    ban("clock",  "SystemTime::now",           Place::Core,  CLOCK),
    ban("io",     "std::fs",                   Place::Core,  IO),
    ban("io",     "std::net",                  Place::Core,  IO),
    ban("io",     "std::process",              Place::Core,  IO),
    ban("io",     "std::env",                  Place::Core,  IO),
    ban("io",     "std::thread",               Place::Core,  IO),
    ban("hash",   "HashMap::new",              Place::Core,  HASH),
    ban("hash",   "HashSet::new",              Place::Core,  HASH),
    ban("hash",   "std::collections::HashMap", Place::Core,  HASH),
    ban("hash",   "std::collections::HashSet", Place::Core,  HASH),
    ban("hash",   "RandomState",               Place::Core,  HASH),
    ban("print",  "println!",                  Place::Core,  PRINT),
    ban("print",  "eprintln!",                 Place::Core,  PRINT),
    ban("print",  "print!",                    Place::Core,  PRINT),
    ban("print",  "eprint!",                   Place::Core,  PRINT),
    ban("spawn",  "tokio::spawn",              Place::Code,  SPAWN),
    ban("spawn",  "tokio::task::spawn",        Place::Code,  SPAWN),
    ban("todo",   "todo!",                     Place::Code,  UNFINISHED),
    ban("todo",   "unimplemented!",            Place::Code,  UNFINISHED),
    ban("todo",   "dbg!",                      Place::Code,  UNFINISHED),
    ban("fixme",  "FIXME",                     Place::Words, WORDS),
    ban("fixme",  "XXX",                       Place::Words, WORDS),
    ban("ignore", "#[ignore",                  Place::Code,  "report a skip by name, see CONTRIBUTING.md"),
    ban("sleep",  "thread::sleep",             Place::Tests, SLEEP),
    ban("sleep",  "time::sleep",               Place::Tests, SLEEP),
];

impl Place {
    fn holds(self, file: &str) -> bool {
        match self {
            Self::Core => file.starts_with(CORE),
            Self::Code | Self::Words => true,
            Self::Tests => file.split('/').rev().skip(1).any(|part| part == "tests"),
        }
    }
}

pub(crate) fn check(file: &str, views: &Views) -> Vec<Problem> {
    let code: Vec<&str> = views.code.lines().collect();
    let comments: Vec<&str> = views.comments.lines().collect();
    let imports = imports(&views.code);
    let mut found = Vec::new();
    for ban in BANS.iter().filter(|ban| ban.place.holds(file)) {
        let mut lines: Vec<usize> = matches(&code, ban.text);
        lines.extend(
            imports.iter().filter(|each| occurs(&each.path, ban.text)).map(|each| each.line),
        );
        if matches!(ban.place, Place::Words) {
            lines.extend(matches(&comments, ban.text));
        }
        lines.sort_unstable();
        lines.dedup();
        for line in lines {
            let comment = comments.get(line - 1).copied().unwrap_or_default();
            if let Some(more) = Excuse::find(comment, ban.rule).complaint() {
                let text = format!("`{}` is banned here: {}{more}", ban.text, ban.instead);
                found.push(Problem::new(file, line, ban.rule, text));
            }
        }
    }
    found
}

fn matches(lines: &[&str], wanted: &str) -> Vec<usize> {
    lines.iter().zip(1..).filter(|(line, _)| occurs(line, wanted)).map(|(_, line)| line).collect()
}

/// Whether `wanted` stands in `text` and is not part of a longer word.
fn occurs(text: &str, wanted: &str) -> bool {
    text.match_indices(wanted).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + wanted.len()..].chars().next();
        let starts = !(wanted.starts_with(is_word) && before.is_some_and(is_word));
        let ends = !(wanted.ends_with(is_word) && after.is_some_and(is_word));
        starts && ends
    })
}

#[cfg(test)]
mod tests {
    use super::super::lexer::split;
    use super::*;

    fn rules(file: &str, text: &str) -> Vec<(usize, &'static str)> {
        check(file, &split(text)).iter().map(|problem| (problem.line, problem.rule)).collect()
    }

    #[test]
    fn core_has_no_clock_no_io_and_no_random_maps() {
        let file = "crates/kapell-core/src/plan.rs";
        assert_eq!(rules(file, "\nlet t = std::time::Instant::now();"), [(2, "clock")]);
        assert_eq!(rules(file, "use std::{collections::BTreeMap,\n fs};"), [(2, "io")]);
        assert_eq!(rules(file, "use std::fs::File;"), [(1, "io")]);
        assert_eq!(rules(file, "use std::collections::{HashMap, BTreeMap};"), [(1, "hash")]);
        assert_eq!(rules(file, "FxHashMap::new(); env!(\"X\"); std::fmt::Error"), []);
        assert_eq!(rules(file, "println!(\"\")"), [(1, "print")]);
        assert_eq!(rules("crates/kapell-node/src/a.rs", "Instant::now(); println!()"), []);
        assert_eq!(rules("crates/kapell-core/tests/a.rs", "use std::fs;"), []);
    }

    #[test]
    fn some_things_are_banned_everywhere() {
        let file = "crates/kapell/src/main.rs";
        assert_eq!(rules(file, "tokio::spawn(async {});"), [(1, "spawn")]);
        assert_eq!(rules(file, "use tokio::{select, spawn};"), [(1, "spawn")]);
        assert_eq!(rules(file, "tokio::task::spawn_blocking(f)"), []);
        assert_eq!(rules(file, "todo!()\nunimplemented!()\ndbg!(1)").len(), 3);
        assert_eq!(rules(file, "// FIXME later\nlet a = \"FIXME\";"), [(1, "fixme")]);
        assert_eq!(rules(file, "// XXXX is no marker, XXX is"), [(1, "fixme")]);
        assert_eq!(rules(file, "#[test]\n#[ignore = \"slow\"]\nfn a() {}"), [(2, "ignore")]);
        assert_eq!(rules(file, "// todo!() in a comment, \"todo!()\""), []);
    }

    #[test]
    fn tests_do_not_sleep_without_an_excuse() {
        let file = "crates/kapell/tests/cli/run.rs";
        assert_eq!(rules(file, "thread::sleep(d);"), [(1, "sleep")]);
        assert_eq!(rules(file, "use std::thread::{self, sleep};"), [(1, "sleep")]);
        assert_eq!(rules(file, "thread::sleep(d); // tidy: allow(sleep) polling"), []);
        assert_eq!(rules(file, "thread::sleep(d); // tidy: allow(sleep)"), [(1, "sleep")]);
        assert_eq!(rules("crates/kapell/src/tests.rs", "thread::sleep(d);"), []);
    }
}
