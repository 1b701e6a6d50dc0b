use super::world::*;
use crate::board::action::{Nested, Several};
use crate::board::secrets::{Holder, due, of_lrp, of_task};
use crate::board::*;

fn run(variable: &str, secret: &str) -> Action {
    let env = vec![Variable::secret(variable, secret), Variable::plain("A", "1")];
    Action::Run(Run { path: "x".to_owned(), env, ..Run::default() })
}

fn shop() -> DesiredLrp {
    let several = vec![run("A", "b"), Action::Try(Nested { action: Box::new(run("B", "c")) })];
    DesiredLrp {
        env: vec![Variable::secret("ALL", "a")],
        setup: Some(run("S", "d")),
        monitor: Some(run("M", "e")),
        action: Action::Codependent(Several { actions: several }),
        ..web()
    }
}

fn holder(guid: &str) -> Holder {
    Holder::Lrp { key: key(0), instance_guid: guid.into() }
}

fn task_holder(guid: &str) -> Holder {
    Holder::Task { task_guid: definition().task_guid, instance_guid: guid.into() }
}

#[test]
fn every_part_of_a_recipe_may_refer_to_secrets() {
    let names: Vec<String> = of_lrp(&shop()).iter().map(ToString::to_string).collect();
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
    let task = TaskDefinition { env: shop().env, action: shop().action, ..definition() };
    let names: Vec<String> = of_task(&task).iter().map(ToString::to_string).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert!(of_lrp(&web()).is_empty());
}

#[test]
fn a_cell_gets_the_secrets_of_what_is_placed_there_and_of_nothing_else() {
    let mut world = World::new();
    world.ask(&Request::Desire(Box::new(shop()))).unwrap();
    let incarnation = world.records.desired[&web().process_guid].incarnation;
    let on = |lrp: ActualLrp| ActualLrp { incarnation, ..lrp };
    let given = |world: &World, cell: &str, guid: &str| {
        due(&world.records, &cell.into(), &holder(guid)).map(|due| due.names.len())
    };
    for lrp in [claimed("a", "one"), running("a", "one")] {
        let world = world.clone().with(on(lrp));
        assert_eq!(given(&world, "a", "one"), Ok(5));
        assert!(given(&world, "b", "one").is_err(), "another cell");
        assert!(given(&world, "a", "two").is_err(), "another container");
    }
    let evacuated = world.clone().with(on(twin("a", "one")));
    assert_eq!(given(&evacuated, "a", "one"), Ok(5));
    let older =
        world.clone().with(ActualLrp { incarnation: incarnation + 1, ..running("a", "one") });
    assert!(given(&older, "a", "one").is_err(), "of another one of its name");
    for lrp in [unclaimed(), crashed(1)] {
        let why = given(&world.clone().with(on(lrp)), "a", "one").unwrap_err();
        let right = "no secrets: the board does not have container `one` on cell `a`";
        assert_eq!(why.to_string(), right);
    }
}

#[test]
fn a_task_gets_its_secrets_while_it_runs() {
    let secret = |task: Task| {
        let definition = TaskDefinition { action: run("A", "b"), ..task.definition.clone() };
        Task { definition, ..task }
    };
    let running = secret(task(TaskState::Running, Some("a")));
    let guid = running.instance_guid.clone();
    let world = World::new().with_task(running);
    let given = due(&world.records, &"a".into(), &task_holder(guid.as_str())).unwrap();
    assert_eq!((given.domain, given.names), (definition().domain, ["b".into()].into()));
    assert!(due(&world.records, &"b".into(), &task_holder(guid.as_str())).is_err());
    assert!(due(&world.records, &"a".into(), &task_holder("other")).is_err());
    for state in [TaskState::Pending, TaskState::Completed, TaskState::Resolving] {
        let world = World::new().with_task(secret(task(state, Some("a"))));
        assert!(due(&world.records, &"a".into(), &task_holder(guid.as_str())).is_err());
    }
}

#[test]
fn older_records_are_read_and_a_reference_is_written_as_one() {
    let read = |text: &str| serde_json::from_str::<Variable>(text).unwrap();
    assert_eq!(read(r#"{"name":"A","value":""}"#), Variable::plain("A", ""));
    let secret = Variable::secret("DB_PASSWORD", "db-password");
    let text = r#"{"name":"DB_PASSWORD","secret":"db-password"}"#;
    assert_eq!((read(text), serde_json::to_string(&secret).unwrap().as_str()), (secret, text));
}
