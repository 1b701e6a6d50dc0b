//! Hooks and webhooks of real runs, sent to a server that is slow, down, ill or leads astray.

use std::time::Duration;

use serde_json::{Value, json};

use super::receiver::{Heard, Receiver, Reply};
use super::signature::{base64, signature};
use super::work::{Ledger, Where};
use crate::leadership::cluster::free_port;
use crate::platform::site::Site;

/// Where clouds tell machines their secrets.
const FORBIDDEN: &str = "http://169.254.169.254/latest";
const KEY: &[u8] = b"a key of thirty-two bytes, no less";

struct Scene {
    site: Site,
    ledger: Ledger,
    receiver: Receiver,
}

impl Scene {
    fn new() -> Self {
        let site = Site::up();
        let ledger = Ledger::new(&site.traces());
        let secret = json!({"value": format!("whsec_{}", base64(KEY))});
        site.ask("PUT", "/v1/secrets/jobs/hook", Some(&secret));
        Self { site, ledger, receiver: Receiver::start(reply) }
    }

    /// A job with one constraint.
    fn job(&self, id: &str, constraint: &Value) -> Value {
        let mut job = self.ledger.job_of(Where::Host, "exit 0");
        job["job_id"] = json!(id);
        job["constraints"] = json!([constraint]);
        job["retry"] = json!(0);
        job
    }

    /// Has a job run with this constraint; the id of the run.
    fn begins(&self, id: &str, constraint: &Value) -> String {
        let answer = self.site.ask("POST", "/v1/jobs", Some(&self.job(id, constraint)));
        assert_eq!(answer.status, 201, "{}", answer.body);
        let path = format!("/v1/jobs/{id}/trigger");
        let run = self.site.ask("POST", &path, Some(&json!({}))).expect(201).json();
        run["run_id"].as_str().expect("an id").to_owned()
    }

    #[track_caller]
    fn ends(&self, run: &str) -> Value {
        self.site.until(&format!("{run} to end"), || {
            let run = self.site.get(&format!("/v1/runs/{run}"));
            run["completed_at"].is_number().then_some(run)
        })
    }

    /// How it ended, why, and whether its work was launched.
    #[track_caller]
    fn outcome(&self, run: &str) -> (String, String, bool) {
        let ended = self.ends(run);
        let text = |field: &str| ended[field].as_str().unwrap_or_default().to_owned();
        let launched = self.ledger.launches().keys().any(|line| line.starts_with(run));
        (text("state"), text("reason"), launched)
    }

    fn delivery(&self, job: &str) -> Option<Value> {
        let all = self.site.get("/v1/webhooks/deliveries");
        all.as_array()?.iter().find(|it| it["job_id"] == job).cloned()
    }

    #[track_caller]
    fn settled(&self, job: &str) -> Value {
        self.site.until(&format!("the message of {job} to be settled"), || {
            self.delivery(job).filter(|it| it["state"] != "waiting")
        })
    }
}

fn reply(path: &str, before: usize) -> Reply {
    match path {
        "/ill" => Reply::Status(500),
        "/hangs" => Reply::Never,
        "/slow" => Reply::Slow(Duration::from_secs(1), 200),
        "/astray" => Reply::With(307, format!("Location: {FORBIDDEN}")),
        "/recovers" if before == 0 => Reply::With(503, "Retry-After: 1".to_owned()),
        "/recovers" if before == 1 => Reply::Status(500),
        _ => Reply::Status(200),
    }
}

/// As a receiver checks it that has read the standard.
#[track_caller]
fn is_signed(call: &Heard) {
    let header = |name: &str| call.header(name).unwrap_or_else(|| panic!("no {name}: {call:?}"));
    let want = signature(KEY, header("webhook-id"), header("webhook-timestamp"), &call.body);
    assert_eq!(header("webhook-signature"), want);
}

