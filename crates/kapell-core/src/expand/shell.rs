//! What must be changed in a command before a shell gets it, and when no shell is needed at all.

use std::borrow::Cow;

use super::reference::Reference;
use super::scan::references;
use super::{Error, Values, look_up};

/// A command for the shell, and the variables that must be exported for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten<'t> {
    pub text: Cow<'t, str>,
    pub variables: Vec<(String, String)>,
}

/// Makes a command mean to a POSIX shell what it means to us.
///
/// Nearly everything already does, since parameters are handed over as the shell's own. Two things
/// differ: `$10` is our tenth parameter but the shell's first and a zero, and `${name.path}` is
/// ours alone. Inside single quotes nothing is touched, as in any shell.
pub fn rewrite<'t>(text: &'t str, values: &dyn Values) -> Result<Rewritten<'t>, Error> {
    let untouched = Rewritten { text: Cow::Borrowed(text), variables: Vec::new() };
    let differs = text.contains('$') && (text.contains("${") || has_wide_position(text));
    if !differs {
        return Ok(untouched);
    }
    // Better a tenth parameter that comes out wrong than a program that does something else.
    let Some(found) = references(text) else { return Ok(untouched) };
    let mut out = String::with_capacity(text.len() + 16);
    let mut variables = Vec::new();
    let mut copied = 0;
    for it in found {
        let ours = match it.reference {
            Reference::Position(number) if number > 9 => format!("${{{number}}}"),
            Reference::Path(name, path) if let Some(document) = values.document(name) => {
                let variable = format!("KAPELL_VALUE_{}", variables.len() + 1);
                let reference = format!("${{{variable}}}");
                variables.push((variable, look_up(name, document, path)?));
                reference
            }
            Reference::Position(_) | Reference::Name(_) | Reference::Path(..) => continue,
        };
        out.push_str(&text[copied..it.at]);
        out.push_str(&ours);
        copied = it.at + it.length;
    }
    out.push_str(&text[copied..]);
    if out == text {
        return Ok(untouched);
    }
    Ok(Rewritten { text: Cow::Owned(out), variables })
}

fn has_wide_position(text: &str) -> bool {
    text.as_bytes()
        .windows(3)
        .any(|w| w[0] == b'$' && w[1].is_ascii_digit() && w[2].is_ascii_digit())
}

/// Words that a shell runs itself or gives a meaning of their own.
const SHELL_WORDS: &[&str] = &[
    ".",
    ":",
    "[",
    "[[",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "case",
    "cd",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "coproc",
    "declare",
    "dirs",
    "disown",
    "do",
    "done",
    "echo",
    "elif",
    "else",
    "enable",
    "esac",
    "eval",
    "exec",
    "exit",
    "export",
    "false",
    "fc",
    "fg",
    "fi",
    "for",
    "function",
    "getopts",
    "hash",
    "help",
    "history",
    "if",
    "in",
    "jobs",
    "kill",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readonly",
    "return",
    "select",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "test",
    "then",
    "time",
    "times",
    "trap",
    "true",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "until",
    "wait",
    "while",
];

