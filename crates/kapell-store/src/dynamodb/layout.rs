//! The table: whether it is one of ours, and how one is made.

use std::time::Duration;

use aws_sdk_dynamodb::operation::describe_table::DescribeTableOutput;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, PointInTimeRecoverySpecification,
    ReturnValue, ScalarAttributeType, TableDescription, TableStatus,
};
use tokio::time::{Instant, sleep, timeout};

use super::Core;
use super::address::Address;
use super::failure::Failure;
use super::item::{Attributes, LAYOUT, PARTITION, SORT, bytes, number, number_in, text};
use super::turns::{ask, jittered};
use crate::error::Error;
use crate::model::SHARDS;

const FORMAT: u32 = 1;
/// A table takes its time to come up.
const MAKING: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_secs(1);
/// How the service says that a table is there, or is being made.
const IN_USE: &str = "ResourceInUseException";
/// That backups of a table cannot be turned on yet.
const NOT_YET: &str = "ContinuousBackupsUnavailableException";
/// And the emulator, that it makes none.
const UNKNOWN: &str = "UnknownOperationException";

/// Makes sure that a store of the known format is there, made now if that is asked for.
pub(super) async fn check(core: &Core, address: &Address, create: bool) -> Result<(), Error> {
    let described = core.within("open", describe(core)).await?;
    let was_there = described.is_some();
    let table = match described {
        Some(table) => table,
        None if create && address.create => {
            core.within("open", make(core)).await?;
            usable(core).await?
        }
        None if create => {
            return Err(Error::BadUrl { url: core.name.clone(), why: address.advice() });
        }
        None => return Err(Error::Absent { store: core.name.clone() }),
    };
    if let Some(why) = foreign(&table) {
        return Err(Error::BadUrl { url: core.name.clone(), why });
    }
    if table.table_status() == Some(&TableStatus::Creating) {
        usable(core).await?;
    }
    if create && address.create {
        keep_backups(core, was_there).await?;
    }
    let found = core.within("open", laid_out(core, create)).await?;
    let store = core.name.clone();
    match found {
        None => Err(Error::Absent { store }),
        Some((format, shards)) if format == u64::from(FORMAT) && shards == u64::from(SHARDS) => {
            Ok(())
        }
        Some((format, shards)) => {
            let found = format!("{format} with {shards} shards");
            Err(Error::Format { store, found, known: FORMAT })
        }
    }
}

