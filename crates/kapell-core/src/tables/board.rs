//! What the board does by itself.

use super::timers::short;
use super::{Page, page, table};
use crate::board::duty::{About, Duty};
use crate::board::{ActualLrp, ActualState, LrpKey, Settings, crash};
use crate::seams::Timestamp;

pub(super) fn convergence() -> Page {
    let mut text = "The board looks at everything every `converge_every`, at once when a cell is lost, and when something \
                    falls due. What it finds it asks of itself, and whoever decides checks it again. Evacuating twins \
                    count for none of the duties about LRPs but the first.\n\n"
        .to_owned();
    for about in About::ALL {
        text.push_str(&format!("## {}\n\n", about.name()));
        let duties = Duty::ALL.into_iter().filter(|duty| duty.about() == about);
        text.push_str(&table(
            ["", "duty", "when", "request", "what it does"],
            duties.map(|duty| {
                [
                    duty.number().to_string(),
                    duty.name().to_owned(),
                    duty.condition().to_owned(),
                    format!("`{}`", duty.request()),
                    duty.effect().to_owned(),
                ]
            }),
        ));
    }
    page("convergence", "Duties of convergence", &text)
}

/// The counts at which something changes, and a few between.
const COUNTS: [u32; 13] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 199, 200, 201];

pub(super) fn crashes() -> Page {
    let settings = Settings::default();
    let mut text = format!(
        "The count that stands is compared before it grows. Having been RUNNING for {} (`crash_reset`) or longer, an \
         instance counts from 0 again. The wait is counted from the crash.\n\n",
        short(settings.crash_reset)
    );
    text.push_str(&table(
        ["crashes before", "crashes after", "state", "next start"],
        COUNTS.map(|count| dance(count, &settings)),
    ));
    page("crash", "The crash dance", &text)
}

fn dance(count: u32, settings: &Settings) -> [String; 4] {
    let key = LrpKey { process_guid: "p".into(), index: 0 };
    let at = Timestamp(0);
    let before = ActualLrp { crash_count: count, ..ActualLrp::unclaimed(&key, "d".into(), at) };
    let dance = crash::dance(Some(&before), at, settings);
    let after = ActualLrp { crash_count: dance.crash_count, state: dance.state, ..before };
    let next = match dance.state {
        ActualState::Unclaimed => "at once".to_owned(),
        ActualState::Crashed => crash::restart_at(&after, settings)
            .map_or_else(|| "never".to_owned(), |then| format!("after {}", short(then.since(at)))),
        ActualState::Claimed | ActualState::Running => "-".to_owned(),
    };
    let state = dance.state.name().to_owned();
    [count.to_string(), dance.crash_count.to_string(), state, next]
}
