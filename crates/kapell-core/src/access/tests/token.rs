use std::time::Duration;

use super::*;
use crate::seams::Timestamp;

const NOW: Timestamp = Timestamp(1_000_000);

fn claims(purpose: Purpose) -> Claims {
    Claims {
        id: TokenId::drawn(7),
        purpose,
        domains: None,
        name: "ci".to_owned(),
        expires_at: NOW.after(Duration::from_secs(60)),
        cell_id: None,
    }
}

#[test]
fn a_token_counts_until_it_expires() {
    let token = claims(Purpose::Reader);
    assert_eq!(token.in_time(Timestamp(token.expires_at.0 - 1)), Ok(()));
    assert_eq!(token.in_time(token.expires_at), Err(Invalid::Expired));
}

#[test]
fn only_what_was_made_and_has_not_ended_stands() {
    let token = claims(Purpose::CellJoin);
    let issued = Issued { claims: token.clone(), created_at: NOW };
    assert_eq!(token.stands(Some(&issued), None), Ok(()));
    assert_eq!(token.stands(None, None), Err(Invalid::Unknown));
    let other = Claims { name: "other".to_owned(), ..token.clone() };
    assert_eq!(other.stands(Some(&issued), None), Err(Invalid::Unknown));
    let ended = |how| Ended { at: NOW, how, expires_at: token.expires_at, mark: 1 };
    let revoked = ended(How::Revoked);
    assert_eq!(token.stands(Some(&issued), Some(&revoked)), Err(Invalid::Revoked));
    let used = ended(How::Used(cell("c")));
    assert_eq!(token.stands(Some(&issued), Some(&used)), Err(Invalid::Used));
    // What has ended stays so, whatever else is known.
    assert_eq!(token.stands(None, Some(&used)), Err(Invalid::Used));
}

#[test]
fn what_cannot_be_a_token_is_told_at_once() {
    assert_eq!(claims(Purpose::Operator).faults(NOW), Vec::<String>::new());
    let bad = Claims {
        domains: Some(["a b".into()].into()),
        name: "x\ny".to_owned(),
        expires_at: NOW,
        cell_id: Some(cell("c")),
        ..claims(Purpose::Operator)
    };
    let faults = bad.faults(NOW);
    let begins: Vec<&str> = faults.iter().filter_map(|it| it.split(':').next()).collect();
    assert_eq!(begins, ["ttl", "name", "domains", "cell_id"]);
    let empty = Claims { domains: Some([].into()), ..claims(Purpose::Reader) };
    assert_eq!(empty.faults(NOW).len(), 1);
    let scoped = Claims { domains: Some(["a".into()].into()), ..claims(Purpose::CellJoin) };
    assert_eq!(scoped.faults(NOW).len(), 1);
    let long = Claims { expires_at: Timestamp(i64::MAX), ..claims(Purpose::Reader) };
    assert_eq!(long.faults(NOW).len(), 1);
}

#[test]
fn who_bears_a_token_is_what_it_says() {
    let scoped = Claims { domains: Some(["a".into()].into()), ..claims(Purpose::Reader) };
    let who = scoped.who();
    assert_eq!((who.role, who.domains), (Role::Reader, only(&["a"])));
    assert_eq!((who.name.as_str(), who.token), ("ci", Some(TokenId::drawn(7))));
    let joins = Claims { cell_id: Some(cell("c")), ..claims(Purpose::CellJoin) };
    assert_eq!(joins.who().role, Role::Joiner(Some(cell("c"))));
    let nameless = Claims { name: String::new(), ..claims(Purpose::Operator) };
    assert_eq!(nameless.who().name, "0000000000000007");
}

#[test]
fn ids_are_sixteen_small_hexadecimal_digits() {
    assert_eq!(TokenId::parse("00000000000000ff"), Some(TokenId::drawn(255)));
    for bad in ["", "ff", "00000000000000FF", "00000000000000fg", "00000000000000ff0"] {
        assert_eq!(TokenId::parse(bad), None, "{bad}");
    }
}
