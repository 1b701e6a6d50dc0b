//! Shows what is wrong with a file: where, the text there, and what would be right.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use kapell_core::source::{Problem, Severity};

/// A file with problems.
#[derive(Debug)]
pub(crate) struct BadFile {
    pub(crate) path: String,
    pub(crate) problems: Vec<Problem>,
    pub(crate) bytes: Vec<u8>,
}

impl BadFile {
    /// All problems as text for people.
    pub(crate) fn render(&self, colour: bool) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        let lines: Vec<&str> = text.lines().collect();
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let mut out = String::new();
        for problem in &self.problems {
            out.push_str(&renderer.render(&[self.group(problem, &lines)]));
            out.push('\n');
        }
        let errors = self.problems.iter().filter(|problem| problem.is_error()).count();
        if errors > 1 {
            out.push_str(&format!("\n{}: {errors} errors\n", self.path));
        }
        out
    }

    fn group<'a>(&'a self, problem: &'a Problem, lines: &[&'a str]) -> Group<'a> {
        let level = match problem.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let number = problem.span.line as usize;
        let line = lines.get(number.saturating_sub(1)).copied().unwrap_or("");
        let start = byte_at(line, problem.span.column.saturating_sub(1) as usize);
        let end = byte_at(
            line,
            (problem.span.column.saturating_sub(1) + problem.span.length.max(1)) as usize,
        );
        let annotation = AnnotationKind::Primary.span(start..end.max(start));
        let annotation = match &problem.help {
            Some(help) => annotation.label(help.as_str()),
            None => annotation,
        };
        let snippet = Snippet::source(line)
            .line_start(number)
            .path(self.path.as_str())
            .annotation(annotation);
        level.primary_title(problem.message.as_str()).element(snippet)
    }
}

fn byte_at(line: &str, column: usize) -> usize {
    line.char_indices().nth(column).map_or(line.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kapell_core::source::Span;

    #[test]
    fn a_problem_shows_its_place_and_what_would_be_right() {
        let bad = BadFile {
            path: "flow.yaml".into(),
            problems: vec![
                Problem::error(Span::new(2, 5, 6), "unknown key `comand` in a step")
                    .help("did you mean `command`?"),
            ],
            bytes: b"steps:\n    comand: x\n".to_vec(),
        };
        let text = bad.render(false);
        assert!(text.contains("error: unknown key `comand`"), "{text}");
        assert!(text.contains("flow.yaml:2:5"), "{text}");
        assert!(text.contains("^^^^^^ did you mean `command`?"), "{text}");
    }

    #[test]
    fn a_place_beyond_the_text_does_not_panic() {
        let problems = vec![Problem::error(Span::new(99, 99, 9), "beyond")];
        let bad = BadFile { path: "x".into(), problems, bytes: Vec::new() };
        assert!(bad.render(false).contains("beyond"));
    }
}
