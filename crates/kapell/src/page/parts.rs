//! What several pages show.

use kapell_api::v1::Explanation;
use kapell_core::board::{Action, ActualState, Run, TaskState, Variable};
use kapell_core::seams::Timestamp;

use super::{Html, html};

/// How long ago, with the exact time for whoever wants it.
pub(super) fn age(since: Timestamp, now: Timestamp) -> Html {
    let mut out = Html::default();
    let exact = jiff::Timestamp::from_millisecond(since.0)
        .map(|it| it.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    let exact = exact.unwrap_or_default();
    html!(out; "<time datetime=\"" (exact) "\" title=\"" (exact) "\">" (span(now.0.saturating_sub(since.0))) "</time>");
    out
}

/// A length of time as people say it.
pub(super) fn span(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// A sentence in which `names` stand out.
pub(super) fn spoken(text: &str) -> Html {
    let mut out = Html::default();
    let closed = text.matches('`').count().is_multiple_of(2);
    if !closed {
        html!(out; (text));
        return out;
    }
    for (number, piece) in text.split('`').enumerate() {
        match number % 2 {
            0 => html!(out; (piece)),
            _ => html!(out; "<code>" (piece) "</code>"),
        }
    }
    out
}

/// The rule behind something, what it follows from and what would change it: the items of a list.
pub(super) fn reasons(out: &mut Html, why: &Explanation) {
    html!(out; "<li>Rule: " {spoken(&why.rule)} "</li>");
    for fact in &why.facts {
        html!(out; "<li>" {spoken(fact)} "</li>");
    }
    for remedy in &why.remedies {
        html!(out; "<li>To change it: " {spoken(remedy)} "</li>");
    }
}

/// So much of so much.
pub(super) fn share(used: u32, all: u32, unit: &str) -> String {
    if unit == "MB" && all >= 10_240 {
        return format!("{} / {} GB", tenths(used), tenths(all));
    }
    format!("{used} / {all} {unit}").trim_end().to_owned()
}

fn tenths(mb: u32) -> String {
    let tenths = u64::from(mb) * 10 / 1024;
    format!("{}.{}", tenths / 10, tenths % 10)
}

pub(super) fn lrp_state(state: ActualState, evacuating: bool) -> Html {
    let class = match state {
        ActualState::Unclaimed => "waiting",
        ActualState::Claimed => "starting",
        ActualState::Running => "good",
        ActualState::Crashed => "bad",
    };
    let mut out = Html::default();
    html!(out; "<span class=\"state " (class) "\">" (state.name()) "</span>");
    if evacuating {
        html!(out; " <span class=\"state starting\">EVACUATING</span>");
    }
    out
}

pub(super) fn task_state(state: TaskState, failed: bool) -> Html {
    let (class, end) = match state {
        TaskState::Pending => ("waiting", ""),
        TaskState::Running => ("starting", ""),
        TaskState::Completed | TaskState::Resolving if failed => ("bad", "FAILED"),
        TaskState::Completed | TaskState::Resolving => ("good", ""),
    };
    let mut out = Html::default();
    let name = if end.is_empty() { state.name() } else { end };
    html!(out; "<span class=\"state " (class) "\">" (name) "</span>");
    out
}

/// What a container does, in one line.
pub(super) fn action(action: &Action) -> String {
    let several =
        |actions: &[Action]| actions.iter().map(self::action).collect::<Vec<_>>().join("; ");
    match action {
        Action::Run(Run { path, args, .. }) => {
            std::iter::once(path).chain(args).map(String::as_str).collect::<Vec<_>>().join(" ")
        }
        Action::Download(it) => format!("download {}", it.from),
        Action::Upload(it) => format!("upload {}", it.from),
        Action::Timeout(it) => self::action(&it.action),
        Action::Try(it) => self::action(&it.action),
        Action::Parallel(it) | Action::Serial(it) | Action::Codependent(it) => several(&it.actions),
        Action::EmitProgress(it) => self::action(&it.action),
    }
}

/// The names of variables; their values may be secrets.
pub(super) fn names(env: &[Variable]) -> String {
    env.iter().map(|each| each.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// One line of a list of facts.
pub(super) fn fact(out: &mut Html, name: &'static str, value: &str) {
    if !value.is_empty() {
        html!(out; "<div><dt>" (name) "</dt><dd>" (value) "</dd></div>\n");
    }
}

/// One that may be long and is read letter by letter.
pub(super) fn code_fact(out: &mut Html, name: &'static str, value: &str) {
    if !value.is_empty() {
        html!(out; "<div class=\"whole\"><dt>" (name) "</dt><dd><code>" (value) "</code></dd></div>\n");
    }
}

/// An amount that may be left open.
pub(super) fn megabytes(mb: u32) -> String {
    if mb == 0 { String::new() } else { format!("{mb} MB") }
}
