//! Output without what differs from run to run.

/// Replaces clock times by `TIME`, durations by `TOOK`, run ids by `RUN` and the directory by `DIR`.
///
/// A duration is replaced where it was measured, behind `in` and `took`, and kept where the file
/// says it: in the delay of a retry, in a timeout.
pub(crate) fn normal(text: &str, dir: &str) -> String {
    let text = text.replace(dir, "DIR");
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let line = without_runs(line);
        let line = without_clock(&line);
        if line.contains("retrying") {
            out.push_str(&line);
        } else {
            without_durations(&line, &mut out);
        }
    }
    out
}

/// `[15:04:05] …` becomes `[TIME] …`.
fn without_clock(line: &str) -> String {
    let is_clock = |text: &str| fits(text, "[00:00:00]");
    match line.get(..10) {
        Some(clock) if is_clock(clock) => format!("[TIME]{}", &line[10..]),
        Some(_) | None => line.to_owned(),
    }
}

/// Run ids look like `20250131-150405123-a1b2c3`.
fn without_runs(line: &str) -> String {
    const SHAPE: &str = "00000000-000000000-xxxxxx";
    let mut out = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        match rest.get(..SHAPE.len()) {
            Some(id) if fits(id, SHAPE) => {
                out.push_str("RUN");
                rest = &rest[SHAPE.len()..];
            }
            Some(_) | None => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    out
}

/// Whether the text has the shape: `0` is a digit, `x` a hexadecimal one, others are themselves.
fn fits(text: &str, shape: &str) -> bool {
    text.len() == shape.len()
        && text.bytes().zip(shape.bytes()).all(|(byte, kind)| match kind {
            b'0' => byte.is_ascii_digit(),
            b'x' => byte.is_ascii_hexdigit(),
            other => byte == other,
        })
}

fn without_durations(line: &str, out: &mut String) {
    let mut before = "";
    for word in line.split_inclusive(' ') {
        let bare = word.trim_end_matches([' ', '\n', ':', ',']);
        let measured = matches!(before, "in" | "took") && is_duration(bare);
        out.push_str(if measured { "TOOK" } else { bare });
        out.push_str(&word[bare.len()..]);
        if !bare.is_empty() {
            before = bare;
        }
    }
}

fn is_duration(word: &str) -> bool {
    let numbers = word.split(['m', 's', 'h', '.']);
    let units = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    !units.is_empty()
        && word.starts_with(|c: char| c.is_ascii_digit())
        && numbers.into_iter().all(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[test]
fn what_differs_from_run_to_run_is_replaced() {
    let text = "[15:04:05] ✓ a completed in 3ms\n[15:04:05] x, run 20250131-150405123-a1b2c3\n\
                1 failed in 2m05s: timed out after 50ms\nretrying: attempt 2 of 3 in 50ms\n/t/1/f\n";
    let want = "[TIME] ✓ a completed in TOOK\n[TIME] x, run RUN\n\
                1 failed in TOOK: timed out after 50ms\nretrying: attempt 2 of 3 in 50ms\nDIR/f\n";
    assert_eq!(normal(text, "/t/1"), want);
}
