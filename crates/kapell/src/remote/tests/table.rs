use unicode_width::UnicodeWidthStr as _;

use super::super::table::{Column, Table, column, cut};
use crate::logger::Style;

const COLUMNS: &[Column] =
    &[column("NAME", 9, 6), column("STATE", 8, 5), column("ZONE", 1, 4), column("WHY", 5, 8)];

fn table() -> Table {
    let row = |cells: [&str; 4]| cells.map(Into::into).to_vec();
    Table {
        columns: COLUMNS,
        rows: vec![
            row(["web-frontend", "RUNNING", "eu-west-1a", ""]),
            row(["worker", "CRASHED", "z", "Exited with status 137 (out of memory)"]),
        ],
        nothing: "none",
    }
}

const PLAIN: Style = Style { colour: false };

#[test]
fn everything_is_shown_where_there_is_room_or_no_terminal() {
    let want = "\
NAME          STATE    ZONE        WHY
web-frontend  RUNNING  eu-west-1a
worker        CRASHED  z           Exited with status 137 (out of memory)
";
    assert_eq!(table().render(None, PLAIN), want);
    assert_eq!(table().render(Some(200), PLAIN), want);
}

#[test]
fn the_least_important_columns_shrink_first_and_then_go() {
    let want = "\
NAME          STATE    ZONE  WHY
web-frontend  RUNNING  eu-…
worker        CRASHED  z     Exited with status 137…
";
    assert_eq!(table().render(Some(52), PLAIN), want);
    let want = "\
NAME      STATE  WHY
web-fro…  RUNN…
worker    CRAS…  Exited …
";
    assert_eq!(table().render(Some(25), PLAIN), want);
    let want = "NAME    STATE\nweb-f…  RUNN…\nworker  CRAS…\n";
    assert_eq!(table().render(Some(13), PLAIN), want);
    assert_eq!(table().render(Some(3), PLAIN), "NA…\nwe…\nwo…\n");
}

#[test]
fn no_line_is_ever_wider_than_the_terminal() {
    for width in 1..120 {
        let text = table().render(Some(width), PLAIN);
        assert!(text.lines().all(|line| line.width() <= width), "{width}:\n{text}");
    }
}

#[test]
fn wide_letters_and_control_characters_are_measured_as_shown() {
    assert_eq!(cut("日本語", 5), "日本…");
    assert_eq!(cut("日本語", 4), "日…");
    assert_eq!(cut("日本語", 6), "日本語");
    let mut table = table();
    table.rows = vec![["a\x1b[31m\n", "", "", ""].map(Into::into).to_vec()];
    let text = table.render(None, PLAIN);
    assert!(!text.contains('\x1b') && text.lines().count() == 2, "{text:?}");
}

#[test]
fn a_table_without_rows_says_so() {
    let table = Table { rows: Vec::new(), ..table() };
    assert_eq!(table.render(Some(80), PLAIN), "none\n");
}

#[test]
fn colour_changes_no_width() {
    let row =
        vec![super::super::table::coloured("x", crate::logger::style::Colour::Red), "y".into()];
    let table = Table { columns: &COLUMNS[..2], rows: vec![row], nothing: "" };
    let text = table.render(None, Style { colour: true });
    assert!(text.ends_with("\x1b[31mx\x1b[0m     y\n"), "{text:?}");
}
