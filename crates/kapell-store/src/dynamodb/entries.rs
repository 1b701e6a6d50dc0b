//! Changes of entries, each one write under a condition.

use std::time::Duration;

use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{ReturnValue, ReturnValuesOnConditionCheckFailure};

use super::Core;
use super::failure::Failure;
use super::item::{ENTRIES, PARTITION, SORT, Stand, bytes, key_in, number, text};
use super::turns::ask;
use crate::check;
use crate::error::Error;
use crate::model::{Entry, Generation, Key, Write};

/// What came of a write under a condition.
enum Written {
    Done,
    /// Nothing was changed: this stands there.
    Not(Stand),
}

/// Gives a time to live, or takes it away.
fn lasting(
    update: UpdateItemFluentBuilder,
    set: &str,
    ttl: Option<Duration>,
) -> UpdateItemFluentBuilder {
    match ttl {
        Some(ttl) => update
            .update_expression(format!("{set}, #ttl = :ttl"))
            .expression_attribute_values(":ttl", number(check::millis(ttl).unsigned_abs())),
        None => update.update_expression(format!("{set} REMOVE #ttl")),
    }
    .expression_attribute_names("#ttl", "ttl")
}

impl Core {
    fn update(&self, key: &Key) -> UpdateItemFluentBuilder {
        self.client
            .update_item()
            .table_name(&self.table)
            .key(PARTITION, text(ENTRIES))
            .key(SORT, bytes(key.as_bytes()))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
    }

    /// Sends a write that sets the stamp; sees what stands there then.
    async fn write(&self, key: &Key, update: UpdateItemFluentBuilder) -> Result<Written, Failure> {
        let stamp = self.stamp();
        let update = update.expression_attribute_values(":stamp", bytes(&stamp));
        let (found, repeated) = match ask(self.timeout, || update.clone().send()).await {
            Ok(done) => {
                self.see(key, Stand::of_any(done.attributes())?, true);
                return Ok(Written::Done);
            }
            Err(Failure::Condition { found, repeated }) => (found, repeated),
            Err(failure) => return Err(failure),
        };
        let stand = Stand::of_any(found.as_ref())?;
        let is_ours = stand.stamp == stamp;
        self.see(key, stand.clone(), is_ours);
        match (is_ours, repeated) {
            // The service failed after it had written, and the second attempt found the first.
            (true, _) => Ok(Written::Done),
            (false, false) => Ok(Written::Not(stand)),
            (false, true) => Err(Failure::Untold),
        }
    }

    /// Removes what has run out, if nobody has written since.
    async fn remove(&self, key: &Key, over: &[u8]) -> Result<Written, Failure> {
        let update = self
            .update(key)
            .update_expression("SET t = :stamp REMOVE v, #ttl")
            .expression_attribute_names("#ttl", "ttl")
            .condition_expression("t = :over")
            .expression_attribute_values(":over", bytes(over));
        self.write(key, update).await
    }

