use super::{Explained, SETTLED, counted, input};
use crate::board::actual::{ActualLrp, ActualState};
use crate::board::desired::DesiredLrp;
use crate::board::ids::ProcessGuid;

/// All that is known of a process.
#[derive(Debug, Clone, Copy)]
pub struct ProcessFacts<'a> {
    pub guid: &'a ProcessGuid,
    pub desired: Option<&'a DesiredLrp>,
    /// What is desired cannot be read: its record was set aside.
    pub forgotten: bool,
    /// As readers are shown them: of an instance that moves, its evacuating twin.
    pub instances: &'a [ActualLrp],
    /// Why those that do not run as desired are as they are: the first of them.
    pub unsettled: &'a [Explained],
    /// How many more of those there are.
    pub more: u32,
}

/// Explains a whole process by those of its instances that are not as desired.
pub fn process(about: &ProcessFacts<'_>) -> Explained {
    let guid = about.guid;
    let count = |is_meant: &dyn Fn(&ActualLrp) -> bool| {
        let found = about.instances.iter().filter(|lrp| is_meant(lrp)).count();
        u32::try_from(found).unwrap_or(u32::MAX)
    };
    let desired = about.desired.filter(|lrp| !lrp.removing);
    let running = count(&|lrp| {
        lrp.state == ActualState::Running && desired.is_none_or(|it| it.wants_this(lrp))
    });
    let summary = match desired {
        Some(lrp) => {
            format!("of `{guid}` {running} of {} run", counted(lrp.instances, "desired instance"))
        }
        None => {
            let left = are(count(&|_| true));
            let why = if about.forgotten && about.desired.is_none() {
                "what is desired of it cannot be read: nothing of it is stopped"
            } else {
                "it is not desired"
            };
            format!("of `{guid}` {left} left, {running} running; {why}")
        }
    };
    let mut inputs = vec![
        input("desired_instances", &desired.map_or(0, |lrp| lrp.instances)),
        input("running", &running),
    ];
    for state in ActualState::ALL {
        let number = count(&|lrp| lrp.state == state);
        if state != ActualState::Running && number > 0 {
            inputs.push(input(&state.name().to_lowercase(), &number));
        }
    }
    let mut remedies: Vec<String> = Vec::new();
    for remedy in about.unsettled.iter().flat_map(|it| &it.remedies) {
        if !remedies.contains(remedy) {
            remedies.push(remedy.clone());
        }
    }
    let mut facts: Vec<String> = about.unsettled.iter().map(|it| it.summary.clone()).collect();
    if about.more > 0 {
        facts.push(format!("{} not as desired", counted(about.more, "more instance")));
    }
    let rule = about.unsettled.first().map_or_else(|| SETTLED.to_owned(), |it| it.rule.clone());
    let next_try_at = about.unsettled.iter().filter_map(|it| it.next_try_at).min();
    Explained { summary, rule, facts, inputs, remedies, next_try_at }
}

fn are(number: u32) -> String {
    let verb = if number == 1 { "is" } else { "are" };
    format!("{} {verb}", counted(number, "instance"))
}
