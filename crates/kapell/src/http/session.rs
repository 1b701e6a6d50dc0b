//! How a browser gets in: by opening `/?token=…` once, or by a form that asks for the token.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, LOCATION, ORIGIN,
    REFERRER_POLICY, SET_COOKIE, WWW_AUTHENTICATE, X_FRAME_OPTIONS,
};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use tokio::time::timeout;

use super::answer::{self, Answer, Problem};
use super::body::Body;
use super::door::COOKIE;
use super::query::{decoded, pairs};
use super::token::{SESSION, Token};
use crate::page;

const FORM_BYTES: usize = 4096;
/// Nothing from elsewhere, nothing inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Whether a person with a browser looks at it.
pub(super) fn wants_page(request: &Parts) -> bool {
    let html = |value: &HeaderValue| value.to_str().is_ok_and(|it| it.contains("text/html"));
    // The forms of pages are sent to pages too.
    let form = request.method == Method::POST && !request.uri.path().starts_with("/v1/");
    (form || matches!(request.method, Method::GET | Method::HEAD))
        && request.headers.get_all(ACCEPT).iter().any(html)
}

/// A page as browsers get it.
pub(super) fn html(status: StatusCode, page: String) -> Answer {
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    let mut answer = answer::text(status, kind, page);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    // Without the origin, forms of these pages could not say where they come from.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    answer
}

/// Shows whoever was refused where to give the token.
pub(super) fn ask_for_token(refused: Problem) -> Answer {
    let mut page = html(refused.status(), page::login(None));
    let headers = refused.answer().into_parts().0.headers;
    for name in [WWW_AUTHENTICATE, CONNECTION] {
        if let Some(value) = headers.get(&name) {
            page.headers_mut().insert(name, value.clone());
        }
    }
    page
}

/// Nothing more is read from whoever did not send what they should.
fn turned_away(status: StatusCode, why: &str) -> Answer {
    let mut page = html(status, page::login(Some(why)));
    page.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    page
}

/// What a page says that cannot be shown.
pub(super) fn sorry(problem: &Problem) -> Answer {
    html(problem.status(), page::sorry(problem.status().as_u16(), problem.message()))
}

/// Who asks, before it is known whether they may.
pub(super) struct Caller<'a> {
    pub(super) token: &'a Token,
    pub(super) secure: bool,
    pub(super) local: SocketAddr,
    /// How long a body may take.
    pub(super) patience: Duration,
}

impl Caller<'_> {
    /// What needs no token: what pages look like, and the ways to a session.
    pub(super) async fn before_the_door(
        &self,
        request: &Parts,
        body: &mut Incoming,
    ) -> Option<Answer> {
        let reads = matches!(request.method, Method::GET | Method::HEAD);
        match request.uri.path() {
            "/" if reads => {
                let query = request.uri.query().unwrap_or_default();
                let (_, given) = pairs(query).find(|(name, _)| *name == "token")?;
                Some(self.begin(decoded(given).as_deref().unwrap_or_default()))
            }
            "/login" if request.method == Method::POST => Some(self.login(request, body).await),
            "/logout" if request.method == Method::POST => {
                Some(if request.headers.contains_key(ORIGIN) {
                    // The browser forgets its session. A copy of it ends by its age: nothing of sessions is kept here.
                    self.to_start("", 0)
                } else {
                    no_origin()
                })
            }
            path if reads => page::asset(path).map(|(kind, text)| asset(kind, text)),
            _ => None,
        }
    }

    async fn login(&self, request: &Parts, body: &mut Incoming) -> Answer {
        if !request.headers.contains_key(ORIGIN) {
            return no_origin();
        }
        let form = Limited::new(body, FORM_BYTES).collect();
        let form = match timeout(self.patience, form).await {
            Ok(Ok(form)) => form,
            Ok(Err(_)) => return turned_away(StatusCode::PAYLOAD_TOO_LARGE, "That is too long."),
            Err(_) => return turned_away(StatusCode::REQUEST_TIMEOUT, "That took too long."),
        };
        let form = form.to_bytes();
        let form = str::from_utf8(&form).unwrap_or_default();
        let given = pairs(form).find(|(name, _)| *name == "token");
        let given = given.and_then(|(_, value)| decoded(value)).unwrap_or_default();
        self.begin(&given)
    }

    /// Begins a session if the token is right.
    fn begin(&self, given: &str) -> Answer {
        let session = self.token.session(SystemTime::now()).filter(|_| self.token.is(given.trim()));
        match session {
            Some(session) => self.to_start(&session, SESSION.as_secs()),
            None => html(StatusCode::UNAUTHORIZED, page::login(Some("This token is wrong."))),
        }
    }

    /// Sends the browser to the first page, so that the token does not stay in its address.
    fn to_start(&self, session: &str, seconds: u64) -> Answer {
        let mut answer = html(StatusCode::SEE_OTHER, String::new());
        answer.headers_mut().insert(LOCATION, HeaderValue::from_static("/"));
        self.give(&mut answer, session, seconds);
        answer
    }

    /// Gives a browser a new session in time, so that who comes often need not give the token again.
    pub(super) fn renew(&self, answer: &mut Answer) {
        if let Some(session) = self.token.session(SystemTime::now()) {
            self.give(answer, &session, SESSION.as_secs());
        }
    }

    fn give(&self, answer: &mut Answer, session: &str, seconds: u64) {
        let secure = if self.secure { "; Secure" } else { "" };
        let cookie = format!(
            "{COOKIE}{}={session}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}",
            self.local.port()
        );
        if let Ok(cookie) = HeaderValue::try_from(cookie) {
            answer.headers_mut().insert(SET_COOKIE, cookie);
        }
    }
}

fn no_origin() -> Answer {
    let text = "a form must say from which page it comes, by an Origin header";
    Problem::new(StatusCode::FORBIDDEN, "no_origin", text).closing().answer()
}

/// Its name changes with what it holds, so it may be kept for ever.
fn asset(kind: &'static str, text: &'static str) -> Answer {
    let mut answer = Response::new(Body::whole(Bytes::from_static(text.as_bytes())));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    let keep = HeaderValue::from_static("public, max-age=31536000, immutable");
    headers.insert(hyper::header::CACHE_CONTROL, keep);
    let exact = HeaderValue::from_static("nosniff");
    headers.insert(hyper::header::X_CONTENT_TYPE_OPTIONS, exact);
    answer
}
