use super::function::Function;
use super::problem::Problem;

const FILE_LINES: usize = 800;
const FUNCTION_LINES: usize = 70;
const TEST_LINES: usize = 120;

pub(crate) fn check(file: &str, text: &str, functions: &[Function]) -> Vec<Problem> {
    let mut found = Vec::new();
    let lines = text.lines().count();
    if lines > FILE_LINES {
        let text = format!("{lines} lines, at most {FILE_LINES}: split it by concern");
        found.push(Problem::new(file, FILE_LINES + 1, "file-lines", text));
    }
    for function in functions.iter().filter(|function| !function.may_be_long) {
        let limit = if function.is_test { TEST_LINES } else { FUNCTION_LINES };
        if function.lines > limit {
            let text = format!("`{}` has {} lines, at most {limit}", function.name, function.lines);
            found.push(Problem::new(file, function.line, "fn-lines", text));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::function::functions;
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        check("a.rs", text, &functions(text)).iter().map(ToString::to_string).collect()
    }

    fn function(lines: usize) -> String {
        format!("fn f() {{\n{}}}\n", "x;\n".repeat(lines - 2))
    }

    #[test]
    fn a_function_has_at_most_70_lines() {
        assert!(problems(&function(70)).is_empty());
        assert_eq!(problems(&function(71)), ["a.rs:1: fn-lines: `f` has 71 lines, at most 70"]);
        let excused = "#[expect(clippy::too_many_lines, reason = \"\")]\n";
        assert!(problems(&(excused.to_owned() + &function(71))).is_empty());
    }

    #[test]
    fn a_test_has_at_most_120_lines() {
        assert!(problems(&format!("#[test]\n{}", function(120))).is_empty());
        assert_eq!(problems(&format!("#[test]\n{}", function(121))).len(), 1);
    }

    #[test]
    fn a_file_has_at_most_800_lines() {
        assert!(problems(&"\n".repeat(800)).is_empty());
        let want = "a.rs:801: file-lines: 801 lines, at most 800: split it by concern";
        assert_eq!(problems(&"\n".repeat(801)), [want]);
    }
}
