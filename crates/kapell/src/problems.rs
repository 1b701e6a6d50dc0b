//! Shows what is wrong with a file: where, the text there, and what would be right.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use kapell_core::source::{Problem, Severity};

/// The longest line that is shown whole, in characters.
const WHOLE: usize = 200;
/// How much of a longer one is shown before what is wrong, and from there on.
const BEFORE: usize = 60;
const FROM: usize = 100;
/// Wide enough for any window with what is said about it.
const WIDE: usize = 1_000;
/// Stands for the path of a file until the true place is put in.
const PLACEHOLDER: &str = "\u{e000}path\u{e000}";

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
            if problem.left_out > 0 {
                out.push_str(&format!("\n{}\n", problem.message));
            } else {
                out.push_str(&self.show(problem, &lines, &renderer));
                out.push('\n');
            }
        }
        let errors = self.problems.iter().filter(|problem| problem.is_error());
        let errors: usize = errors.map(|problem| problem.left_out.max(1)).sum();
        if errors > 1 {
            out.push_str(&format!("\n{}: {errors} errors\n", self.path));
        }
        out
    }

    fn show(&self, problem: &Problem, lines: &[&str], renderer: &Renderer) -> String {
        let level = match problem.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let number = problem.span.line as usize;
        let line = lines.get(number.saturating_sub(1)).copied().unwrap_or("");
        let window = Window::new(
            line,
            problem.span.column.saturating_sub(1) as usize,
            problem.span.length.max(1) as usize,
        );
        let annotation = AnnotationKind::Primary.span(window.start..window.end);
        let annotation = match &problem.help {
            Some(help) => annotation.label(help.as_str()),
            None => annotation,
        };
        let path = if window.is_cut { PLACEHOLDER } else { self.path.as_str() };
        let snippet =
            Snippet::source(&window.text).line_start(number).path(path).annotation(annotation);
        let group = level.primary_title(problem.message.as_str()).element(snippet);
        if !window.is_cut {
            return renderer.render(&[group]);
        }
        // The renderer finds the column in what it is given, which is not the whole line.
        let shown = window.text[..window.start].chars().count() + 1;
        renderer.clone().term_width(WIDE).render(&[group]).replacen(
            &format!("{PLACEHOLDER}:{number}:{shown}"),
            &format!("{}:{number}:{}", self.path, problem.span.column),
            1,
        )
    }
}

/// What is shown of a line. Showing costs by the length of the line, and a file may be only one.
#[derive(Debug, PartialEq, Eq)]
struct Window {
    text: String,
    /// What to mark, in bytes of the text.
    start: usize,
    end: usize,
    is_cut: bool,
}

impl Window {
    /// The part of `line` around `length` characters that begin after `column` others.
    fn new(line: &str, column: usize, length: usize) -> Self {
        let is_cut = line.char_indices().nth(WHOLE).is_some();
        if !is_cut {
            let start = byte_at(line, column);
            let end = byte_at(line, column.saturating_add(length));
            return Self { text: line.to_owned(), start, end, is_cut };
        }
        let skipped = column.saturating_sub(BEFORE);
        let rest = &line[byte_at(line, skipped)..];
        let until = byte_at(rest, column - skipped + FROM);
        let (left, right) =
            (if skipped > 0 { "…" } else { "" }, if until < rest.len() { "…" } else { "" });
        let start = left.len() + byte_at(rest, column - skipped);
        let end = left.len() + byte_at(rest, column - skipped + length.min(FROM));
        Self { text: format!("{left}{}{right}", &rest[..until]), start, end, is_cut }
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

    #[test]
    fn of_a_long_line_only_a_window_is_shown() {
        let line = format!("{}WRONG{}", "ä".repeat(1_000), "b".repeat(1_000));
        let problems = vec![Problem::error(Span::new(1, 1_001, 5), "bad").help("better")];
        let bad = BadFile { path: "x.yaml".into(), problems, bytes: line.into_bytes() };
        let want = format!(
            "error: bad\n --> x.yaml:1:1001\n  |\n1 | …{}WRONG{}…\n  | {}^^^^^ better\n",
            "ä".repeat(60),
            "b".repeat(95),
            " ".repeat(61),
        );
        assert_eq!(bad.render(false), want);
    }

    #[test]
    fn a_line_is_cut_only_where_it_must_be() {
        let line = "k".repeat(400);
        let window = Window::new(&line, 2, 1_000);
        let text = format!("{}…", "k".repeat(102));
        assert_eq!(window, Window { text, start: 2, end: 102, is_cut: true });
        let window = Window::new(&line, 390, 10);
        let text = format!("…{}", "k".repeat(70));
        assert_eq!(window, Window { text, start: 63, end: 73, is_cut: true });
        assert_eq!(Window::new(&line, 9_999, 1).text, "…");
        let short = Window::new("äb", 1, 1);
        assert_eq!(short, Window { text: "äb".into(), start: 2, end: 3, is_cut: false });
    }

    #[test]
    fn two_hundred_problems_on_one_long_line_are_shown_quickly() {
        let column = |at: u32| Span::new(1, at * 2_000 + 1, 5);
        let problems = (0..200).map(|at| Problem::error(column(at), "bad")).collect();
        let bad = BadFile { path: "x".into(), problems, bytes: vec![b'x'; 400_000] };
        let begin = std::time::Instant::now();
        let text = bad.render(false);
        assert!(begin.elapsed().as_secs() < 5, "took {:?}", begin.elapsed());
        assert!(text.contains(" --> x:1:398001\n") && text.len() < 100_000, "{}", text.len());
    }

    #[test]
    fn problems_that_were_left_out_are_counted_but_have_no_place() {
        let problem = Problem::error(Span::new(2, 1, 1), "bad");
        let problems = [problem].into_iter().chain(Problem::more(300, 2)).collect();
        let bad = BadFile { path: "x".into(), problems, bytes: b"a\nb\n".to_vec() };
        let text = bad.render(false);
        assert!(!text.contains("x:1:1"), "{text}");
        assert!(text.ends_with("\n\nand 302 more problems\n\nx: 301 errors\n"), "{text}");
        let warned = Vec::from_iter(Problem::more(0, 2));
        let text = BadFile { path: "x".into(), problems: warned, bytes: Vec::new() }.render(false);
        assert_eq!(text, "\nand 2 more problems\n");
    }
}
