use std::collections::BTreeSet;

use super::world::*;
use crate::board::explain::{
    self, CellFacts, Due, Explained, InstanceFacts, ProcessFacts, TaskFacts,
};
use crate::board::*;

pub(super) fn presence() -> CellPresence {
    serde_json::from_str(
        r#"{"cell_id":"a","url":"http://h:1","zone":"z","capacity":{"memory_mb":100,"disk_mb":20,"containers":30}}"#,
    )
    .unwrap()
}

/// A round in 7 s, a pass in 20 s.
pub(super) fn due() -> Due {
    Due { round: Some(NOW.after(seconds(7))), pass: NOW.after(seconds(20)) }
}

pub(super) fn explained(world: &World) -> Explained {
    explained_when(world, due())
}

fn explained_when(world: &World, due: Due) -> Explained {
    let present = BTreeSet::from(["a".into(), "b".into()]);
    let key = key(0);
    let about = InstanceFacts {
        key: &key,
        desired: world.records.known_desired(&key.process_guid),
        forgotten: world.records.is_forgotten(&key.process_guid),
        instance: world.instance(0),
        evacuating: world.twin(0),
        domain: world.records.domains.get(&Domain::from("d")),
        present: &present,
        cells: &[presence()],
        due,
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
fn an_instance_that_is_not_ready_says_so() {
    let told = |lrp| {
        let facts = explained(&World::desiring(1).with(lrp)).facts;
        facts.iter().any(|fact| fact.starts_with("it is not ready"))
    };
    assert!(told(ActualLrp { ready: Some(false), ..running("a", "x") }));
    assert!(!told(running("a", "x")) && !told(claimed("a", "x")));
}

#[test]
fn an_instance_says_when_the_board_tries_again() {
    let at = |world: &World| explained(world).next_try_at;
    assert_eq!(at(&World::desiring(1).with(crashed(4))), Some(NOW.after(seconds(60))));
    assert_eq!(at(&World::desiring(1).with(crashed(201))), None);
    let waits = World::desiring(1).with(unclaimed());
    assert_eq!(at(&waits), due().round);
    // The auctioneer does not know of it: convergence asks for it when it is stale.
    let at_pass = |world: &World| explained_when(world, Due { round: None, ..due() }).next_try_at;
    assert_eq!(at_pass(&waits), Some(NOW.after(seconds(30))));
    assert_eq!(at(&World::desiring(1).with(running("a", "x"))), None);
    assert_eq!(at(&World::desiring(1)), Some(due().pass));
    assert_eq!(at(&World::desiring(1).with(running("gone", "x"))), Some(due().pass));
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
    let say = |task: &Task| {
        let about = TaskFacts { task, present: &present, cells: &[presence()], due: due() };
        explain::task(&about, NOW, &Settings::default())
    };
    let pending = say(&task(TaskState::Pending, None));
    assert_eq!(pending.summary, "task `t` waits for a cell: it is being placed");
    assert_eq!(pending.next_try_at, due().round);
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
    let presence = presence();
    let settings = Settings::default();
    let id = CellId::from("a");
    let about = CellFacts {
        cell_id: &id,
        presence: Some(&presence),
        awaited: false,
        heard_ago: Some(seconds(2)),
        silent_since: None,
        due: due(),
        lrps: 3,
        tasks: 1,
    };
    let said = explain::cell(&about, &settings);
    assert_eq!(said.summary, "cell `a` is present and takes work");
    assert_eq!(said.facts[0], "the board has 3 instances and 1 task on it");
    let leaving = CellPresence { evacuating: true, ..presence.clone() };
    let said = explain::cell(&CellFacts { presence: Some(&leaving), ..about }, &settings);
    assert_eq!(said.summary, "cell `a` is being evacuated: it takes no new work");
}

pub(super) fn value<'a>(explained: &'a Explained, name: &str) -> Option<&'a str> {
    explained.inputs.iter().find(|input| input.name == name).map(|input| input.value.as_str())
}