    pub(super) async fn insert(
        &self,
        key: &Key,
        seen: Generation,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Write, Failure> {
        loop {
            let mut update =
                lasting(self.update(key), "SET g = :next, v = :value, t = :stamp", ttl)
                    .expression_attribute_values(":next", number(seen.next().0))
                    .expression_attribute_values(":value", bytes(value));
            let mut condition = "attribute_not_exists(v)".to_owned();
            if let Some(over) = self.over(key) {
                condition = format!("({condition} OR t = :over)");
                update = update.expression_attribute_values(":over", bytes(&over));
            }
            if seen == Generation::default() {
                condition += " AND attribute_not_exists(g)";
            } else {
                condition += " AND g = :seen";
                update = update.expression_attribute_values(":seen", number(seen.0));
            }
            let found = match self.write(key, update.condition_expression(condition)).await? {
                Written::Done => return Ok(Write::Done),
                Written::Not(found) => found,
            };
            // Its time may have ended while we asked.
            let has_run_out = self.over(key).is_some_and(|over| over == found.stamp);
            if !has_run_out || found.generation != seen {
                return Ok(Write::Lost);
            }
        }
    }

    /// Puts something else, or nothing, where exactly `old` stands.
    pub(super) async fn swap(
        &self,
        key: &Key,
        old: &[u8],
        new: Option<&[u8]>,
        ttl: Option<Duration>,
    ) -> Result<Write, Failure> {
        while let Some(over) = self.over(key) {
            // Said to be gone, it must be gone for everybody.
            if let Written::Done = self.remove(key, &over).await? {
                return Ok(Write::Lost);
            }
        }
        let update = match new {
            Some(new) => lasting(self.update(key), "SET v = :value, t = :stamp", ttl)
                .expression_attribute_values(":value", bytes(new)),
            None => self
                .update(key)
                .update_expression("SET t = :stamp REMOVE v, #ttl")
                .expression_attribute_names("#ttl", "ttl"),
        };
        let update =
            update.condition_expression("v = :old").expression_attribute_values(":old", bytes(old));
        let written = self.write(key, update).await?;
        Ok(Write::of(matches!(written, Written::Done)))
    }

    /// An entry that lies there like this; one that has run out is removed before that is said.
    async fn settled(&self, key: &Key, mut stand: Stand) -> Result<Entry, Failure> {
        loop {
            let judged = self.see(key, stand, false);
            let Some(over) = judged.over else { return Ok(judged.entry) };
            match self.remove(key, &over).await? {
                Written::Done => return Ok(judged.entry),
                Written::Not(found) => stand = found,
            }
        }
    }

    pub(super) async fn fetch(&self, key: &Key) -> Result<Stand, Failure> {
        let get = self
            .client
            .get_item()
            .table_name(&self.table)
            .key(PARTITION, text(ENTRIES))
            .key(SORT, bytes(key.as_bytes()))
            .consistent_read(true);
        Stand::of_any(ask(self.timeout, || get.clone().send()).await?.item())
    }

    pub(super) async fn look(&self, key: &Key) -> Result<Entry, Failure> {
        let stand = self.fetch(key).await?;
        self.settled(key, stand).await
    }

    /// There may be many: it is each question that has a limit.
    pub(super) async fn look_at_all(&self) -> Result<Vec<(Key, Entry)>, Error> {
        let query = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :entries")
            .expression_attribute_values(":entries", text(ENTRIES))
            .consistent_read(true);
        let (mut all, mut behind) = (Vec::new(), None);
        loop {
            let page = query.clone().set_exclusive_start_key(behind);
            let page = async {
                let page = ask(self.timeout, || page.clone().send()).await?;
                let stands = page.items().iter().map(|item| Ok((key_in(item)?, Stand::of(item)?)));
                let stands: Vec<_> = stands.collect::<Result<_, Failure>>()?;
                Ok((stands, page.last_evaluated_key))
            };
            let (stands, more) = self.within("list", page).await?;
            for (key, stand) in stands {
                let entry = self.within("list", self.settled(&key, stand)).await?;
                all.push((key, entry));
            }
            behind = more;
            if behind.is_none() {
                return Ok(all);
            }
        }
    }

    /// What stands there stays, and so do its stamp and its time.
    pub(super) async fn lift_generation(
        &self,
        key: &Key,
        floor: Generation,
    ) -> Result<(), Failure> {
        if floor == Generation::default() {
            return self.fetch(key).await.map(drop);
        }
        let update = self
            .update(key)
            .update_expression("SET g = :floor")
            .condition_expression("attribute_not_exists(g) OR g < :floor")
            .expression_attribute_values(":floor", number(floor.0));
        match ask(self.timeout, || update.clone().send()).await {
            Ok(_) | Err(Failure::Condition { .. }) => Ok(()),
            Err(failure) => Err(failure),
        }
    }
}
