use std::time::Duration;

use crate::kubernetes::{Course, Refusal};

fn refusal(code: u16, reason: &str) -> Refusal {
    Refusal {
        code,
        reason: reason.to_owned(),
        message: "so it is".to_owned(),
        ..Refusal::default()
    }
}

#[test]
fn each_answer_has_its_course() {
    let after = Some(Duration::from_secs(2));
    let cases = [
        (400, "BadRequest", Course::GiveUp),
        (401, "Unauthorized", Course::GiveUp),
        (403, "Forbidden", Course::GiveUp),
        (404, "NotFound", Course::Missing),
        (408, "Timeout", Course::Again),
        (409, "AlreadyExists", Course::Exists),
        (409, "Conflict", Course::Again),
        (410, "Expired", Course::Stale),
        (422, "Invalid", Course::GiveUp),
        (429, "TooManyRequests", Course::Slower { after }),
        (500, "InternalError", Course::Again),
        (503, "ServiceUnavailable", Course::Again),
        (504, "Timeout", Course::Again),
    ];
    for (code, reason, want) in cases {
        let refusal = Refusal { retry_after: after, ..refusal(code, reason) };
        assert_eq!(refusal.course(), want, "{code} {reason}");
    }
}

#[test]
fn a_refused_field_is_told_as_the_job_calls_it() {
    let causes = vec![
        ("spec.template.spec.containers[0].image".to_owned(), "Required value".to_owned()),
        ("metadata.name".to_owned(), "too long".to_owned()),
    ];
    let refusal = Refusal { causes, ..refusal(422, "Invalid") };
    assert_eq!(
        refusal.tell("cannot create the Job"),
        "cannot create the Job: refused by the cluster: kubernetes.pod_spec.containers[0].image: Required value; metadata.name: too long"
    );
}
