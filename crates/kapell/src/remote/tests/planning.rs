use kapell_api::v1::Plan;
use kapell_core::manifest;

use super::super::plan::{summary, wishes};

fn plan(json: &str) -> Plan {
    serde_json::from_str(json).unwrap()
}

#[test]
fn the_last_line_says_what_it_comes_to() {
    let cases = [
        (
            r#"{"fits":true,"wishes":[],"units":[],"stops":[],"silent":["a"]}"#,
            "all fits: 0 would start, 1 cell did not answer; nothing was changed\n",
        ),
        (
            r#"{"fits":false,"wishes":[],"units":[{"subject":"lrp/a/0","reason":"no","wished":true,"waits":false}],
               "stops":[],"silent":["a","b"]}"#,
            "not all fits: 0 would start, 1 would find no cell, 2 cells did not answer; nothing was changed\n",
        ),
        (
            r#"{"fits":false,"wishes":[{"subject":"lrp/a","step":"refused","before":1,"after":1},
               {"subject":"lrp/b","step":"not_done","before":0,"after":0}],"units":[],"stops":[],"silent":[]}"#,
            "nothing would be done: 1 would be refused, 1 not done because of that; nothing was changed\n",
        ),
    ];
    for (json, want) in cases {
        assert_eq!(summary(&plan(json)), want);
    }
}

#[test]
fn a_plan_is_asked_for_in_the_order_of_the_files() {
    let text = "kind: task\ntask_guid: t\ndomain: d\naction: {run: {path: x}}\n---\n\
                kind: lrp\nprocess_guid: web\ndomain: d\naction: {run: {path: x}}\n";
    let documents = manifest::read(text.as_bytes()).unwrap();
    let wishes = wishes(documents.into_iter().map(|it| it.document).collect());
    assert_eq!(wishes.order, ["task/t", "lrp/web"]);
}
