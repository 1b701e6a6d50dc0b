//! Messages of runs are kept until they were sent.

use super::Step;
use crate::board::{JobId, Record, RecordKey, Refusal, Reply};
use crate::constraint::Outgoing;
use crate::constraint::outgoing::MOST_OF_A_JOB;
use crate::job::record::ActionId;

impl Step<'_, '_> {
    pub(super) fn post(&mut self, message: &Outgoing) -> Result<Reply, Refusal> {
        let key = RecordKey::Message(message.job_id.clone(), message.id);
        if self.draft.get(&key).is_some() {
            return Ok(Reply::Done);
        }
        if let Some(fault) = message.fault() {
            return Err(Refusal::Invalid { problems: vec![fault] });
        }
        if self.draft.count_messages(&message.job_id) >= MOST_OF_A_JOB {
            let text = format!(
                "{MOST_OF_A_JOB} messages of job `{}` wait to be sent already: see why they are not taken",
                message.job_id
            );
            return Err(Refusal::State { text });
        }
        self.draft.put(Record::Message(Box::new(message.clone())));
        Ok(Reply::Done)
    }

    pub(super) fn posted(&mut self, job_id: &JobId, id: ActionId) -> Reply {
        let key = RecordKey::Message(job_id.clone(), id);
        if self.draft.get(&key).is_some() {
            self.draft.delete(key);
        }
        Reply::Done
    }
}
