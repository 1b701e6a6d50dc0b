//! What a host has to be allowed to do is what the docs say.

use std::collections::BTreeSet;

use kapell_core::seat::{Epoch, Seat};

use super::{LEASE, Place, SHARD, key, raised};
use crate::model::{Generation, Op};
use crate::open::How;
use crate::store::{Shards as _, Ttl as _};
use crate::testing::how;

const DOCS: &str = include_str!("../../../../../docs/dynamodb.md");

/// The actions of the policy that the docs give.
fn allowed() -> BTreeSet<String> {
    let (_, rest) = DOCS.split_once("```json\n").expect("a policy");
    let (policy, _) = rest.split_once("```").expect("its end");
    let policy: serde_json::Value = serde_json::from_str(policy).expect("JSON");
    assert_eq!(policy["Statement"].as_array().map(Vec::len), Some(1));
    let actions = policy["Statement"][0]["Action"].as_array().expect("actions");
    actions.iter().map(|action| action.as_str().expect("a name").to_owned()).collect()
}

/// Which rights a request goes by: transactions go by those of their parts.
fn right_to(request: &str) -> String {
    let item = if ["Get", "Put", "Update", "Delete", "ConditionCheck"].contains(&request) {
        "Item"
    } else {
        ""
    };
    format!("dynamodb:{request}{item}")
}

#[tokio::test]
async fn the_policy_of_the_docs_covers_all_that_is_asked_and_no_more() {
    let test = "rights::the_policy_of_the_docs_covers_all_that_is_asked_and_no_more";
    let Some(place) = Place::find(test).await else { return };
    let mut needed = BTreeSet::new();
    drop(place.through().await);
    let made: BTreeSet<String> = place.front.asked().into_iter().collect();
    for extra in ["CreateTable", "UpdateContinuousBackups"] {
        assert!(made.contains(extra) && !allowed().contains(&right_to(extra)), "{made:?}");
        assert!(DOCS.contains(&format!("`dynamodb:{extra}`")), "the docs do not name {extra}");
    }
    place.front.set([], super::front::Fate::Passes);
    let url = place.url(place.front.address).replace("&create=true", "");
    let store =
        crate::dynamodb::DynamoDb::open(&url, &How { create: true, ..how() }).await.unwrap();
    let (seat, gone) = (key("seat"), key("gone"));
    for key in [&seat, &gone] {
        assert!(store.insert_if_absent(key, Generation(0), b"a", LEASE).await.unwrap().is_done());
    }
    assert!(store.compare_and_swap(&seat, b"a", b"b", LEASE).await.unwrap().is_done());
    assert!(store.compare_and_delete(&gone, b"a").await.unwrap().is_done());
    store.prepare(LEASE.unwrap()).await.unwrap();
    store.read(&seat).await.unwrap();
    store.lift(&seat, Generation(7)).await.unwrap();
    drop(store.watch(&seat).await.unwrap());
    assert_eq!(store.list().await.unwrap().len(), 2);
    let at = raised(&store).await;
    let ops = [Op::Put(key("r"), vec![1]), Op::Delete(key("s"))];
    assert!(store.commit(SHARD, at, &ops).await.is_ok());
    store.fence(SHARD).await.unwrap();
    assert_eq!(store.scan(SHARD, None).await.unwrap().items.len(), 1);
    let next = store.raise(Seat::FIRST, Epoch(2)).await.unwrap();
    assert!(matches!(next, crate::model::Raise::Done(_)), "{next:?}");

    let transactions = ["TransactWriteItems", "TransactGetItems"];
    let asked = place.front.asked().into_iter();
    needed.extend(asked.filter(|what| !transactions.contains(&what.as_str())));
    needed.extend(place.front.parts());
    let needed: BTreeSet<String> = needed.iter().map(|what| right_to(what)).collect();
    assert_eq!(needed, allowed());
}