async fn describe(core: &Core) -> Result<Option<TableDescription>, Failure> {
    let describe = core.client.describe_table().table_name(&core.table);
    match ask(core.timeout, || describe.clone().send()).await {
        Ok(DescribeTableOutput { table, .. }) => Ok(table),
        Err(Failure::Missing(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Paid by request, kept from being deleted by mistake; encrypted it is in any case.
async fn make(core: &Core) -> Result<(), Failure> {
    let odd = |error: aws_sdk_dynamodb::error::BuildError| Failure::Odd(error.to_string());
    let mut create = core
        .client
        .create_table()
        .table_name(&core.table)
        .billing_mode(BillingMode::PayPerRequest)
        .deletion_protection_enabled(true);
    for (name, kind, role) in [
        (PARTITION, ScalarAttributeType::S, KeyType::Hash),
        (SORT, ScalarAttributeType::B, KeyType::Range),
    ] {
        let attribute = AttributeDefinition::builder().attribute_name(name).attribute_type(kind);
        let key = KeySchemaElement::builder().attribute_name(name).key_type(role);
        create = create
            .attribute_definitions(attribute.build().map_err(odd)?)
            .key_schema(key.build().map_err(odd)?);
    }
    match create.send().await.map_err(Failure::of) {
        // Somebody else is making it.
        Err(failure) if failure.is(IN_USE) => Ok(()),
        made => made.map(drop),
    }
}

async fn usable(core: &Core) -> Result<TableDescription, Error> {
    let until = Instant::now() + MAKING;
    loop {
        let table = core.within("open", describe(core)).await?;
        if let Some(table) = table.filter(|it| it.table_status() == Some(&TableStatus::Active)) {
            return Ok(table);
        }
        if Instant::now() > until {
            let (store, call) = (core.name.clone(), "create table");
            return Err(Error::Timeout { store, call, limit: MAKING });
        }
        sleep(jittered(LOOK)).await;
    }
}

/// Why a table is none of ours, if it is not.
fn foreign(table: &TableDescription) -> Option<String> {
    let kind = |name: &str| {
        let mut all = table.attribute_definitions().iter();
        all.find(|it| it.attribute_name() == name).map(|it| it.attribute_type().as_str().to_owned())
    };
    let keys: Vec<String> = table
        .key_schema()
        .iter()
        .map(|key| {
            let name = key.attribute_name();
            format!("{name} ({} {})", key.key_type().as_str(), kind(name).unwrap_or_default())
        })
        .collect();
    let (is, want) = (keys.join(", "), format!("{PARTITION} (HASH S), {SORT} (RANGE B)"));
    (is != want).then(|| {
        format!("the keys of the table are {is}, and not {want}: it belongs to something else")
    })
}

/// A server that knows no backups makes none. One that makes them takes a while before it does of a new table.
async fn keep_backups(core: &Core, was_there: bool) -> Result<(), Error> {
    let until = Instant::now() + MAKING;
    let began = core.clock.now();
    loop {
        let failure = match timeout(core.timeout, ask_for_backups(core)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(failure)) => failure,
            Err(_) => Failure::Silence("no answer to `UpdateContinuousBackups`".to_owned()),
        };
        if failure.is(UNKNOWN) {
            return Ok(());
        }
        if failure.is(NOT_YET) && Instant::now() < until {
            sleep(jittered(LOOK)).await;
            continue;
        }
        // Whoever runs it has made it, and decided on this.
        if let Failure::Denied(why) = &failure
            && was_there
        {
            let (store, why) = (&core.name, why.to_string());
            tracing::warn!(%store, why, "point-in-time recovery of the table was not turned on: leave `create=true` out, or allow it");
            return Ok(());
        }
        return Err(failure.told(&core.name, "open", core.clock.now().since(began)));
    }
}

async fn ask_for_backups(core: &Core) -> Result<(), Failure> {
    let odd = |error: aws_sdk_dynamodb::error::BuildError| Failure::Odd(error.to_string());
    let keep = PointInTimeRecoverySpecification::builder().point_in_time_recovery_enabled(true);
    let update = core
        .client
        .update_continuous_backups()
        .table_name(&core.table)
        .point_in_time_recovery_specification(keep.build().map_err(odd)?);
    ask(core.timeout, || update.clone().send()).await.map(drop)
}

/// The format and the number of shards, if there is a store or one is laid out now.
async fn laid_out(core: &Core, create: bool) -> Result<Option<(u64, u64)>, Failure> {
    let get = core
        .client
        .get_item()
        .table_name(&core.table)
        .key(PARTITION, text(LAYOUT))
        .key(SORT, bytes(LAYOUT.as_bytes()))
        .consistent_read(true);
    let found = ask(core.timeout, || get.clone().send()).await?;
    if found.item().is_some() || !create {
        return found.item().map(numbers).transpose();
    }
    let lay_out = core
        .client
        .update_item()
        .table_name(&core.table)
        .key(PARTITION, text(LAYOUT))
        .key(SORT, bytes(LAYOUT.as_bytes()))
        // Whoever comes second changes nothing.
        .update_expression("SET #format = if_not_exists(#format, :format), shards = if_not_exists(shards, :shards)")
        .expression_attribute_names("#format", "format")
        .expression_attribute_values(":format", number(FORMAT.into()))
        .expression_attribute_values(":shards", number(SHARDS.into()))
        .return_values(ReturnValue::AllNew);
    let done = ask(core.timeout, || lay_out.clone().send()).await?;
    done.attributes().map(numbers).transpose()
}

fn numbers(item: &Attributes) -> Result<(u64, u64), Failure> {
    let part = |name| Ok::<_, Failure>(number_in(item, name)?.unwrap_or_default());
    Ok((part("format")?, part("shards")?))
}
