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
    for (path, want) in [
        ("/", Some(Wanted::Page(About::Overview))),
        ("/lrp/web", Some(Wanted::Page(lrp("web")))),
        ("/fragments/lrp/web", Some(Wanted::Fragment(lrp("web")))),
        ("/task/t/log", Some(Wanted::Log(LogOf::Task("t".into())))),
        ("/lrp/web/x/log", None),
        ("/lrp/", None),
        ("/lrp/a%20b", None),
        ("/lrp/..", None),
        ("/fragments", None),
        ("", None),
        ("/index.html", None),
    ] {
        assert_eq!(Wanted::at(path), want, "{path}");
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
        "created",
        "changed",
        "removed",
        "cell_present",
        "cell_gone",
        "gap",
    ] {
        assert!(script.contains(&format!("\"{name}\"")), "{name}");
    }
}
