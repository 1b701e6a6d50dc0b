mod cells;
mod converge;
mod crash;
mod desired;
mod duty;
mod evacuation;
mod explain;
mod explain_cases;
mod ground;
mod incarnation;
mod index;
mod instances;
mod placement;
mod plan;
mod readiness;
mod record;
mod scale;
mod secrets;
mod settled;
mod shown;
mod steps;
mod tasks;
mod time;
mod timers;
mod validate;
mod walk;
mod world;

use super::*;

#[test]
fn a_task_comes_back_from_its_record() {
    let definition: TaskDefinition =
        serde_json::from_str(r#"{"task_guid":"t","domain":"d","action":{"run":{"path":"true"}}}"#)
            .unwrap();
    let task = Task::pending(definition, "i".into(), crate::seams::Timestamp(1));
    let record = Record::Task(Box::new(task));
    assert_eq!(Record::decode(&record.key().encode(), &record.encode()), Ok(record));
}
