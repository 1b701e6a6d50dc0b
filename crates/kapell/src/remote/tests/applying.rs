use kapell_core::board::DesiredLrp;
use kapell_core::manifest::{Document, read};

use super::super::apply::{Step, compare};
use super::super::files::{Source, complaints, find_doubles};

fn lrp(more: &str) -> DesiredLrp {
    let text = format!("{{process_guid: web, domain: d, action: {{run: {{path: x}}}}{more}}}");
    match read(text.as_bytes()).unwrap().remove(0).document {
        Document::Lrp { lrp, .. } => *lrp,
        Document::Task(_) | Document::Job(_) => panic!("no lrp"),
    }
}

fn source(path: &str, text: &str) -> Source {
    Source::parse(path.to_owned(), text.as_bytes().to_vec())
}

#[test]
fn only_some_fields_change_in_place() {
    let stands = DesiredLrp { version: 7, ..lrp(", instances: 2") };
    assert_eq!(compare(&lrp(", instances: 2"), true, &stands), Step::Unchanged);
    // A file that does not count leaves the number as it is.
    assert_eq!(compare(&lrp(""), false, &stands), Step::Unchanged);
    let Step::Update { fields, update } =
        compare(&lrp(", instances: 3, annotation: a"), true, &stands)
    else {
        panic!("no update")
    };
    assert_eq!(fields, ["annotation", "instances"]);
    assert_eq!((update.instances, update.version), (Some(3), Some(7)));
    assert_eq!((update.annotation.as_deref(), &update.routes), (Some("a"), &None));
    let refused = compare(&lrp(", instances: 3, memory_mb: 5, env: {A: b}"), true, &stands);
    assert_eq!(refused, Step::Refuse { fields: vec!["env".into(), "memory_mb".into()] });
}

#[test]
fn all_that_is_wrong_with_all_files_is_told() {
    let good = "{kind: lrp, process_guid: web, domain: d, action: {run: {path: x}}}";
    let bad = "kind: task\ndomian: d\naction: {run: {path: x}}\n";
    let mut sources = vec![
        source("a.yaml", good),
        source("b.yaml", bad),
        source("c.yaml", &format!("---\n{good}")),
    ];
    find_doubles(&mut sources);
    let want = "\
error: the task has no `domain`
 --> b.yaml:1:1
  |
1 | kind: task
  | ^ add `domain: …`
error: unknown key `domian` in the task
 --> b.yaml:2:1
  |
2 | domian: d
  | ^^^^^^ did you mean `domain`?

b.yaml: 2 errors
error: lrp/web stands at a.yaml:1 already
 --> c.yaml:2:27
  |
2 | {kind: lrp, process_guid: web, domain: d, action: {run: {path: x}}}
  |                           ^^^ remove one of the two
";
    assert_eq!(complaints(&sources).unwrap(), want);
    assert_eq!(complaints(&sources[..1]), None);
}
