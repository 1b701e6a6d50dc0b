//! What is refused, in which words, and where the carets are.

use super::{excluding, parse};
use crate::job::Calendar;
use crate::schedule::Fault;

fn shown(faults: &[Fault]) -> Vec<String> {
    faults.iter().map(|fault| format!("{}\n{fault}", fault.carets())).collect()
}

/// One line, and what is said of it: the carets, then the words.
fn check(line: &str, want: &[(&str, &str)]) {
    let got = shown(&parse(&[line], "UTC").expect_err(line));
    let want: Vec<String> = want
        .iter()
        .map(|(carets, words)| format!("{line}\n{carets}\nschedule[0]: {words}"))
        .collect();
    assert_eq!(got, want);
}

#[test]
fn a_value_that_is_none_of_its_field() {
    check("61 * * * *", &[("^^", "`61` is no minute (write 0 to 59)")]);
    check("0 24 * * *", &[("  ^^", "`24` is no hour (write 0 to 23)")]);
    check("0 0 0 * *", &[("    ^", "`0` is no day of the month (write 1 to 31, L, LW or 15W)")]);
    check("0 0 * 13 *", &[("      ^^", "`13` is no month (write 1 to 12 or JAN to DEC)")]);
    let weekday = "write 0 (Sunday) to 7 (Sunday), SUN to SAT, FRI#2 or FRIL";
    check("0 0 * * 8", &[("        ^", &format!("`8` is no day of the week ({weekday})"))]);
    check("0 0 * * L", &[("        ^", &format!("`L` is no day of the week ({weekday})"))]);
    check("60 0 0 * * *", &[("^^", "`60` is no second (write 0 to 59)")]);
    check(
        "0 0 * JANUARY *",
        &[("      ^^^^^^^", "`JANUARY` is no month (write 1 to 12 or JAN to DEC)")],
    );
    check("0 ? * * *", &[("  ^", "`?` is no hour (write 0 to 23)")]);
    check("+5 * * * *", &[("^^", "`+5` is no minute (write 0 to 59)")]);
}

#[test]
fn every_fault_of_a_line_is_said_at_once() {
    check(
        "1,61,x 25 * * *",
        &[
            ("  ^^", "`61` is no minute (write 0 to 59)"),
            ("     ^", "`x` is no minute (write 0 to 59)"),
            ("       ^^", "`25` is no hour (write 0 to 23)"),
        ],
    );
}

#[test]
fn ranges_steps_and_lists_that_are_wrong() {
    check("0 22-6 * * *", &[("  ^^^^", "`22-6` ends before it begins (write `22-23,0-6`)")]);
    check(
        "0 0 * * FRI-MON",
        &[("        ^^^^^^^", "`FRI-MON` ends before it begins (write `5-6,0-1`)")],
    );
    check("5/15 * * * *", &[("^^^^", "`5/15` is a step from a single value (write `5-59/15`)")]);
    check("*/0 * * * *", &[("^^^", "`/0` is no step (write how many minutes apart, as in `*/5`)")]);
    let wide = "`/90` is wider than its 60 values (write a smaller step, or `@every` with a length of time)";
    check("*/90 * * * *", &[("^^^^", wide)]);
    check(
        "1,,2 * * * *",
        &[("  ^", "a minute is missing (write 0 to 59 before, after or between commas)")],
    );
    check(
        "0 0 * * MON#6",
        &[(
            "        ^^^^^",
            "`#6` is none of the weeks of a month (write #1 to #5, or #L for the last)",
        )],
    );
    check(
        "H(0-29 * * * *",
        &[("^^^^^^", "`H(0-29` is no form of `H` (write H, H/15, H(0-29) or H(0-29)/10)")],
    );
    check("H(29-0) * * * *", &[("^^^^^^^", "`(29-0)` ends before it begins (write `H(0-29)`)")]);
}

#[test]
fn too_few_and_too_many_fields() {
    let five = "write five: minute hour day month weekday; or six, with the second first";
    check("0 4 * *", &[("^^^^^^^", &format!("the line has 4 fields ({five})"))]);
    check("daily", &[("^^^^^", &format!("the line has 1 field ({five})"))]);
    let year = "write six fields: second minute hour day month weekday; a year cannot be given";
    check(
        "0 0 4 * * * 2027",
        &[("            ^^^^", &format!("there is a seventh field ({year})"))],
    );
    check("", &[("^", "the line is empty (write five fields as in `0 4 * * *`, or leave it out)")]);
    check(
        "  ",
        &[("  ^", "the line is empty (write five fields as in `0 4 * * *`, or leave it out)")],
    );
}

#[test]
fn a_zone_in_a_line_belongs_beside_it() {
    let words = "`CRON_TZ=` does not belong into a line (write `timezone: Europe/Berlin` beside `schedule`)";
    check("CRON_TZ=Europe/Berlin 0 4 * * *", &[("^^^^^^^^^^^^^^^^^^^^^", words)]);
    let words = "`TZ=` does not belong into a line (write `timezone: UTC` beside `schedule`)";
    check("TZ=UTC @daily", &[("^^^^^^", words)]);
}

