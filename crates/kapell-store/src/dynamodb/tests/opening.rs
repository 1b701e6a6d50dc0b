use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};

use super::super::item::{LAYOUT, PARTITION, SORT, bytes, number, text};
use super::front::Fate;
use super::{Place, server};
use crate::dynamodb::DynamoDb;
use crate::error::Error;
use crate::open::How;
use crate::store::Store as _;
use crate::testing::{drawn, how};

async fn refused(url: &str, how: &How) -> Error {
    match DynamoDb::open(url, how).await {
        Ok(store) => panic!("{store:?} was opened"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_table_is_made_only_when_asked_for_and_else_it_is_said_how() {
    let test = "opening::a_table_is_made_only_when_asked_for_and_else_it_is_said_how";
    let Some(place) = Place::find(test).await else { return };
    let with = place.url(place.server);
    let without = with.replace("&create=true", "");
    let (table, at) = (&place.table, place.server);
    let error = refused(&without, &how()).await;
    let said = error.to_string();
    assert!(
        said.starts_with(&format!("`dynamodb://local/{table}?endpoint=http://{at}` names no")),
        "{said}"
    );
    assert!(said.contains(&format!("there is no table `{table}`")), "{said}");
    assert!(
        said.contains(&format!("kapell host --store 'dynamodb://local/{table}?create=true'")),
        "{said}"
    );
    assert!(said.contains("aws dynamodb create-table --table-name"), "{said}");
    // Whoever only reads makes nothing, whatever the URL says.
    let absent = refused(&with, &How { create: false, ..how() }).await;
    assert!(matches!(absent, Error::Absent { .. }), "{absent:?}");
    let (one, other) = (how(), how());
    let (one, other) = tokio::join!(DynamoDb::open(&with, &one), DynamoDb::open(&with, &other));
    let (one, _) = (one.expect("made"), other.expect("made by both"));
    assert_eq!(one.name(), format!("dynamodb://local/{table}?endpoint=http://{at}"));
    let made = one.core.client.describe_table().table_name(table).send().await.unwrap();
    let made = made.table.unwrap();
    assert_eq!(made.deletion_protection_enabled, Some(true));
    let billing = made.billing_mode_summary.unwrap().billing_mode;
    assert_eq!(billing, Some(BillingMode::PayPerRequest));
    DynamoDb::open(&without, &How { create: false, ..how() }).await.expect("it is there now");
}

/// A new table has no backups for a while; whoever made one himself decides about them himself.
#[tokio::test]
async fn backups_are_waited_for_and_asked_for_where_that_is_allowed() {
    let test = "opening::backups_are_waited_for_and_asked_for_where_that_is_allowed";
    let Some(place) = Place::find(test).await else { return };
    let (url, denied) =
        (place.url(place.front.address), Fate::Refused(400, "AccessDeniedException"));
    let pass = Fate::Passes;
    place.front.set([pass, Fate::Refused(400, "LimitExceededException")], pass);
    let full = refused(&url, &how()).await;
    assert!(matches!(full, Error::Failed { .. }) && full.may_pass(), "{full:?}");
    assert_eq!(place.front.asked(), ["DescribeTable", "CreateTable"]);
    place.front.set([pass, pass, pass, denied], pass);
    let error = refused(&url, &how()).await;
    assert!(matches!(error, Error::Denied { .. }), "{error:?}");
    let soon = Fate::Refused(400, "ContinuousBackupsUnavailableException");
    place.front.set([pass, soon, soon], pass);
    drop(place.through().await);
    let backups = "UpdateContinuousBackups";
    let asked = place.front.asked();
    assert_eq!(asked[..4], ["DescribeTable", backups, backups, backups], "{asked:?}");
    place.front.set([pass, denied], pass);
    drop(place.through().await);
    place.front.set([pass, Fate::Refused(400, "ValidationException")], pass);
    let error = refused(&url, &how()).await;
    assert!(matches!(error, Error::Failed { .. }), "{error:?}");
}

#[tokio::test]
async fn a_table_of_something_else_is_left_alone() {
    let test = "opening::a_table_of_something_else_is_left_alone";
    let Some(place) = Place::find(test).await else { return };
    let client = place.direct().await.core.client.clone();
    let foreign = format!("foreign-{:016x}", drawn());
    let id = AttributeDefinition::builder()
        .attribute_name("id")
        .attribute_type(ScalarAttributeType::S)
        .build()
        .unwrap();
    let hash =
        KeySchemaElement::builder().attribute_name("id").key_type(KeyType::Hash).build().unwrap();
    let create =
        client.create_table().table_name(&foreign).billing_mode(BillingMode::PayPerRequest);
    create.attribute_definitions(id).key_schema(hash).send().await.unwrap();
    let url = place.url(place.server).replace(&place.table, &foreign);
    let error = refused(&url, &how()).await.to_string();
    assert!(
        error.contains("the keys of the table are id (HASH S), and not pk (HASH S), sk (RANGE B)"),
        "{error}"
    );
}

#[tokio::test]
async fn a_store_of_another_format_is_refused() {
    let test = "opening::a_store_of_another_format_is_refused";
    let Some(place) = Place::find(test).await else { return };
    let store = place.direct().await;
    let put = store.core.client.put_item().table_name(&place.table);
    let put = put.item(PARTITION, text(LAYOUT)).item(SORT, bytes(LAYOUT.as_bytes()));
    put.item("format", number(2)).item("shards", number(16)).send().await.unwrap();
    let error = refused(&place.url(place.server), &how()).await;
    assert!(
        matches!(&error, Error::Format { found, known: 1, .. } if found == "2 with 16 shards"),
        "{error:?}"
    );
}

#[tokio::test]
async fn authorities_that_cannot_be_read_are_named() {
    let Some(server) = server("opening::authorities_that_cannot_be_read_are_named") else { return };
    let url = format!(
        "dynamodb://local/table?endpoint=https://{server}&credentials=none&ca=/no/such/file"
    );
    let error = refused(&url, &how()).await.to_string();
    assert!(error.contains("the authorities in `/no/such/file`"), "{error}");
}

/// An authority made for the tests of Cassandra, its end torn off.
const TORN: &str = "\
-----BEGIN CERTIFICATE-----
MIIBeTCCAR+gAwIBAgIUEZIcXZP7DzkgilCyZ3thAKKH+nQwCgYIKoZIzj0EAwIw
";
/// Whole as PEM, and no certificate.
const GARBAGE: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
/// Something else than a certificate.
const KEY: &str = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";

#[tokio::test]
async fn authorities_that_are_damaged_or_missing_are_refused_before_anyone_is_asked() {
    let dir = tempfile::tempdir().unwrap();
    let none = "there are no certificates in it";
    for (name, text, why) in [
        ("torn", TORN, "section end"),
        ("garbage", GARBAGE, "invalid peer certificate: BadEncoding"),
        ("empty", "", none),
        ("key", KEY, none),
    ] {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        let path = path.display();
        let url = format!(
            "dynamodb://local/table?endpoint=https://127.0.0.1:1&credentials=none&ca={path}"
        );
        let error = refused(&url, &how()).await;
        assert!(matches!(error, Error::BadUrl { .. }) && !error.may_pass(), "{name}: {error:?}");
        let said = error.to_string();
        assert!(said.contains(&format!("the authorities in `{path}`: ")), "{name}: {said}");
        assert!(said.contains(why) && said.contains("wants certificates in PEM"), "{name}: {said}");
    }
}
