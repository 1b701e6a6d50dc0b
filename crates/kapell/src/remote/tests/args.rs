use clap::{CommandFactory as _, Parser as _};

use super::super::target::Target;
use crate::cli::Cli;

#[test]
fn the_command_line_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn commands_are_taken_as_people_write_them() {
    for line in [
        "apply -f a.yaml -f dir --dry-run --url http://a,http://b",
        "apply -f -",
        "lrp list --watch -o json",
        "lrp --url http://a list",
        "lrp show web --output yaml",
        "lrp scale web 3 --token-file t",
        "task run --wait --rm -e A=b --memory 64 -- sh -c true",
        "task run -- sleep --help",
        "task list",
        "task cancel a b",
        "domain set cf --ttl 2m",
        "cells",
        "cells --watch",
        "cells evacuate cell-1",
        "cells --state-dir d evacuate cell-1",
        "cells --url http://a evacuate cell-1 --token-file t",
        "domain --state-dir d set cf",
        "lrp --state-dir d scale web 1",
        "task --state-dir d cancel a",
        "logs -f --tail 10 --timestamps web/0",
        "events -f -o json --after 3-7",
        "explain lrp/web/2",
        "explain lrp/web",
        "plan -f a.yaml -f - -o json",
        "wait task/x --timeout 5s",
        "completions bash",
    ] {
        let words = ["kapell"].into_iter().chain(line.split(' '));
        if let Err(error) = Cli::try_parse_from(words) {
            panic!("{line}: {error}");
        }
    }
    for line in
        ["task run", "task run --rm -- true", "lrp scale web -1", "apply", "wait a/b/c", "wait /"]
    {
        let words = ["kapell"].into_iter().chain(line.split(' '));
        assert!(Cli::try_parse_from(words).is_err(), "{line}");
    }
}

#[test]
fn targets_are_read_in_all_their_forms() {
    for (text, want) in [
        ("web", "lrp/web"),
        ("web/0", "lrp/web/0"),
        ("lrp/web", "lrp/web"),
        ("lrp/web/2", "lrp/web/2"),
        ("task/x", "task/x"),
        ("cell/y", "cell/y"),
        ("domain/z", "domain/z"),
        ("job/nightly", "job/nightly"),
        ("run/nightly:1763290800-3f9a", "run/nightly:1763290800-3f9a"),
    ] {
        assert_eq!(text.parse::<Target>().unwrap().to_string(), want);
    }
    for (text, want) in [
        ("web/x", "`x` is no index: write web/0"),
        ("", "write lrp/GUID, GUID/INDEX, task/GUID, cell/ID, domain/NAME, job/ID or run/ID"),
        ("a/b/c", "write lrp/GUID, GUID/INDEX, task/GUID, cell/ID, domain/NAME, job/ID or run/ID"),
    ] {
        assert_eq!(text.parse::<Target>().unwrap_err(), want);
    }
}
