use kapell_core::board::{
    DesiredLrp, DesiredUpdate, Freshness, InstanceGuid, Record, RecordKey, Reply, Request,
    TaskState,
};

use super::stage::{
    Outcome, Stage, broken, desire, desired, domain, fresh_until, guid, task, task_guid,
    task_record,
};
use crate::fleet::checks::nothing_lost::NothingLost;
use crate::fleet::fact::Fact;

type World = Stage<NothingLost>;

fn asked(world: &mut World, request: &Request) {
    world.tell(&Fact::Asked { request: request.clone() }).unwrap();
}

fn acknowledged(world: &mut World, request: Request, reply: Reply) -> Outcome {
    world.tell(&Fact::Acknowledged { request, reply })
}

fn shown(lrp: DesiredLrp) -> Reply {
    Reply::Desired { lrp: Box::new(lrp), created: true }
}

fn wish() -> Request {
    Request::Desire(Box::new(desired(2)))
}

fn removal() -> Request {
    Request::RemoveDesired { process_guid: guid() }
}

fn creation(container: &str) -> Request {
    let definition = Box::new(task(container, TaskState::Pending, 1).definition);
    Request::CreateTask { definition, instance_guid: InstanceGuid::new(container) }
}

fn created(container: &str) -> Reply {
    Reply::Task { task: Box::new(task(container, TaskState::Pending, 1)), created: true }
}

#[test]
fn what_is_acknowledged_after_its_commit_holds() {
    let mut world = World::new();
    asked(&mut world, &wish());
    world.put([desire(2)]).unwrap();
    acknowledged(&mut world, wish(), shown(desired(2))).unwrap();
    world.end().unwrap();
}

#[test]
fn a_wish_that_is_acknowledged_before_its_commit_is_broken() {
    let mut world = World::new();
    asked(&mut world, &wish());
    broken(acknowledged(&mut world, wish(), shown(desired(2))), "not committed");
}

#[test]
fn an_update_of_which_only_the_older_version_is_committed_is_broken() {
    let mut world = World::new();
    world.put([desire(2)]).unwrap();
    let newer = DesiredLrp { version: 2, ..desired(3) };
    let update = DesiredUpdate { instances: Some(3), ..DesiredUpdate::default() };
    let request = Request::UpdateDesired { process_guid: guid(), update };
    asked(&mut world, &request);
    broken(acknowledged(&mut world, request, shown(newer)), "not committed");
}

#[test]
fn a_task_is_not_taken_for_its_namesake() {
    let mut world = World::new();
    asked(&mut world, &creation("one"));
    world.put([task_record("one", TaskState::Completed, 2)]).unwrap();
    asked(&mut world, &Request::DeleteTask { task_guid: task_guid() });
    world.delete(&RecordKey::Task(task_guid())).unwrap();
    world.after(1);
    // The client leaves it to the board to name the container.
    asked(&mut world, &creation(""));
    broken(acknowledged(&mut world, creation("two"), created("two")), "not committed");
}

#[test]
fn a_domain_that_is_acknowledged_before_its_commit_is_broken() {
    let mut world = World::new();
    world.put([fresh_until(Some(10))]).unwrap();
    world.after(5);
    let request = Request::SetDomain { domain: domain(), ttl: None };
    asked(&mut world, &request);
    let reply = Reply::Domain(Freshness { domain: domain(), expires_at: None, since: None });
    broken(acknowledged(&mut world, request.clone(), reply.clone()), "not committed");
    world.put([fresh_until(None)]).unwrap();
    acknowledged(&mut world, request, reply).unwrap();
}

#[test]
fn a_removal_is_acknowledged_once_it_is_given_up() {
    let mut world = World::new();
    world.put([desire(2)]).unwrap();
    asked(&mut world, &removal());
    broken(acknowledged(&mut world, removal(), Reply::Done), "not committed");
    let removing = DesiredLrp { removing: true, retiring: true, version: 2, ..desired(2) };
    world.put([Record::Desired(Box::new(removing))]).unwrap();
    acknowledged(&mut world, removal(), Reply::Done).unwrap();
    world.delete(&RecordKey::Desired(guid())).unwrap();
    world.end().unwrap();
}

#[test]
fn a_desired_lrp_that_goes_unasked_is_broken() {
    let mut world = World::new();
    world.put([desire(2)]).unwrap();
    broken(world.delete(&RecordKey::Desired(guid())), "nobody has asked");
}

#[test]
fn an_older_version_over_a_newer_one_is_broken() {
    let mut world = World::new();
    world.put([Record::Desired(Box::new(DesiredLrp { version: 3, ..desired(3) }))]).unwrap();
    broken(world.put([desire(2)]), "is put over");
}

#[test]
fn noting_that_nothing_is_left_to_be_given_up_takes_no_new_version() {
    let mut world = World::new();
    world.put([Record::Desired(Box::new(DesiredLrp { retiring: true, ..desired(2) }))]).unwrap();
    world.put([desire(2)]).unwrap();
}

#[test]
fn a_task_is_forgotten_when_it_is_old_and_not_sooner() {
    let key = RecordKey::Task(task_guid());
    let plain = || {
        let mut task = task("one", TaskState::Completed, 2);
        task.definition.completion_callback_url.clear();
        Record::Task(Box::new(task))
    };
    let mut world = World::new();
    world.put([plain()]).unwrap();
    world.after(60);
    broken(world.delete(&key), "nobody has asked");
    let mut world = World::new();
    world.put([plain()]).unwrap();
    world.after(120).delete(&key).unwrap();
}

#[test]
fn a_task_that_is_not_complete_never_goes_by_itself() {
    let mut world = World::new();
    world.put([task_record("one", TaskState::Running, 2)]).unwrap();
    world.after(10_000);
    broken(world.delete(&RecordKey::Task(task_guid())), "nobody has asked");
}

#[test]
fn what_is_overwritten_with_garbage_is_out_of_it() {
    let mut world = World::new();
    asked(&mut world, &wish());
    world.put([desire(2)]).unwrap();
    world.corrupt(&RecordKey::Desired(guid())).unwrap();
    // The answer was on its way.
    acknowledged(&mut world, wish(), shown(desired(2))).unwrap();
    world.end().unwrap();
}

#[test]
fn what_the_store_loses_by_itself_is_broken_also_if_it_was_gone_before() {
    let mut world = World::new();
    asked(&mut world, &removal());
    world.put([desire(2)]).unwrap();
    world.delete(&RecordKey::Desired(guid())).unwrap();
    asked(&mut world, &wish());
    world.put([desire(2)]).unwrap();
    acknowledged(&mut world, wish(), shown(desired(2))).unwrap();
    world.forget(&RecordKey::Desired(guid()));
    broken(world.end(), "not there in the end");
}
