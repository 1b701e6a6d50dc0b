mod cells;
mod converge;
mod crash;
mod desired;
mod evacuation;
mod explain;
mod instances;
mod settled;
mod tasks;
mod validate;
mod walk;
mod world;

use super::*;

#[test]
fn a_task_comes_back_from_its_record() {
    let definition: TaskDefinition =
        serde_json::from_str(r#"{"task_guid":"t","domain":"d","action":{"run":{"path":"true"}}}"#)
            .unwrap();
    let task = Task {
        definition,
        instance_guid: "i".into(),
        state: TaskState::Pending,
        cell_id: None,
        failed: false,
        failure_reason: String::new(),
        result: String::new(),
        exit_code: None,
        placement_error: None,
        created_at: crate::seams::Timestamp(1),
        since: crate::seams::Timestamp(1),
        first_completed_at: None,
        version: 1,
    };
    let record = Record::Task(Box::new(task));
    assert_eq!(Record::decode(&record.key().encode(), &record.encode()), Ok(record));
}