/// The words of a command that any shell would only split at spaces and execute.
///
/// None if the outcome could differ in any way; when in doubt there is a shell.
pub fn plain_words(text: &str) -> Option<Vec<&str>> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_./:@%+,- ".contains(&b) || b == b'=';
    let text = text.trim_matches([' ', '\n']);
    if !text.bytes().all(plain) {
        return None;
    }
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let first = words.first()?;
    let special = first.contains('=') || first.starts_with('-') || SHELL_WORDS.contains(first);
    (!special).then_some(words)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::Fixed;
    use super::*;

    fn rewritten(text: &str) -> String {
        let values = Fixed(vec![("build", r#"{"v": "a b"}"#)]);
        rewrite(text, &values).unwrap().text.into_owned()
    }

    #[test]
    fn most_commands_stay_as_they_are() {
        for text in ["echo $1 ${HOME}", "awk '{print $1}'", "echo ${x:-y.z} $((1+2))", "echo '$10'"]
        {
            assert_eq!(rewritten(text), text);
        }
    }

    #[test]
    fn the_tenth_parameter_is_the_tenth() {
        assert_eq!(rewritten("echo $10 \"$11\" $1"), "echo ${10} \"${11}\" $1");
    }

    #[test]
    fn a_path_becomes_a_variable() {
        let values = Fixed(vec![("build", r#"{"v": "a b"}"#)]);
        let got = rewrite("echo \"${build.v}\" '${build.v}' ${other.v}", &values).unwrap();
        assert_eq!(got.text, "echo \"${KAPELL_VALUE_1}\" '${build.v}' ${other.v}");
        assert_eq!(got.variables, [("KAPELL_VALUE_1".to_owned(), "a b".to_owned())]);
    }

    #[test]
    fn apostrophes_that_quote_nothing_are_seen_through() {
        let text = "# don't\necho ${build.v}";
        assert_eq!(rewritten(text), "# don't\necho ${KAPELL_VALUE_1}");
        let text = "echo \"it's ${build.v}\" \\' ${build.v}";
        assert_eq!(rewritten(text), "echo \"it's ${KAPELL_VALUE_1}\" \\' ${KAPELL_VALUE_2}");
        let text = "cat <<EOF\nit's ${build.v}\nEOF\necho '${build.v}'";
        assert_eq!(rewritten(text), "cat <<EOF\nit's ${KAPELL_VALUE_1}\nEOF\necho '${build.v}'");
        let text = "cat <<'EOF'\n${build.v}\nEOF\necho ${build.v}";
        assert_eq!(rewritten(text), "cat <<'EOF'\n${build.v}\nEOF\necho ${KAPELL_VALUE_1}");
    }

    #[test]
    fn an_escaped_dollar_sign_is_no_reference() {
        assert_eq!(rewritten(r"echo \${build.v} \$10"), r"echo \${build.v} \$10");
    }

    /// Text that must reach the shell as it is.
    fn stays(text: &str) {
        assert_eq!(rewritten(text), text);
    }

    #[test]
    fn single_quotes_in_a_substitution_in_double_quotes_are_quotes() {
        stays("x=\"$(printf '1 2 3\\n' | awk '{print $10}')\"; echo \"got $x\"");
        let text = "x=\"$(echo '$10' \"$10\")'$10'\"";
        assert_eq!(rewritten(text), "x=\"$(echo '$10' \"${10}\")'${10}'\"");
    }

    #[test]
    fn a_shift_is_no_here_document() {
        let text = "echo $((1<<4)) $10\necho '$10' $11";
        assert_eq!(rewritten(text), "echo $((1<<4)) ${10}\necho '$10' ${11}");
        assert_eq!(rewritten("((x = (1<<4))); echo $10"), "((x = (1<<4))); echo ${10}");
        assert_eq!(rewritten("echo $(($10 + 1))"), "echo $((${10} + 1))");
    }

    #[test]
    fn an_escape_does_not_end_a_string_with_escapes() {
        stays(r"echo $'it\'s $10'");
        assert_eq!(rewritten(r"echo $'it\'s' $10 '$10'"), r"echo $'it\'s' ${10} '$10'");
    }

    #[test]
    fn backticks_hold_commands() {
        stays("x=\"`awk '{print $10}' f`\"");
        assert_eq!(rewritten("x=\"`echo $10`'$10'\""), "x=\"`echo ${10}`'${10}'\"");
        stays("x=`echo '`' $10`");
        stays("x=\"`echo \"`echo $10`\"`\"");
    }

    #[test]
    fn quotes_in_braces_are_those_of_the_shell() {
        stays("echo ${x:-'$10'} \"${x%'$10'}\"");
        assert_eq!(rewritten("echo \"${x:-it's $10}\""), "echo \"${x:-it's ${10}}\"");
        assert_eq!(rewritten("echo ${x:-\"$10\"}"), "echo ${x:-\"${10}\"}");
        assert_eq!(rewritten("echo ${#x} $# $10"), "echo ${#x} $# ${10}");
        stays("echo \"${x/'$10'/y}\" $10");
    }

    #[test]
    fn a_here_document_in_a_substitution_is_one() {
        stays("x=\"$(cat <<'EOF'\nit's $10 \"\nEOF\n)\"");
        let text = "x=$(cat <<EOF\nit's $10 $(echo '$10')\nEOF\n) # $10\necho '$10' $11";
        let want = "x=$(cat <<EOF\nit's ${10} $(echo '$10')\nEOF\n) # $10\necho '$10' ${11}";
        assert_eq!(rewritten(text), want);
        let text = "cat <<-A <<'B'\n$10\n\tA\n$10\nB\necho $10";
        let want = "cat <<-A <<'B'\n${10}\n\tA\n$10\nB\necho ${10}";
        assert_eq!(rewritten(text), want);
    }

    #[test]
    fn a_case_in_a_substitution_does_not_end_it() {
        let text = "x=\"$(case $1 in a) echo '$10' ;; (b) echo $10;; esac)\"";
        let want = "x=\"$(case $1 in a) echo '$10' ;; (b) echo ${10};; esac)\"";
        assert_eq!(rewritten(text), want);
        let text = "case $1 in\n  a) echo $10;;\nesac";
        assert_eq!(rewritten(text), "case $1 in\n  a) echo ${10};;\nesac");
    }

    #[test]
    fn the_process_id_before_a_number_is_no_parameter() {
        stays("echo $$10");
    }

    #[test]
    fn text_that_does_not_add_up_is_not_touched() {
        for text in [
            "echo $10 'open",
            "echo $10 \"open",
            "echo $(echo $10",
            "echo $10)",
            "echo `$10",
            "echo ${x:-$10",
            "cat <<EOF\n$10",
            "echo $((1 + $10)",
            "((echo $10); b)",
            "cat <<$x\n$10\n$x",
            "cat <<EOF\n$(echo $10\nEOF\n)",
            "echo $(cat <<EOF)\n$10\nEOF",
            "cat <<EOF\n$10\\\nEOF\n",
            "echo $10 $'open\\",
        ] {
            stays(text);
        }
    }

    #[test]
    fn deep_nesting_takes_no_stack_and_little_time() {
        for open in ["$(", "${x:-", "\"${x:-", "(", "$((", "${"] {
            stays(&format!("echo $10 {}", open.repeat(100_000)));
        }
    }

    const PIECES: &[&str] = &[
        "'", "\"", "`", "$", "$(", "$((", "((", "(", ")", "))", "${", "${x", "${x:-", "}", "{",
        "\\", "\n", " ", "\t", "#", "<<", "<<-", "<<<", "EOF", "'EOF'", "case ", "esac", " in ",
        ";", "&", "$'", "$x", "$1", "$#", "$$", "a", "é", "-", ".", "%", "${x.y}", "${x}", "1",
        "=", "[", "]",
    ];

    fn shell_text() -> impl Strategy<Value = String> {
        let piece = proptest::sample::select(PIECES);
        proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn what_refers_to_nothing_of_ours_never_changes(text in shell_text()) {
            prop_assume!(!has_wide_position(&text));
            let got = rewrite(&text, &Fixed(Vec::new())).unwrap();
            prop_assert_eq!(&got.text, &text);
            prop_assert!(got.variables.is_empty());
        }

        #[test]
        fn only_references_ever_change(text in shell_text()) {
            let text = text.replace("$1", "$10");
            let got = rewrite(&text, &Fixed(Vec::new())).unwrap();
            prop_assert_eq!(got.text.replace("${1", "$1").replace('}', ""), text.replace("${1", "$1").replace('}', ""));
        }
    }

    #[test]
    fn plain_words_need_no_shell() {
        assert_eq!(plain_words("/bin/true"), Some(vec!["/bin/true"]));
        assert_eq!(plain_words(" make -j5  all "), Some(vec!["make", "-j5", "all"]));
        for text in [
            "echo hi", "cd /tmp", "A=1 b", "a | b", "a $1", "a 'b'", "exit 3", "", "a\nb", "ls ~",
            "a*", "while",
        ] {
            assert_eq!(plain_words(text), None, "{text}");
        }
    }
}
