use super::*;

/// Written by hand from what roles are for, never from `grant`.
/// Columns: operator, reader, cell, host, joiner.
const SPEC: &str = "
    health            yes      yes      yes    yes  -
    describe          yes      yes      yes    yes  -
    figures           all      all      -      -    -
    pages             all      all      -      -    -
    read              domains  domains  -      -    -
    plan              domains  -        -      -    -
    change            domains  -        -      -    -
    run_on_hosts      all      -        -      -    -
    read_cells        all      all      -      -    -
    command_cells     all      -        -      -    -
    speak_for_a_cell  all      -        self   -    -
    join              -        -        -      -    self
    renew             -        -        self   -    -
    tokens            all      -        -      -    -
    read_secrets      domains  domains  -      -    -
    change_secrets    domains  -        -      -    -
    take_secrets      owner    -        self   -    -
    audit             all      -        -      -    -
    order             all      -        -      yes  -
";

fn show(grant: Grant) -> &'static str {
    match grant {
        Grant::Always => "yes",
        Grant::InItsDomains => "domains",
        Grant::WithAllDomains => "all",
        Grant::AsOwner => "owner",
        Grant::AsItself => "self",
        Grant::Never => "-",
    }
}

#[test]
fn every_role_may_do_what_is_written_and_nothing_else() {
    let rows: Vec<Vec<_>> =
        SPEC.trim().lines().map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), Kind::ALL.len(), "one row a kind");
    let mut wrong = Vec::new();
    for (row, kind) in rows.iter().zip(Kind::ALL) {
        assert_eq!(row[0], kind.name().replace(' ', "_"));
        assert_eq!(row.len(), 1 + RoleKind::ALL.len(), "{row:?}");
        for (want, role) in row[1..].iter().zip(RoleKind::ALL) {
            let got = show(grant(kind, role));
            if got != *want {
                wrong.push(format!("{} x {}: want {want}, got {got}", kind.name(), role.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} cells differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn domains_are_kept_apart() {
    let (a, b) = (domain("a"), domain("b"));
    let scoped = who(Role::Operator, only(&["a"]));
    assert_eq!(allows(&scoped, Kind::Change, About::Domain(&a)), Ok(()));
    let refused = allows(&scoped, Kind::Change, About::Domain(&b)).unwrap_err();
    assert_eq!(refused.to_string(), "operator `ann` of `a` has nothing to do with domain `b`");
    let reader = who(Role::Reader, only(&["a", "c"]));
    assert_eq!(allows(&reader, Kind::Read, About::Domain(&a)), Ok(()));
    assert!(allows(&reader, Kind::Read, About::Domain(&b)).is_err());
    let refused = allows(&reader, Kind::Change, About::Domain(&a)).unwrap_err();
    assert_eq!(refused.to_string(), "reader `ann` of `a`, `c` may not change what is desired");
    let all = who(Role::Operator, Domains::All);
    assert_eq!(allows(&all, Kind::Change, About::Domain(&b)), Ok(()));
}

#[test]
fn what_is_of_the_whole_platform_needs_all_domains() {
    for kind in [Kind::Tokens, Kind::Audit, Kind::CommandCells, Kind::SpeakForCell, Kind::Figures] {
        assert_eq!(allows(&who(Role::Operator, Domains::All), kind, About::Anything), Ok(()));
        let scoped = who(Role::Operator, only(&["a"]));
        let refused = allows(&scoped, kind, About::Anything).unwrap_err();
        assert!(refused.to_string().ends_with("that needs all domains"), "{refused}");
    }
}

#[test]
fn a_cell_speaks_for_itself_only() {
    let (one, two) = (cell("one"), cell("two"));
    let who = Who::cell(one.clone());
    for kind in [Kind::SpeakForCell, Kind::Renew, Kind::TakeSecrets] {
        assert_eq!(allows(&who, kind, About::Cell(&one)), Ok(()));
        let refused = allows(&who, kind, About::Cell(&two)).unwrap_err();
        assert!(refused.to_string().starts_with("cell `one` may not "), "{refused}");
        assert!(refused.to_string().ends_with("it would be cell `two`"), "{refused}");
    }
    let may = |kind: &Kind| allows(&who, *kind, About::Anything).is_ok();
    let all: Vec<Kind> = Kind::ALL.into_iter().filter(may).collect();
    assert_eq!(
        all,
        [Kind::Health, Kind::Describe, Kind::SpeakForCell, Kind::Renew, Kind::TakeSecrets]
    );
}

#[test]
fn no_token_that_was_made_reads_a_secret_back() {
    assert_eq!(allows(&Who::owner(), Kind::TakeSecrets, About::Anything), Ok(()));
    let made = Who { token: Some(TokenId::drawn(1)), ..Who::owner() };
    let refused = allows(&made, Kind::TakeSecrets, About::Anything).unwrap_err();
    assert!(refused.to_string().ends_with("that is for cells"), "{refused}");
    assert_eq!(allows(&made, Kind::ChangeSecrets, About::Domain(&domain("a"))), Ok(()));
}

#[test]
fn who_wants_to_join_may_do_nothing_else_and_only_as_named() {
    let (one, two) = (cell("one"), cell("two"));
    let named = who(Role::Joiner(Some(one.clone())), Domains::All);
    let any = who(Role::Joiner(None), Domains::All);
    assert_eq!(allows(&named, Kind::Join, About::Cell(&one)), Ok(()));
    assert!(allows(&named, Kind::Join, About::Cell(&two)).is_err());
    assert_eq!(allows(&any, Kind::Join, About::Cell(&two)), Ok(()));
    let may = |kind: &Kind| allows(&any, *kind, About::Anything).is_ok();
    assert_eq!(Kind::ALL.into_iter().filter(may).collect::<Vec<_>>(), [Kind::Join]);
}
