use std::time::Duration;

use super::*;
use crate::access::{Kind, Role, Who};
use crate::seams::{Moment, Timestamp};

fn at(seconds: u64) -> Moment {
    Moment::default().after(Duration::from_secs(seconds))
}

fn knock(peer: &str, count: u64) -> Knock {
    Knock { peer: peer.to_owned(), count, code: "c".to_owned() }
}

#[test]
fn of_one_peer_one_refusal_a_minute_is_noted_and_none_is_lost() {
    let mut knocks = Knocks::default();
    assert_eq!(knocks.refused("a", "c", at(0)), Some(knock("a", 1)));
    for second in 1..50 {
        assert_eq!(knocks.refused("a", "c", at(second)), None);
    }
    assert_eq!(knocks.refused("b", "c", at(50)), Some(knock("b", 1)));
    assert_eq!(knocks.due(at(59)), []);
    assert_eq!(knocks.due(at(60)), [knock("a", 49)]);
    assert_eq!(knocks.due(at(110)), []);
    assert_eq!(knocks.refused("a", "c", at(111)), None);
    assert_eq!(knocks.due(at(120)), [knock("a", 1)]);
    assert_eq!(knocks.due(at(180)), []);
    assert!(knocks.is_empty());
}

#[test]
fn peers_without_number_are_counted_together() {
    let mut knocks = Knocks::default();
    for peer in 0..PEERS {
        assert!(knocks.refused(&format!("{peer}"), "c", at(0)).is_some());
    }
    assert_eq!(knocks.refused("x", "c", at(0)), Some(knock(OTHERS, 1)));
    assert_eq!(knocks.refused("y", "c", at(0)), None);
    assert_eq!(knocks.refused("0", "c", at(0)), None);
    assert_eq!(knocks.rest(), [knock("0", 1), knock(OTHERS, 1)]);
}

#[test]
fn a_long_name_is_cut_and_an_empty_one_left_out() {
    let who = Who::cell("c".into());
    let mut record = AuditRecord::wish("1".into(), Timestamp(1), Kind::Renew, "renew", &who);
    record.about("cell_id", &"ä".repeat(10_000));
    record.about("domain", "");
    record.shown_by(&Role::Cell("c".into()));
    assert_eq!(record.about["cell_id"].chars().count(), 256);
    assert!(!record.about.contains_key("domain"));
    assert_eq!(record.subject.as_deref(), Some("kapell://cell/c"));
}
