//! Rows that cannot be are told of loudly, once, to whoever listens.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use kapell_core::rep::evacuation::{self, Instance, Twin};
use kapell_core::rep::{Surprise, lrp, task};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::tables::{lrp_stage, polled, task_stage};
use crate::cell::INCONCEIVABLE;

type Fields = BTreeMap<&'static str, String>;

/// Keeps the events of one target.
#[derive(Debug, Clone, Default)]
struct Listener {
    heard: Arc<Mutex<Vec<(Level, Fields)>>>,
}

struct Reader<'a>(&'a mut Fields);

impl Visit for Reader<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == INCONCEIVABLE
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::new();
        event.record(&mut Reader(&mut fields));
        self.heard.lock().unwrap().push((*event.metadata().level(), fields));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn listen(deed: impl FnOnce()) -> Vec<(Level, Fields)> {
    let listener = Listener::default();
    tracing::subscriber::with_default(listener.clone(), deed);
    let heard = listener.heard.lock().unwrap();
    heard.clone()
}

fn is_odd(surprise: Surprise) -> usize {
    usize::from(surprise == Surprise::Inconceivable)
}

#[tokio::test(start_paused = true)]
async fn every_row_that_cannot_be_is_told_of_and_no_other() {
    let mut odd = 0;
    for container in lrp::Container::ALL {
        for instance in Instance::ALL {
            for (twin, evacuating) in
                [(Twin::Missing, false)].into_iter().chain(Twin::ALL.map(|twin| (twin, true)))
            {
                let (rep, guid, records) = lrp_stage(container, instance, twin, evacuating);
                let us = kapell_core::board::InstanceKey {
                    instance_guid: guid.clone(),
                    cell_id: "cell".into(),
                };
                let record = lrp::classify(records.instances.first(), &us, None);
                let rule = if evacuating {
                    evacuation::harmonize(container, instance, twin)
                } else {
                    lrp::harmonize(container, record)
                };
                odd += is_odd(rule.surprise);
                let heard = listen(|| drop(polled(rep, &guid, &records)));
                let what = format!("{container:?} x {instance:?} x {twin:?}, {evacuating}");
                assert_eq!(heard.len(), is_odd(rule.surprise), "{what}: {heard:?}");
                assert!(heard.iter().all(|(_, fields)| fields["why"] == rule.why), "{heard:?}");
            }
        }
    }
    for container in task::Container::ALL {
        for record in task::Record::ALL {
            let (rep, guid, records) = task_stage(container, record);
            let rule = task::harmonize(container, record);
            odd += is_odd(rule.surprise);
            let heard = listen(|| drop(polled(rep, &guid, &records)));
            assert_eq!(heard.len(), is_odd(rule.surprise), "{container:?} x {record:?}");
        }
    }
    assert!(odd >= 15, "{odd}");
}

#[tokio::test(start_paused = true)]
async fn it_is_told_loudly_with_all_that_is_known() {
    let heard = listen(|| {
        let (rep, guid, records) =
            task_stage(task::Container::Running, task::Record::RunningElsewhere);
        polled(rep, &guid, &records);
    });
    let [(level, fields)] = &heard[..] else { panic!("{heard:?}") };
    assert_eq!(*level, Level::ERROR);
    let wanted = [
        ("cell", "cell"),
        ("container", "i-job"),
        ("key", "job"),
        ("message", "inconceivable"),
        ("record", "task running-elsewhere"),
        ("state", "RUNNING"),
        ("why", "another cell runs it"),
    ];
    let told: Vec<(&str, &str)> =
        fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(told, wanted);
}

#[tokio::test(start_paused = true)]
async fn what_stays_as_it_is_is_told_of_once() {
    let heard = listen(|| {
        let (mut rep, _, records) =
            lrp_stage(lrp::Container::Running, Instance::Unplaced, Twin::Missing, true);
        for _ in 0..5 {
            let (_, asked) = rep.wanted();
            rep.harmonize(&records, &asked);
        }
    });
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0].1["record"], "instance unplaced, twin missing");
    assert_eq!(heard[0].1["key"], "web/0");
}
