use super::excuse::Excuse;
use super::lexer::is_word;
use super::problem::Problem;

const RULE: &str = "path";
const TOPS: [&str; 3] = ["root", "home", "work"];

/// Finds absolute paths that exist on a developer's machine only.
pub(crate) fn check(file: &str, text: &str) -> Vec<Problem> {
    let mut found = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if let Some(path) = machine_path(line)
            && let Some(more) = Excuse::find(line, RULE).complaint()
        {
            let text = format!("`{path}` is a path of one machine{more}");
            found.push(Problem::new(file, number, RULE, text));
        }
    }
    found
}

fn machine_path(line: &str) -> Option<&str> {
    line.match_indices('/').find_map(|(start, _)| {
        // `~/work/x`, `a/home/b` and `$DIR/root/c` are relative to something.
        let before = line[..start].chars().next_back();
        if before.is_some_and(|char| is_word(char) || "-.~})>".contains(char)) {
            return None;
        }
        let rest = &line[start + 1..];
        let top = TOPS.into_iter().find(|top| rest.starts_with(top))?;
        let below = rest[top.len()..].strip_prefix('/')?;
        let word = below.find(|char| !is_word(char)).unwrap_or(below.len());
        (word > 0).then(|| &line[start..start + 1 + top.len() + 1 + word])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(parts: &[&str]) -> String {
        parts.iter().flat_map(|part| ["/", part]).collect()
    }

    #[test]
    fn reports_paths_of_one_machine() {
        let text = format!("ok\ncp {}/x .\n", machine(&["home", "alice"]));
        let want =
            format!("a.md:2: path: `{}` is a path of one machine", machine(&["home", "alice"]));
        let found: Vec<_> = check("a.md", &text).iter().map(ToString::to_string).collect();
        assert_eq!(found, [want]);
        assert_eq!(check("a", &format!("\"{}\"", machine(&["work", "main"]))).len(), 1);
        assert_eq!(check("a", &format!("file://{}", machine(&["root", "b"]))).len(), 1);
    }

    #[test]
    fn leaves_other_paths_alone() {
        let relative = machine(&["home", "b"]);
        assert!(check("a", &format!("x{relative} ~{relative} .{relative}")).is_empty());
        assert!(check("a", &format!("{}/ /homes/b /usr/work", machine(&["home"]))).is_empty());
        let excused = format!("{relative} <!-- tidy: allow(path) example -->");
        assert!(check("a", &excused).is_empty());
    }
}