#[test]
fn a_hook_before_the_work_decides_as_its_constraint_says() {
    let scene = Scene::new();
    let url = |path: &str| scene.receiver.url(path);
    let down = format!("http://127.0.0.1:{}/", free_port());
    let hook = |config: Value, more: Value| {
        let mut constraint = json!({"config": config});
        if let (Some(all), Some(more)) = (constraint.as_object_mut(), more.as_object()) {
            all.extend(more.clone());
        }
        json!({"preRunHook": constraint})
    };
    let none = || json!({});
    let once = |url: String| json!({"url": url, "max_attempts": 1, "timeout": "2s"});
    let good = json!({"url": url("/good"), "secret": "hook"});
    let plays = [
        ("good", hook(good, none()), "Completed", true, ""),
        ("slow", hook(json!(url("/slow")), none()), "Completed", true, ""),
        ("ill", hook(once(url("/ill")), none()), "Failed", false, "500"),
        (
            "ill-but",
            hook(once(url("/ill")), json!({"onViolation": ["proceed"]})),
            "Completed",
            true,
            "",
        ),
        (
            "ill-skip",
            hook(once(url("/ill")), json!({"onViolation": ["skip"]})),
            "Completed",
            false,
            "500",
        ),
        ("hangs", hook(once(url("/hangs")), none()), "Failed", false, "2s"),
        (
            "hangs-but",
            hook(once(url("/hangs")), json!({"on_error": "allow"})),
            "Completed",
            true,
            "",
        ),
        ("down", hook(once(down.clone()), none()), "Failed", false, "refused"),
        ("down-but", hook(once(down), json!({"on_error": "allow"})), "Completed", true, ""),
        ("astray", hook(once(url("/astray")), none()), "Failed", false, "169.254.169.254"),
        (
            "astray-but",
            hook(once(url("/astray")), json!({"on_error": "allow"})),
            "Completed",
            true,
            "",
        ),
        (
            "comes-back",
            hook(json!({"url": url("/recovers"), "max_attempts": 5}), none()),
            "Completed",
            true,
            "",
        ),
    ];
    let runs: Vec<String> = plays.iter().map(|(id, it, ..)| scene.begins(id, it)).collect();
    let mut wrong = Vec::new();
    for ((id, _, state, launched, why), run) in plays.iter().zip(&runs) {
        let (got, reason, was) = scene.outcome(run);
        if got != *state || was != *launched || !reason.contains(why) {
            wrong.push(format!(
                "{id}: {got}, launched: {was}, {reason:?}; want {state}, {launched}, {why:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let good = scene.receiver.heard("/good");
    assert_eq!(good.len(), 1);
    is_signed(&good[0]);
    assert!(String::from_utf8_lossy(&good[0].body).contains(&runs[0]), "{:?}", good[0]);
}

#[test]
fn a_webhook_does_not_hold_up_a_run_and_arrives_in_the_end() {
    let scene = Scene::new();
    let port = free_port();
    let tells = |url: String| {
        json!({"time_window": {"config": {"start": "00:00", "end": "24:00"}, "onMet": [
            {"webhook": {"config": {"url": url, "secret": "hook", "timeout": "2s", "max_attempts": 8,
                "body": {"run": "{{ run.id }}", "job": "{{ job.id }}"}}}},
        ]}})
    };
    let plays = [
        ("recovers", scene.receiver.url("/recovers")),
        ("astray", scene.receiver.url("/astray")),
        ("hangs", scene.receiver.url("/hangs")),
        ("down", format!("http://127.0.0.1:{port}/down")),
    ];
    let runs = plays.map(|(id, url)| scene.begins(id, &tells(url)));
    for run in &runs {
        let (state, reason, launched) = scene.outcome(run);
        assert_eq!((state.as_str(), launched), ("Completed", true), "{run}: {reason}");
    }
    // The runs have ended; the messages have not.
    let waits = scene.delivery("down").expect("it is listed");
    assert_eq!(waits["state"], "waiting", "{waits}");
    let late = Receiver::start_on(port, |_, _| Reply::Status(204));
    let down = scene.settled("down");
    assert_eq!((&down["state"], &down["status"]), (&json!("delivered"), &json!(204)), "{down}");
    assert_eq!(late.heard("/down").len(), 1);
    is_signed(&late.heard("/down")[0]);

    let recovers = scene.settled("recovers");
    assert_eq!((&recovers["state"], &recovers["attempts"]), (&json!("delivered"), &json!(3)));
    let calls = scene.receiver.heard("/recovers");
    assert_eq!(calls.len(), 3);
    calls.iter().for_each(is_signed);
    assert!(calls.iter().all(|call| call.header("webhook-id") == calls[0].header("webhook-id")));
    let said: Value = serde_json::from_slice(&calls[2].body).expect("JSON");
    assert_eq!(said, json!({"run": runs[0], "job": "recovers"}));

    let astray = scene.settled("astray");
    assert_eq!(astray["state"], "given_up", "{astray}");
    assert!(astray["why"].as_str().unwrap_or_default().contains("169.254.169.254"), "{astray}");
    assert_eq!(scene.receiver.heard("/astray").len(), 1, "trying again does not help");
    scene.site.until("the one that hangs to be called again", || {
        (scene.receiver.heard("/hangs").len() >= 2).then_some(())
    });
}
