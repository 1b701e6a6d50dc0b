//! What a cell does with each container beside each record.

use super::{Page, page, table};
use crate::rep::evacuation::{self, Idle, Instance, Twin};
use crate::rep::{Rule, Surprise, lrp, task};

const LEGEND: &str = "\
`here` is this very container on this cell, `elsewhere` any other. Actions are done in order; if one fails, the cell \
stops there and looks again later. **Expected**: the usual course. **Conceivable**: after lost messages or a restart. \
**Inconceivable**: should not happen; it is logged loudly and mended all the same.\n\n";

pub(super) fn lrp() -> Page {
    let mut text = format!("{LEGEND}Of an instance, on a cell that is not evacuated.\n\n");
    for container in lrp::Container::ALL {
        text.push_str(&format!("## Container {}\n\n", container.name()));
        text.push_str(&table(
            ["record", "do", "surprise", "why"],
            lrp::Record::ALL.map(|record| row(record.name(), lrp::harmonize(container, record))),
        ));
    }
    page("rep-lrp", "A container of an instance beside its record", &text)
}

pub(super) fn evacuation_running() -> Page {
    let mut text = format!("{LEGEND}The evacuating twin is always RUNNING.\n\n");
    for twin in Twin::ALL {
        text.push_str(&format!("## Twin {}\n\n", twin.name()));
        let rule = |instance| evacuation::running(instance, twin);
        text.push_str(&of_instances(rule));
    }
    page("rep-evacuation-running", "A running container on a cell that is evacuated", &text)
}

pub(super) fn evacuation_not_running() -> Page {
    let mut text = format!(
        "{LEGEND}Only records that are here are touched. On a cell that is not evacuated, a twin without a container \
         is treated as under \"Container missing\" too.\n\n"
    );
    for container in Idle::ALL {
        for twin in Twin::ALL {
            text.push_str(&format!("## Container {}, twin {}\n\n", container.name(), twin.name()));
            let rule = |instance| evacuation::not_running(container, instance, twin);
            text.push_str(&of_instances(rule));
        }
    }
    let title = "A container that does not run on a cell that is evacuated";
    page("rep-evacuation-not-running", title, &text)
}

pub(super) fn task() -> Page {
    let mut text = format!(
        "{LEGEND}Of a task, on any cell. A container with another instance guid than the record's is none of it.\n\n"
    );
    for container in task::Container::ALL {
        text.push_str(&format!("## Container {}\n\n", container.name()));
        text.push_str(&table(
            ["record", "do", "surprise", "why"],
            task::Record::ALL.map(|record| row(record.name(), task::harmonize(container, record))),
        ));
    }
    page("rep-task", "A container of a task beside its record", &text)
}

fn of_instances(rule: impl Fn(Instance) -> Rule) -> String {
    let rows = Instance::ALL.map(|instance| row(instance.name(), rule(instance)));
    table(["instance", "do", "surprise", "why"], rows)
}

fn row(record: &str, rule: Rule) -> [String; 4] {
    let actions: Vec<&str> = rule.actions.iter().map(|action| action.name()).collect();
    let actions = if actions.is_empty() { "nothing".to_owned() } else { actions.join(", then ") };
    let surprise = match rule.surprise {
        Surprise::Expected => "expected",
        Surprise::Conceivable => "conceivable",
        Surprise::Inconceivable => "**inconceivable**",
    };
    [record.to_owned(), actions, surprise.to_owned(), rule.why.to_owned()]
}
