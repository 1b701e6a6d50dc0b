use std::collections::BTreeSet;

use super::world::*;
use crate::board::explain::{self, CellFacts, Explained, InstanceFacts};
use crate::board::*;

fn explained(world: &World) -> Explained {
    let present = BTreeSet::from(["a".into()]);
    let key = key(0);
    let about = InstanceFacts {
        key: &key,
        desired: world.records.desired.get(&key.process_guid),
        instance: world.instance(0),
        evacuating: world.twin(0),
        domain: world.records.domains.get(&Domain::from("d")),
        present: &present,
    };
    explain::instance(&about, world.now, &world.settings)
}

#[test]
fn an_instance_says_why_it_is_as_it_is() {
    let unplaced = ActualLrp {
        placement_error: Some("insufficient resources: memory".to_owned()),
        ..unclaimed()
    };
    let cases = [
        (World::new(), "web/0 is neither desired nor there"),
        (World::desiring(1), "web/0 is desired and not there: the next convergence creates it"),
        (World::desiring(1).with(unclaimed()), "web/0 waits for a cell: it is being placed"),
        (
            World::desiring(1).with(unplaced),
            "web/0 waits for a cell: insufficient resources: memory",
        ),
        (World::desiring(1).with(claimed("a", "x")), "web/0 is being started on cell `a`"),
        (World::desiring(1).with(running("a", "x")), "web/0 runs on cell `a`"),
        (
            World::desiring(1).with(running("gone", "x")),
            "web/0 is on cell `gone`, which is gone: it is about to be started elsewhere",
        ),
        (
            World::new().with(running("a", "x")),
            "web/0 is on cell `a` and not desired any more: convergence leaves it until its domain is fresh",
        ),
        (World::desiring(1).with(crashed(4)), "web/0 crashed 4 times and is restarted in 60 s"),
        (
            World::desiring(1).with(crashed(201)),
            "web/0 crashed 201 times and is not restarted any more: delete and desire it again",
        ),
    ];
    for (world, want) in cases {
        assert_eq!(explained(&world).summary, want);
    }
}

#[test]
fn an_instance_says_when_the_board_tries_again() {
    let at = |world: &World| explained(world).next_try_at;
    assert_eq!(at(&World::desiring(1).with(crashed(4))), Some(NOW.after(seconds(60))));
    assert_eq!(at(&World::desiring(1).with(crashed(201))), None);
    assert_eq!(at(&World::desiring(1).with(unclaimed())), Some(NOW.after(seconds(30))));
    assert_eq!(at(&World::desiring(1).with(running("a", "x"))), None);
    assert_eq!(at(&World::new().with(crashed(4))), None);
}

#[test]
fn an_instance_names_its_facts() {
    let lrp = ActualLrp {
        crash_count: 2,
        crash_reason: Some("Exited with status 1".to_owned()),
        ..running("a", "x")
    };
    let mut world = World::desiring(1).with(lrp).with(twin("b", "y"));
    world.pass(seconds(90));
    let facts = explained(&world).facts;
    let wants = [
        "desired: 1 instance, index 0 is one of them",
        "domain `d` was never set: it is not fresh",
        "cell `b` is being evacuated and still runs it, for 8 min at most",
        "it is RUNNING for 90 s",
        "cell `a` is present",
        "it crashed 2 times, last: Exited with status 1",
    ];
    assert_eq!(facts, wants);
}

#[test]
fn a_task_says_why_it_is_as_it_is() {
    let present = BTreeSet::from(["a".into()]);
    let say = |task: &Task| explain::task(task, &present, NOW, &Settings::default());
    let pending = say(&task(TaskState::Pending, None));
    assert_eq!(pending.summary, "task `t` waits for a cell: it is being placed");
    assert_eq!(pending.next_try_at, Some(NOW.after(seconds(30))));
    assert_eq!(say(&task(TaskState::Running, Some("a"))).summary, "task `t` runs on cell `a`");
    let failed = Task {
        failed: true,
        failure_reason: "cancelled".to_owned(),
        ..task(TaskState::Completed, Some("a"))
    };
    assert_eq!(say(&failed).summary, "task `t` failed: cancelled");
    assert_eq!(say(&task(TaskState::Completed, Some("a"))).summary, "task `t` succeeded");
}

#[test]
fn a_cell_says_whether_it_takes_work() {
    let presence: CellPresence = serde_json::from_str(
        r#"{"cell_id":"a","url":"http://h:1","zone":"z","capacity":{"memory_mb":10,"disk_mb":20,"containers":30}}"#,
    )
    .unwrap();
    let id = CellId::from("a");
    let about = CellFacts {
        cell_id: &id,
        presence: Some(&presence),
        awaited: false,
        heard_ago: Some(seconds(2)),
        lrps: 3,
        tasks: 1,
    };
    let said = explain::cell(&about);
    assert_eq!(said.summary, "cell `a` is present and takes work");
    assert_eq!(said.facts[0], "the board has 3 instances and 1 task on it");
    let leaving = CellPresence { evacuating: true, ..presence.clone() };
    let said = explain::cell(&CellFacts { presence: Some(&leaving), ..about });
    assert_eq!(said.summary, "cell `a` is being evacuated: it takes no new work");
    assert_eq!(
        explain::cell(&CellFacts { presence: None, ..about }).summary,
        "cell `a` is not present"
    );
}
