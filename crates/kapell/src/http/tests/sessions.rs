use std::time::SystemTime;

use kapell_core::board::{ActualState, Freshness, Record, TaskState};

use super::desk::{lrp, task};
use super::*;

const EVIL: &str = "<script>alert(1)</script>\"'&";

/// Asks as a browser does.
async fn browse(host: &Host, method: &str, path: &str, lines: &str, body: &str) -> Reply {
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {}\r\naccept: text/html,*/*\r\nconnection: close\r\n{lines}content-length: {}\r\n\r\n{body}",
        host.at(),
        body.len()
    );
    send(host.at(), &request).await
}

/// The line that a browser sends once it has a session.
async fn cookie(host: &Host) -> String {
    let reply = browse(host, "GET", &format!("/?token={TOKEN}"), "", "").await;
    assert_eq!((reply.status, reply.header("location")), (303, Some("/")));
    let set = reply.header("set-cookie").unwrap();
    assert!(set.ends_with("; path=/; max-age=604800; httponly; samesite=strict"), "{set}");
    assert!(!set.contains(TOKEN), "{set}");
    format!("cookie: other=1; {}\r\n", set.split(';').next().unwrap())
}

#[tokio::test]
async fn a_browser_gets_in_by_opening_the_address_once() {
    let (host, _) = Host::with_board().await;
    let cookie = cookie(&host).await;
    let page = browse(&host, "GET", "/", &cookie, "").await;
    assert_eq!(page.status, 200);
    assert!(page.has("content-type: text/html; charset=utf-8"), "{}", page.head);
    assert!(page.head.contains("content-security-policy: default-src 'none'; script-src 'self'"));
    assert!(page.body.contains("<h1>Overview</h1>"));
    assert_eq!(browse(&host, "GET", "/v1/tasks", &cookie, "").await.status, 200);
    let wrong = cookie.replace("=1;", "=2;").replace("session_", "sessionx_");
    assert_eq!(browse(&host, "GET", "/", &wrong, "").await.status, 401);
}

#[tokio::test]
async fn a_session_ends_and_is_renewed_in_time() {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    let (host, _) = Host::with_board().await;
    let (one, two) = (cookie(&host).await, cookie(&host).await);
    assert_ne!(one, two);
    let token = Token::parse(TOKEN.as_bytes()).unwrap();
    let now = SystemTime::now();
    for (issued, status, renewed) in [
        (now - DAY, 200, false),
        (now - 4 * DAY, 200, true),
        (now - 8 * DAY, 401, false),
        (now + DAY, 401, false),
    ] {
        let session = token.session(issued).unwrap();
        let line = format!("cookie: kapell_session_{}={session}\r\n", host.at().port());
        let page = browse(&host, "GET", "/", &line, "").await;
        assert_eq!((page.status, page.header("set-cookie").is_some()), (status, renewed));
        if let Some(set) = page.header("set-cookie") {
            let line = format!("cookie: {}\r\n", set.split(';').next().unwrap());
            let page = browse(&host, "GET", "/", &line, "").await;
            assert_eq!((page.status, page.header("set-cookie")), (200, None));
        }
        // The time cannot be changed without the token.
        let (_, mac) = session.split_once('.').unwrap();
        let later = now.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros();
        let line = format!("cookie: kapell_session_{}={later}.{mac}\r\n", host.at().port());
        assert_eq!(browse(&host, "GET", "/", &line, "").await.status, 401);
    }
}

#[tokio::test]
async fn whoever_has_no_session_is_asked_for_the_token() {
    let (host, _) = Host::with_board().await;
    for path in ["/", "/lrp/web", "/?token=wrong"] {
        let page = browse(&host, "GET", path, "", "").await;
        assert_eq!(page.status, 401, "{path}");
        assert!(page.body.contains("<form method=\"post\" action=\"/login\""), "{}", page.body);
        assert!(page.header("set-cookie").is_none());
    }
    let origin = format!("origin: http://{}\r\n", host.at());
    let good = browse(&host, "POST", "/login", &origin, &format!("token={TOKEN}")).await;
    assert_eq!(good.status, 303);
    let bad = browse(&host, "POST", "/login", &origin, "token=no").await;
    assert_eq!((bad.status, bad.header("set-cookie")), (401, None));
    assert!(bad.body.contains("role=\"alert\""));
    // A page elsewhere cannot sign anybody in, and nobody can send a book.
    assert_eq!(
        browse(&host, "POST", "/login", "", "token=x").await.problem(),
        (403, "no_origin".to_owned())
    );
    let foreign =
        browse(&host, "POST", "/login", "origin: http://evil.example\r\n", "token=x").await;
    assert_eq!(foreign.problem(), (403, "foreign_origin".to_owned()));
    assert_eq!(browse(&host, "POST", "/login", &origin, &"x".repeat(5000)).await.status, 413);
    let out = browse(&host, "POST", "/logout", &origin, "").await;
    assert!(out.header("set-cookie").unwrap().contains("=; path=/; max-age=0;"));
}

#[tokio::test]
async fn a_session_changes_nothing_without_an_origin() {
    let (host, desk) = Host::with_board().await;
    let cookie = cookie(&host).await;
    let refused = browse(&host, "DELETE", "/v1/desired-lrps/web", &cookie, "").await;
    assert_eq!(refused.problem(), (403, "no_origin".to_owned()));
    assert!(desk.take_asked().is_empty());
    let lines = format!("{cookie}origin: http://{}\r\n", host.at());
    assert_eq!(browse(&host, "DELETE", "/v1/desired-lrps/web", &lines, "").await.status, 204);
    let foreign = format!("{cookie}origin: http://evil.example\r\n");
    let refused = browse(&host, "DELETE", "/v1/desired-lrps/web", &foreign, "").await;
    assert_eq!(refused.problem(), (403, "foreign_origin".to_owned()));
}

#[tokio::test]
async fn a_session_is_carried_to_the_leader() {
    let (leader, desk) = Host::with_board().await;
    let standby = Host::behind(&leader.at()).await;
    let cookie = cookie(&standby).await;
    let page = browse(&standby, "GET", "/", &cookie, "").await;
    assert_eq!(page.status, 200);
    assert!(page.has("kapell-served-by: 000000000000000a"), "{}", page.head);
    let lines = format!("{cookie}origin: http://{}\r\n", standby.at());
    assert_eq!(browse(&standby, "DELETE", "/v1/desired-lrps/web", &lines, "").await.status, 204);
    assert_eq!(desk.take_asked().len(), 1);
}

#[tokio::test]
async fn what_pages_look_like_is_no_secret() {
    let host = Host::start(0xb).await;
    for (path, kind) in [
        ("/assets/kapell.css", "text/css; charset=utf-8"),
        ("/assets/kapell.js?v=1", "text/javascript; charset=utf-8"),
        ("/favicon.ico", "image/svg+xml"),
    ] {
        let reply = browse(&host, "GET", path, "", "").await;
        assert_eq!(reply.status, 200, "{path}");
        assert_eq!(reply.header("content-type"), Some(kind));
        assert!(reply.body.len() > 100);
    }
    assert_eq!(browse(&host, "GET", "/assets/none", "", "").await.status, 401);
}

#[tokio::test]
async fn a_page_says_why_there_is_none() {
    let host = Host::start(0xb).await;
    let cookie = cookie(&host).await;
    let page = browse(&host, "GET", "/", &cookie, "").await;
    assert_eq!(page.status, 503);
    assert!(page.body.contains("nobody leads right now"), "{}", page.body);
    let (host, _) = Host::with_board().await;
    let cookie = self::cookie(&host).await;
    for path in ["/lrp/none", "/task/none", "/nothing", "/lrp/%3Cscript%3E", "/lrp/a/b/log"] {
        let page = browse(&host, "GET", path, &cookie, "").await;
        assert_eq!(page.status, 404, "{path}");
        assert!(
            page.has("content-type: text/html; charset=utf-8") && !page.body.contains("<script>"),
            "{path}"
        );
    }
}

fn evil_board(desk: &FakeDesk) {
    let json = serde_json::json!({
        "process_guid": "web", "domain": "d", "instances": 3, "annotation": EVIL,
        "action": { "run": { "path": EVIL, "args": [EVIL] } }, "env": [{ "name": EVIL, "value": "secret" }],
    });
    desk.desire(&json.to_string());
    let mut waits = lrp("web", 0, ActualState::Unclaimed, None);
    waits.placement_error = Some(EVIL.to_owned());
    desk.instance(waits);
    let mut crashed = lrp("web", 1, ActualState::Crashed, None);
    (crashed.crash_reason, crashed.crash_count) = (Some(EVIL.to_owned()), 5);
    desk.instance(crashed);
    let mut runs = lrp("web", 2, ActualState::Running, Some("c1"));
    runs.net.as_mut().unwrap().address = EVIL.to_owned();
    runs.domain = EVIL.into();
    desk.instance(runs);
    let mut failed = task("t", TaskState::Completed);
    (failed.failed, failed.failure_reason, failed.result) =
        (true, EVIL.to_owned(), EVIL.to_owned());
    failed.cell_id = Some(EVIL.into());
    desk.task(failed);
    desk.cell_at(EVIL, "http://127.0.0.1:1");
    let fresh = Freshness { domain: EVIL.into(), expires_at: None, since: None };
    desk.records.lock().unwrap().put(Record::Domain(fresh));
    let event = kapell_core::board::Event::Cell { cell_id: EVIL.into(), present: true };
    let id = kapell_node::board::EventId { epoch: Epoch(7), number: 3 };
    desk.events.lock().unwrap().push(kapell_node::board::Next::Event(id, Arc::new(event)));
}

#[tokio::test]
async fn hostile_names_are_shown_and_not_run() {
    let (host, desk) = Host::with_board().await;
    evil_board(&desk);
    let cookie = cookie(&host).await;
    for path in [
        "/",
        "/lrp/web",
        "/task/t",
        "/fragments/overview",
        "/fragments/lrp/web",
        "/fragments/task/t",
        "/lrp/web/0/log",
        "/task/t/log",
    ] {
        let page = browse(&host, "GET", path, &cookie, "").await;
        assert_eq!(page.status, 200, "{path}");
        let body = page.body.replace("<script src=\"/assets/kapell.js", "");
        assert!(!body.contains("<script") && !body.contains("alert(1)</"), "{path}: {body}");
        assert!(!body.contains("\"'&") && !body.contains(" style="), "{path}: {body}");
        let is_log = path.ends_with("/log");
        assert_eq!(
            body.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;"),
            !is_log,
            "{path}"
        );
        assert!(!body.contains("secret"), "{path} shows the value of a variable");
        assert_eq!(body.starts_with("<!doctype html>"), !path.starts_with("/fragments"), "{path}");
    }
}

#[tokio::test]
async fn pages_can_be_used_without_a_mouse_and_without_eyes() {
    let (host, desk) = Host::with_board().await;
    evil_board(&desk);
    let cookie = cookie(&host).await;
    for path in ["/", "/lrp/web", "/task/t", "/lrp/web/0/log"] {
        let body = browse(&host, "GET", path, &cookie, "").await.body;
        for part in [
            "<html lang=\"en\">",
            "<main id=\"main\"",
            "<nav aria-label=",
            "<title>",
            "role=\"status\"",
            "class=\"skip\"",
            "name=\"viewport\"",
        ] {
            assert!(body.contains(part), "{path} has no {part}");
        }
        assert_eq!(body.matches("<h1>").count(), 1, "{path}");
        assert_eq!(body.matches("<th>").count(), 0, "{path} has headers without a scope");
        for name in ["table", "section", "details", "ul", "div", "tr", "td", "dl"] {
            let open = body.matches(&format!("<{name}>")).count()
                + body.matches(&format!("<{name} ")).count();
            assert_eq!(open, body.matches(&format!("</{name}>")).count(), "{path}: {name}");
        }
    }
}
