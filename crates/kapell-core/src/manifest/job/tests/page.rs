//! What the page about jobs shows.

use super::super::keys::JOB;
use super::one;

const PAGE: &str = include_str!("../../../../../../docs/jobs.md");

/// The examples of the page, cut where a key stands again that stood before.
fn examples() -> Vec<String> {
    let mut examples = Vec::new();
    for block in PAGE.split("```yaml\n").skip(1) {
        let block = block.split("```").next().unwrap();
        let mut seen = Vec::new();
        let mut example = String::new();
        for line in block.lines() {
            let begins = line.starts_with(|it: char| it.is_ascii_alphabetic());
            let key = line.split(':').next().unwrap_or_default();
            if begins && seen.contains(&key) {
                examples.push(std::mem::take(&mut example));
                seen.clear();
            }
            if begins {
                seen.push(key);
            }
            example += line;
            example.push('\n');
        }
        examples.push(example);
    }
    examples
}

#[test]
fn every_example_of_the_page_can_be_read() {
    let examples = examples();
    assert!(examples.len() > 10, "{examples:#?}");
    for example in examples {
        let job = one(&example.replace("job_id: nightly-report\n", ""));
        assert_eq!(job.job_id.as_str(), "a", "{example}");
    }
}

#[test]
fn every_key_has_its_row_on_the_page() {
    let rows: Vec<&str> = PAGE.lines().filter(|line| line.starts_with("| `")).collect();
    // The kind stands above them, and the window is told with its policy.
    for key in JOB.iter().filter(|key| !["kind", "catch_up_window"].contains(key)) {
        let row = rows.iter().filter(|row| {
            let first = row.split('|').nth(1).unwrap_or_default();
            first.contains(&format!("`{key}`"))
        });
        assert!(row.count() > 0, "{key} has no row");
    }
}