#[test]
fn an_instance_names_the_rule_and_what_would_change_it() {
    let unplaced = ActualLrp {
        placement_error: Some("insufficient resources: memory (wanted 64 MB)".to_owned()),
        ..unclaimed()
    };
    let cases = [
        (
            World::new(),
            "no desired LRP has this index, and nothing of it is there",
            "desire `web`: kapell apply -f FILE",
        ),
        (World::desiring(1), "convergence duty 2: missing instance", ""),
        (World::desiring(1).with(unclaimed()), "auction: it is placed with the next batch", ""),
        (
            World::desiring(1).with(unplaced),
            "auction: what fits on no cell is carried over to the next batch",
            "free 64 MB of memory on a cell",
        ),
        (
            World::desiring(1).with(claimed("a", "x")),
            "start: the cell that won the auction claims it, then runs it",
            "",
        ),
        (
            World::desiring(1).with(unclaimed()).with(twin("a", "y")),
            "evacuation: it runs on cell `a` until another cell runs it",
            "",
        ),
        (World::desiring(1).with(running("a", "x")), "as desired: nothing is to be done", ""),
        (
            World::desiring(1).with(running("gone", "x")),
            "convergence duty 1: instance on a lost cell",
            "start cell `gone` again",
        ),
        (
            World::new().with(running("a", "x")),
            "convergence duty 3: instance that nobody desires, held back because its domain is not fresh",
            "set its domain fresh to have it stopped: kapell domain set d",
        ),
        (World::desiring(1).with(crashed(4)), "crash dance: 4th crash", "wait until 13:47:40 UTC"),
        (
            World::desiring(1).with(crashed(201)),
            "crash dance: 201st crash",
            "see why it ends: kapell logs web/0",
        ),
    ];
    for (world, rule, remedy) in cases {
        let said = explained(&world);
        assert_eq!(said.rule, rule);
        assert_eq!(said.remedies.first().map_or("", String::as_str), remedy, "{rule}");
    }
    let mut fresh = World::new().with(running("a", "x"));
    let domain = Freshness { domain: "d".into(), expires_at: None, since: None };
    fresh.records.put(Record::Domain(domain));
    assert_eq!(explained(&fresh).rule, "convergence duty 3: instance that nobody desires");
    assert_eq!(explained(&fresh).next_try_at, Some(due().pass));
}

#[test]
fn the_inputs_of_a_rule_are_its_values() {
    let said = explained(&World::desiring(2).with(crashed(5)));
    for (name, want) in [
        ("desired_instances", "2"),
        ("index", "0"),
        ("state", "CRASHED"),
        ("crash_count", "5"),
        ("restarts_at_once", "3"),
        ("wait", "2 min"),
    ] {
        assert_eq!(value(&said, name), Some(want), "{said:?}");
    }
    let said = explained(&World::desiring(1).with(crashed(201)));
    assert_eq!(value(&said, "wait"), Some("for ever"));
    let said = explained(&World::desiring(1).with(unclaimed()));
    assert_eq!(value(&said, "memory_mb"), Some("64"));
    assert_eq!(value(&said, "stale_unclaimed"), Some("30 s"));
}

