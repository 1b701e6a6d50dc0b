//! What the page about constraints and actions shows.

use crate::constraint::{read, schemas};
use crate::manifest::{Document, read as read_file};

const PAGE: &str = include_str!("../../../../../docs/constraints.md");

/// The text below each heading of the third kind, by its name.
fn sections() -> Vec<(&'static str, &'static str)> {
    let sections = PAGE.split("\n### ").skip(1);
    sections.map(|section| section.split_once('\n').unwrap()).collect()
}

fn examples(text: &str) -> Vec<&str> {
    let blocks = text.split("```yaml\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap()).collect()
}

#[test]
fn every_constraint_and_action_has_a_section_with_all_its_keys_and_an_example() {
    let sections = sections();
    for (name, schema) in schemas() {
        let (_, name) = name.split_once('/').unwrap();
        let found = sections.iter().find(|(title, _)| *title == name);
        let (_, text) = found.unwrap_or_else(|| panic!("`{name}` has no section"));
        // What follows it is another section, or another chapter.
        let text = text.split("\n## ").next().unwrap();
        let forms = schema["anyOf"].as_array().unwrap();
        let mapping = forms.iter().find(|form| form["properties"].is_object()).unwrap();
        for key in mapping["properties"].as_object().unwrap().keys() {
            let in_row = |line: &str| {
                let first = line.split('|').nth(1).unwrap_or_default();
                line.starts_with('|') && first.contains(&format!("`{key}`"))
            };
            assert!(text.lines().any(in_row), "`{name}` has no row of `{key}`");
        }
        let shown = examples(text);
        assert!(shown.iter().any(|example| example.contains(name)), "`{name}` has no example");
    }
    assert_eq!(sections.len(), schemas().len(), "{sections:?}");
}

#[test]
fn every_example_of_the_page_can_be_stored() {
    let all = examples(PAGE);
    assert!(all.len() > 25, "{}", all.len());
    for example in all {
        let file = format!("kind: job\njob_id: example\ncommand: x\n{example}");
        let mut documents = read_file(file.as_bytes())
            .unwrap_or_else(|problems| panic!("{example}\n{problems:#?}"));
        let Some(Document::Job(job)) = documents.pop().map(|placed| placed.document) else {
            panic!("no job: {example}")
        };
        assert_eq!(crate::job::validate::job(&job), Vec::<String>::new(), "{example}");
        assert!(read(&job).is_ok(), "{example}");
    }
}
