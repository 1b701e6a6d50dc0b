use kapell_core::board::{ActualLrp, ActualState, DesiredLrp, LrpKey};
use kapell_core::seams::Timestamp;

use super::super::lrp::list;
use crate::logger::Style;

fn instance(guid: &str, state: ActualState, evacuating: bool) -> ActualLrp {
    let key = LrpKey { process_guid: guid.into(), index: 0 };
    let lrp = ActualLrp::unclaimed(&key, "d".into(), Timestamp(0));
    ActualLrp { state, evacuating, cell_id: Some("a".into()), ..lrp }
}

fn lines(desired: &[DesiredLrp], actual: &[ActualLrp]) -> Vec<String> {
    let (table, _) = list(desired, actual, Timestamp(0));
    let text = table.render(None, Style { colour: false });
    text.lines().skip(1).map(|it| it.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn web() -> DesiredLrp {
    let json = r#"{"process_guid":"web","domain":"d","action":{"run":{"path":"x"}}}"#;
    serde_json::from_str(json).unwrap()
}

#[test]
fn what_runs_and_is_not_desired_is_listed_as_that() {
    let left = instance("left", ActualState::Running, false);
    let want = ["web d 0/1 starting - -", "left d 1/0 not desired - -"];
    assert_eq!(lines(&[web()], std::slice::from_ref(&left)), want);
    let (_, value) = list(&[], &[left], Timestamp(0));
    assert_eq!((&value[0]["process_guid"], &value[0]["desired"]), (&"left".into(), &false.into()));
    assert_eq!(value[0]["actual_lrps"][0]["state"], "RUNNING");
}

#[test]
fn what_moves_runs_for_as_long_as_its_twin_does() {
    let twin = instance("web", ActualState::Running, true);
    assert_eq!(lines(&[web()], &[twin]), ["web d 1/1 running - -"]);
}