#[test]
fn nicknames_that_are_none() {
    check("@dayly", &[("^^^^^^", "`@dayly` is not known (write `@daily`)")]);
    let reboot = "`@reboot` is not known (a job runs at times; for what runs always, apply an LRP)";
    check("@reboot", &[("^^^^^^^", reboot)]);
    check("@daily 5", &[("       ^", "nothing may follow `@daily` (write `@daily` alone)")]);
    let every = "write whole seconds or more, as in `@every 90s` or `@every 1h30m`";
    check("@every", &[("^^^^^^", &format!("`@every` says no length of time ({every})"))]);
    for length in ["soon", "0s", "500ms", "1.5s", "-1h"] {
        let carets = format!("       {}", "^".repeat(length.len()));
        let words = format!("`{length}` is no length of time between runs ({every})");
        check(&format!("@every {length}"), &[(&carets, &words)]);
    }
}

#[test]
fn what_never_comes_is_refused() {
    let words =
        "no such day ever comes (write days that one of the months has; `L` is the last of each)";
    check("0 0 30 2 *", &[("    ^^^^^^", words)]);
    check("0 0 31 4,6,9,11 *", &[("    ^^^^^^^^^^^^^", words)]);
    check("0 0 0 30 FEB *", &[("      ^^^^^^^^", words)]);
    check("0 0 8 * +MON#1", &[("    ^^^^^^^^^^", words)]);
    parse(&["0 0 30 2 MON", "0 0 29 2 *", "0 0 29 2 +MON"], "UTC").unwrap();
}

#[test]
fn an_unknown_zone_is_named_with_the_nearest() {
    for (zone, near) in [
        ("Europe/Brelin", "write `Europe/Berlin`"),
        ("Berlin", "write `Europe/Berlin`"),
        ("new york", "write `America/New_York`"),
        ("Asia/Calcuta", "write `Asia/Calcutta`"),
        ("+02:00", "write the name of a place as in `Europe/Berlin`, or UTC"),
        ("", "write the name of a place as in `Europe/Berlin`, or UTC"),
    ] {
        let faults = parse(&["@daily"], zone).unwrap_err();
        let want = format!("timezone: the time zone `{zone}` is not known ({near})");
        assert_eq!(faults.iter().map(ToString::to_string).collect::<Vec<_>>(), [want]);
    }
}

#[test]
fn calendars_that_are_wrong() {
    let dates = [
        "12-32",
        "2026-02-29",
        "2027-01-02..2026-12-24",
        "2026-12-24..01-02",
        "24.12.",
        "12-24..",
        "",
    ];
    let calendar = Calendar {
        dates: dates.map(str::to_owned).to_vec(),
        weekdays: vec!["sat".to_owned(), "caturday".to_owned()],
        hours: Some("22-6".to_owned()),
        ..Calendar::default()
    };
    let faults = excluding("@daily", "UTC", &[calendar, Calendar::default()]).unwrap_err();
    let mut want: Vec<String> = dates
        .iter()
        .enumerate()
        .map(|(at, date)| {
            format!(
                "exclude[0].dates[{at}]: `{date}` is no date and no range of dates (write 2026-12-24, \
                 12-24 (every year), 2026-12-24..2027-01-02 or 12-24..01-02)"
            )
        })
        .collect();
    want.push("exclude[0].weekdays[1]: `caturday` is no day of the week (write mon to sun, or monday to sunday)".into());
    want.push("exclude[0].hours: `22-6` is no range of hours (write it as 22:00-06:00)".into());
    want.push("exclude[1]: the calendar excludes nothing (write `dates`, `weekdays` or `hours`, or leave it out)".into());
    assert_eq!(faults.iter().map(ToString::to_string).collect::<Vec<_>>(), want);
}

#[test]
fn hours_that_are_none() {
    for hours in ["10:00-10:00", "24:00-06:00", "10:60-11:00", "9:00-10:00", "10:00", "10:00-25:00"]
    {
        let calendar = Calendar { hours: Some(hours.to_owned()), ..Calendar::default() };
        assert_eq!(excluding("@daily", "UTC", &[calendar]).unwrap_err().len(), 1, "{hours}");
    }
}

#[test]
fn faults_of_lines_zone_and_calendars_come_together() {
    let lines = ["61 * * * *".to_owned(), "@daily".to_owned(), "0 25 * * *".to_owned()];
    let wrong = Calendar { weekdays: vec!["x".to_owned()], ..Calendar::default() };
    let faults =
        crate::schedule::Schedule::parse(&lines, "Mars", &[wrong], None, "job").unwrap_err();
    let places: Vec<String> = faults.iter().map(|fault| fault.place.to_string()).collect();
    assert_eq!(places, ["schedule[0]", "schedule[2]", "timezone", "exclude[0].weekdays[0]"]);
}

#[test]
fn whatever_is_written_nothing_panics() {
    for line in [
        "ü * * * *",
        "* * * * ü#ü",
        "@ü",
        "/ / / / /",
        "- - - - -",
        "# # # # #",
        "H( H) H() H(- H/",
        "99999999999 * * * *",
        "W W W W W",
        ", , , , ,",
        "@every ü",
        "ü=ü",
        "0 0 -1W * *",
        "*/ * * * *",
    ] {
        for fault in parse(&[line], "UTC").expect_err(line) {
            fault.carets();
        }
    }
}
