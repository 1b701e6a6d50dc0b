use kapell_core::access::{How, Invalid};

use super::*;

#[tokio::test]
async fn what_was_made_and_ended_outlives_the_leader() {
    let store = store();
    let first = open(&store).await;
    let [kept, revoked, used] = [
        first.issue(wanted(Purpose::Operator)).await.unwrap(),
        first.issue(wanted(Purpose::Reader)).await.unwrap(),
        first.issue(wanted(Purpose::CellJoin)).await.unwrap(),
    ];
    assert!(first.end(&revoked.claims.id, How::Revoked).await.unwrap());
    assert!(first.end(&used.claims.id, How::Used("c".into())).await.unwrap());
    let second = open(&store).await;
    for ledger in [&first, &second] {
        assert_eq!(ledger.judge(&kept.claims), Ok(()));
        assert_eq!(ledger.judge(&revoked.claims), Err(Invalid::Revoked));
        assert_eq!(ledger.judge(&used.claims), Err(Invalid::Used));
        let ended: Vec<bool> = ledger.list().iter().map(|it| it.ended.is_some()).collect();
        assert_eq!(ended.iter().filter(|it| **it).count(), 2);
        assert_eq!(ended.len(), 3);
    }
}

#[tokio::test]
async fn of_all_who_use_a_token_one_succeeds_whoever_leads() {
    let store = store();
    let before = open(&store).await;
    let token = before.issue(wanted(Purpose::CellJoin)).await.unwrap().claims;
    let after = open(&store).await;
    let uses = [
        after.end(&token.id, How::Used("a".into())).await.unwrap(),
        before.end(&token.id, How::Used("b".into())).await.unwrap(),
        after.end(&token.id, How::Used("a".into())).await.unwrap(),
    ];
    assert_eq!(uses, [true, false, false]);
    assert_eq!(before.judge(&token), Err(Invalid::Used));
    // Revoking what was used changes nothing.
    assert!(!before.end(&token.id, How::Revoked).await.unwrap());
    assert_eq!(open(&store).await.judge(&token), Err(Invalid::Used));
}

#[tokio::test]
async fn what_is_not_in_the_store_does_not_count() {
    let (one, two) = (store(), store());
    let token = open(&one).await.issue(wanted(Purpose::Operator)).await.unwrap().claims;
    let other = open(&two).await;
    assert_eq!(other.judge(&token), Err(Invalid::Unknown));
    let ended = other.end(&token.id, How::Revoked).await;
    assert!(matches!(ended, Err(LedgerError::NoSuchToken(_))), "{ended:?}");
}

#[tokio::test]
async fn what_has_expired_is_forgotten_and_still_cannot_be_used() {
    let store = store();
    let ledger = open(&store).await;
    let ttl = Duration::from_millis(1);
    let token = ledger.issue(Wanted { ttl, ..wanted(Purpose::CellJoin) }).await.unwrap().claims;
    ledger.end(&token.id, How::Used("c".into())).await.unwrap();
    while now() <= token.expires_at {
        tokio::task::yield_now().await;
    }
    assert_eq!(ledger.judge(&token), Err(Invalid::Expired));
    let next = open(&store).await;
    assert!(next.list().is_empty());
    let held = store.list().await.unwrap().into_iter().filter(|(_, entry)| entry.held.is_some());
    assert_eq!(held.count(), 0);
}

#[tokio::test]
async fn a_token_that_cannot_be_is_refused() {
    let ledger = open(&store()).await;
    let bad = Wanted { ttl: Duration::ZERO, ..wanted(Purpose::Reader) };
    let told = ledger.issue(bad).await.unwrap_err().to_string();
    assert!(told.starts_with("ttl: "), "{told}");
    assert!(ledger.list().is_empty());
}