#[test]
fn a_task_names_the_rule_and_what_would_change_it() {
    let present = BTreeSet::from(["a".into()]);
    let say = |task: &Task, pause: u64| {
        let about = TaskFacts { task, present: &present, cells: &[presence()], due: due() };
        explain::task(&about, NOW.after(seconds(pause)), &Settings::default())
    };
    let pending = task(TaskState::Pending, None);
    assert_eq!(say(&pending, 0).rule, "auction: it is placed with the next batch");
    assert_eq!(say(&pending, 31).rule, "convergence duty for tasks 2: stale PENDING task");
    assert_eq!(say(&pending, 31).next_try_at, due().round);
    assert_eq!(value(&say(&pending, 0), "given_up_in"), Some("30 min"));
    assert_eq!(say(&pending, 0).remedies, ["cancel it: kapell task cancel t"]);
    let lost = task(TaskState::Running, Some("gone"));
    assert_eq!(say(&lost, 0).rule, "convergence duty for tasks 1: RUNNING task on a lost cell");
    assert_eq!(say(&lost, 0).next_try_at, Some(due().pass));
    let done = task(TaskState::Completed, Some("a"));
    assert_eq!(say(&done, 0).rule, "convergence duty for tasks 3: old COMPLETED task");
    assert_eq!(
        say(&done, 0).remedies,
        ["delete it: kapell task delete t", "wait until 13:48:40 UTC, when it is forgotten"]
    );
    let told = calling_back(done);
    assert_eq!(
        say(&told, 0).rule,
        "convergence duty for tasks 4: COMPLETED task that nobody resolves"
    );
    let resolving = task(TaskState::Resolving, Some("a"));
    assert_eq!(say(&resolving, 0).rule, "convergence duty for tasks 5: stuck RESOLVING task");
    assert_eq!(say(&resolving, 0).next_try_at, Some(NOW.after(seconds(30))));
}

#[test]
fn a_cell_names_the_rule_and_what_would_change_it() {
    let (presence, id) = (presence(), CellId::from("a"));
    let about = CellFacts {
        cell_id: &id,
        presence: None,
        awaited: true,
        heard_ago: None,
        silent_since: None,
        due: due(),
        lrps: 0,
        tasks: 0,
    };
    let say = |about: &CellFacts<'_>| explain::cell(about, &Settings::default());
    let awaited = say(&about);
    assert_eq!(awaited.rule, "presence: a new leader waits 15 s for every cell that records name");
    assert_eq!(awaited.remedies.len(), 1);
    let there = say(&CellFacts { presence: Some(&presence), awaited: false, ..about });
    assert_eq!(value(&there, "memory_mb"), Some("100"));
    assert_eq!(there.remedies, ["move its work elsewhere: kapell cells evacuate a"]);
    let leaving = CellPresence { evacuating: true, ..presence };
    let leaving = say(&CellFacts { presence: Some(&leaving), awaited: false, ..about });
    assert!(leaving.rule.starts_with("evacuation: "), "{}", leaving.rule);
}

#[test]
fn a_process_is_explained_by_what_does_not_run() {
    let world = World::desiring(3).with(running("a", "x"));
    let desired = world.records.desired.get(&ProcessGuid::from("web"));
    let instances: Vec<ActualLrp> = world.records.instances.values().cloned().collect();
    let missing = explained(&World::desiring(1));
    let guid = ProcessGuid::from("web");
    let about = ProcessFacts {
        guid: &guid,
        desired,
        forgotten: false,
        instances: &instances,
        unsettled: &[missing],
        more: 1,
    };
    let said = explain::process(&about);
    assert_eq!(said.summary, "of `web` 1 of 3 desired instances run");
    assert_eq!(said.rule, "convergence duty 2: missing instance");
    assert_eq!(said.facts.last().unwrap(), "1 more instance not as desired");
    let calm = explain::process(&ProcessFacts { unsettled: &[], more: 0, ..about });
    assert_eq!((calm.rule.as_str(), calm.next_try_at), ("as desired: nothing is to be done", None));
    let gone = explain::process(&ProcessFacts { desired: None, ..about });
    assert_eq!(gone.summary, "of `web` 1 instance is left, 1 running; it is not desired");
    assert_eq!(value(&gone, "running"), Some("1"));
    let moving = [ActualLrp { incarnation: desired.unwrap().incarnation, ..twin("a", "y") }];
    let moves = explain::process(&ProcessFacts { instances: &moving, ..about });
    assert_eq!(moves.summary, "of `web` 1 of 3 desired instances run");
    let left = explained(&World::new().with(running("a", "x")));
    assert!(!left.remedies.iter().any(|remedy| remedy.contains("lrp scale")), "{left:?}");
}
