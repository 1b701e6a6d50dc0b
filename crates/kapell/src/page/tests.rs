use kapell_core::run::RunState;

use super::html::{Html, html};
use super::*;

#[test]
fn only_what_is_written_here_is_markup() {
    let mut out = Html::default();
    html!(out; "<b>" ("<b> & \"'\u{202e}\u{7}") "</b>");
    assert_eq!(out.into_string(), "<b>&lt;b&gt; &amp; &quot;&#39;\u{fffd}\u{fffd}</b>");
}

#[test]
fn paths_name_pages() {
    let lrp = |guid: &str| About::Lrp(guid.into());
    let run = |id: &str| RunId::parse(id).unwrap();
    for (path, want) in [
        ("/", Some(Wanted::Page(About::Overview))),
        ("/lrp/web", Some(Wanted::Page(lrp("web")))),
        ("/fragments/lrp/web", Some(Wanted::Fragment(lrp("web")))),
        ("/task/t/log", Some(Wanted::Log(LogOf::Task("t".into())))),
        ("/jobs", Some(Wanted::Page(About::Jobs))),
        ("/job/nightly", Some(Wanted::Page(About::Job("nightly".into())))),
        ("/job/a%3Cb", None),
        ("/run/nightly:1", Some(Wanted::Page(About::Run(run("nightly:1"))))),
        ("/run/nightly%3A1", Some(Wanted::Page(About::Run(run("nightly:1"))))),
        ("/run/nightly%3a1-beef/log", Some(Wanted::Log(LogOf::Run(run("nightly:1-beef"))))),
        ("/fragments/run/nightly:1", Some(Wanted::Fragment(About::Run(run("nightly:1"))))),
        ("/run/nightly", None),
        ("/run/nightly:<b>", None),
        ("/run/%zz", None),
        (
            "/fragments/runs?job=nightly&state=failed&span=7d&x=y",
            Some(Wanted::Fragment(About::Runs(Filter {
                job: Some("nightly".into()),
                state: Some(RunState::Failed),
                span: 3,
            }))),
        ),
        ("/runs?job=<b>&state=no&span=no", Some(Wanted::Page(About::Runs(Filter::default())))),
        ("/lrp/web/x/log", None),
        ("/lrp/", None),
        ("/lrp/a%20b", None),
        ("/lrp/..", None),
        ("/fragments", None),
        ("", None),
        ("/index.html", None),
    ] {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(Wanted::at(path, pairs), want, "{path}");
    }
}

#[test]
fn files_of_pages_ask_nobody_else() {
    for path in ["/assets/kapell.css", "/assets/kapell.js", "/assets/favicon.svg"] {
        let (_, text) = asset(path).unwrap();
        let text = text.replace("http://www.w3.org/2000/svg", "");
        for word in ["http:", "https:", "//cdn", "@import", "eval(", "document.write"] {
            assert!(!text.contains(word), "{path}: {word}");
        }
    }
    assert_eq!(asset("/assets/../kapell.css"), None);
}

#[test]
fn the_script_listens_to_every_event() {
    let (_, script) = asset("/assets/kapell.js").unwrap();
    for name in [
        "desired_lrp",
        "actual_lrp",
        "task",
        "domain",
        "job",
        "run",
        "created",
        "changed",
        "removed",
        "actual_lrp_crashed",
        "cell_present",
        "cell_gone",
        "gap",
    ] {
        assert!(script.contains(&format!("\"{name}\"")), "{name}");
    }
}

#[test]
fn names_in_sentences_stand_out_and_stay_text() {
    for (text, want) in [
        ("runs on cell `a`", "runs on cell <code>a</code>"),
        ("`<b>` & `", "`&lt;b&gt;` &amp; `"),
        ("`<b>`", "<code>&lt;b&gt;</code>"),
        ("", ""),
    ] {
        assert_eq!(parts::spoken(text).into_string(), want, "{text}");
    }
}

#[test]
fn shares_are_told_in_a_unit_that_people_read() {
    for (used, all, unit, want) in [
        (0, 4096, "MB", "0 / 4096 MB"),
        (1312, 24_103, "MB", "1.2 / 23.5 GB"),
        (18, 4096, "", "18 / 4096"),
        (u32::MAX, u32::MAX, "MB", "4194303.9 / 4194303.9 GB"),
    ] {
        assert_eq!(parts::share(used, all, unit), want);
    }
}

mod attention {
    use std::time::Duration;

    use kapell_core::board::{ActualLrp, ActualState, LrpKey};
    use kapell_core::seams::Timestamp;
    use kapell_node::board::ReadOnly;

    use super::super::Html;
    use super::super::attention::{Site, note, render};
    use super::super::counts::Counts;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn instance(index: u32, state: ActualState, change: impl FnOnce(&mut ActualLrp)) -> ActualLrp {
        let key = LrpKey { process_guid: "web".into(), index };
        let mut lrp = ActualLrp::unclaimed(&key, "test".into(), Timestamp(990_000));
        lrp.state = state;
        change(&mut lrp);
        lrp
    }

    fn crashed(lrp: &mut ActualLrp) {
        lrp.crash_count = 3;
        lrp.crash_reason = Some("Exited with status 1: <out of luck>".to_owned());
    }

    fn page(lrps: &[ActualLrp], calm: Duration) -> String {
        let mut counts = Counts::default();
        counts.lrps[2] = 1;
        for lrp in lrps {
            note(&mut counts.complaints, lrp, calm, NOW);
        }
        let mut out = Html::default();
        render(&mut out, &counts, &Site::default(), NOW);
        out.into_string()
    }

    #[test]
    fn a_store_that_takes_no_writes_is_told_first() {
        let read_only = Some(ReadOnly { why: "no space <left>".to_owned(), since: NOW });
        let site = Site { read_only, no_cell: true };
        let mut out = Html::default();
        render(&mut out, &Counts::default(), &site, NOW);
        let page = out.into_string();
        let store = page.find("The store does not take writes: no space &lt;left&gt;");
        assert!(store.is_some_and(|at| at < page.find("No cell").unwrap()), "{page}");
    }

    #[test]
    fn instances_with_the_same_trouble_are_one_entry() {
        let lrps: Vec<_> = (0..200).map(|at| instance(at, ActualState::Crashed, crashed)).collect();
        let page = page(&lrps, Duration::from_secs(300));
        assert_eq!(page.matches("<li").count(), 1, "{page}");
        assert!(page.contains("200 crashed"), "{page}");
        assert!(page.contains("Exited with status 1: &lt;out of luck&gt;"), "{page}");
        assert!(page.contains("href=\"/lrp/web/0/log\""), "{page}");
    }

    #[test]
    fn a_crash_is_told_until_the_instance_has_run_for_long() {
        let again = [instance(0, ActualState::Running, crashed)];
        let soon = page(&again, Duration::from_secs(300));
        assert!(soon.contains("1 restarted after a crash"), "{soon}");
        let late = page(&again, Duration::from_secs(5));
        assert!(late.contains("Nothing needs attention"), "{late}");
    }

    #[test]
    fn what_is_just_being_placed_is_no_trouble() {
        let placed = [instance(0, ActualState::Unclaimed, |_| {})];
        assert!(page(&placed, Duration::ZERO).contains("Nothing needs attention"));
        let refused = [instance(0, ActualState::Unclaimed, |lrp| {
            lrp.placement_error = Some("no cell has zone `b`".to_owned());
        })];
        let page = page(&refused, Duration::ZERO);
        assert!(page.contains("1 cannot be placed"), "{page}");
        assert!(page.contains("no cell has zone <code>b</code>"), "{page}");
    }
}
