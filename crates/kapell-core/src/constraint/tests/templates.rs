use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::{ProptestConfig, any, proptest};
use serde_json::{Value as Json, json};

use super::job;
use crate::constraint::template::FIELDS;
use crate::constraint::{About, Seen, Template, Work};
use crate::run::{RunId, Trigger};
use crate::seams::Timestamp;

fn about(work: Option<Work>) -> About {
    About {
        definition: Arc::new(job(json!([]), Json::Null)),
        run_id: RunId::scheduled(&"report".into(), Timestamp(1_000_000)),
        attempt: 1,
        scheduled_at: Timestamp(1_000_000),
        due_at: Timestamp(1_000_500),
        trigger: Trigger::Schedule,
        parameters: BTreeMap::from([("DAY".to_owned(), "mon".to_owned())]),
        work,
    }
}

fn scope() -> Json {
    let work = Work {
        started_at: Timestamp(0),
        ended_at: Timestamp(1500),
        exit_code: Some(3),
        failure: Some("exit 3".to_owned()),
    };
    let seen = Seen { name: "time_window", met: Some(false), message: "say \"no\"".to_owned() };
    about(Some(work)).scope(Some(&seen), Timestamp(2000))
}

fn filled(text: &str, scope: &Json) -> String {
    Template::parse(text).unwrap().fill(scope)
}

#[test]
fn fields_are_filled_in() {
    for (text, right) in [
        ("plain } text {", "plain } text {"),
        ("{{run.id}}/{{ run.attempt }}", "report:1000/1"),
        ("{{ job.name }} {{ job.domain }}", "report jobs"),
        ("{{ run.scheduled_at }}", "1970-01-01T00:16:40Z"),
        ("{{ run.exit_code }} {{ run.failure }} {{ run.duration_seconds }}", "3 exit 3 1.5"),
        ("{{ constraint.met }}: {{ constraint.message }}", "false: say \"no\""),
        ("{{ run.parameters.DAY }}{{ run.parameters.NONE | default(\"-}}-\") }}", "mon-}}-"),
        ("{{ \"{{\" }}", "{{"),
        ("{{ phase }} {{ now }}", "after 1970-01-01T00:00:02Z"),
    ] {
        assert_eq!(filled(text, &scope()), right, "{text}");
    }
    let before = about(None).scope(None, Timestamp(0));
    assert_eq!(
        filled("[{{ run.exit_code }}] {{ run.failure | default(\"none\") }}", &before),
        "[] none"
    );
}

#[test]
fn every_field_that_may_be_named_is_there() {
    let scope = scope();
    for field in FIELDS {
        let found = field.split('.').try_fold(&scope, |at, part| at.get(part));
        assert!(found.is_some_and(|value| !value.is_null()), "{field}");
    }
}

#[test]
fn texts_of_a_body_are_filled_in_and_cannot_break_out_of_it() {
    let body = json!({ "text": "{{ constraint.message }}!", "n": "{{ run.attempt }}", "list": ["{{ run.exit_code }}", 7, null] });
    let right = json!({ "text": "say \"no\"!", "n": 1, "list": [3, 7, null] });
    assert_eq!(Template::fill_all(&body, &scope()), right);
}

#[test]
fn what_is_wrong_is_told() {
    for (text, right) in [
        ("{{ run.id", "`{{` has no `}}`"),
        ("{{ run.idd }}", "`run.idd` is no field; did you mean `run.id`?"),
        ("{{ run.id | upper }}", "`upper` is no filter; there is default(\"TEXT\")"),
        ("{{ run.parameters. }}", "`run.parameters.` is no field"),
        ("{{ }}", "`` is no field; there are now, phase, job.id"),
    ] {
        let told = Template::parse(text).unwrap_err();
        assert!(told.starts_with(right), "{text}: {told}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn no_text_makes_it_panic(text in any::<String>(), braces in "[{}|\" a-z.()]{0,40}") {
        for text in [text, braces] {
            if let Ok(template) = Template::parse(&text) {
                template.fill(&Json::Null);
            }
        }
    }
}
