//! Why `runc` did not start a program, in words for whoever wrote down what to start.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

/// What our launcher writes if it did not come so far as to execute `runc`.
const LAUNCHER: &str = "kapell-launch ";

const NOT_FOUND: &str = "was not found in PATH";
const NOT_THERE: &str = "is not there, or its interpreter is not";

/// Whether these are our words for a program that is not there.
pub(super) fn is_absence(words: &str) -> bool {
    words.starts_with('`') && (words.ends_with(NOT_FOUND) || words.ends_with(NOT_THERE))
}

/// None if neither `runc` nor the launcher has said anything.
pub(super) fn read(log: &Path, launcher: &Path) -> Option<String> {
    if let Ok(text) = fs::read_to_string(launcher) {
        return of_launcher(&text);
    }
    of_runc(&fs::read_to_string(log).ok()?)
}

fn of_launcher(text: &str) -> Option<String> {
    let (errno, what) = text.strip_prefix(LAUNCHER)?.trim_end().split_once(' ')?;
    let cause = io::Error::from_raw_os_error(errno.parse().ok()?);
    let advice = if what.starts_with("map the owners") {
        ": the file system of the image cache must allow mounts with mapped owners (ext4, xfs, btrfs, and \
         tmpfs from Linux 6.3 on)"
    } else {
        ""
    };
    Some(format!("this machine could not {what} for the container: {cause}{advice}"))
}

/// The last error counts: those before it are warnings or what led to it.
fn of_runc(log: &str) -> Option<String> {
    let message = |line: &str| {
        let entry: Value = serde_json::from_str(line).ok()?;
        (entry.get("level")?.as_str()? == "error").then_some(())?;
        Some(entry.get("msg")?.as_str()?.to_owned())
    };
    log.lines().rev().find_map(message).map(|said| in_words(&said))
}

fn in_words(said: &str) -> String {
    let said = ["runc run failed: ", "exec failed: ", "unable to start container process: "]
        .iter()
        .fold(said, |said, prefix| said.strip_prefix(prefix).unwrap_or(said));
    about_program(said).or_else(|| about_dir(said)).unwrap_or_else(|| format!("runc says: {said}"))
}

/// `exec: "NAME": why`, or `exec NAME: why` if it is the kernel's answer.
fn about_program(said: &str) -> Option<String> {
    let (program, why) = match said.strip_prefix("exec: \"") {
        Some(rest) => rest.split_once("\": ")?,
        None => said.strip_prefix("exec ")?.split_once(": ")?,
    };
    let why = why.strip_prefix(&format!("stat {program}: ")).unwrap_or(why);
    Some(match why {
        "executable file not found in $PATH" => format!("`{program}` {NOT_FOUND}"),
        "no such file or directory" => format!("`{program}` {NOT_THERE}"),
        "permission denied" => format!("`{program}` may not be executed"),
        "is a directory" => format!("`{program}` is a directory"),
        "exec format error" => {
            format!("`{program}` is neither a program for this machine nor a script with `#!`")
        }
        "argument list too long" => {
            format!("the arguments and environment of `{program}` are too long for the system")
        }
        why => format!("`{program}` could not be executed: {why}"),
    })
}

fn about_dir(said: &str) -> Option<String> {
    let (dir, why) =
        said.strip_prefix("chdir to cwd (\"")?.split_once("\") set in config.json failed: ")?;
    Some(match why {
        "no such file or directory" => format!("directory `{dir}` is not there"),
        "not a directory" => format!("`{dir}` is not a directory"),
        "permission denied" => format!("directory `{dir}` may not be entered"),
        why => format!("directory `{dir}` could not be entered: {why}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_made_readable() {
        for (said, words) in [
            (
                r#"exec: \"nope\": executable file not found in $PATH"#,
                "`nope` was not found in PATH",
            ),
            (
                r#"exec: \"/x\": stat /x: no such file or directory"#,
                "`/x` is not there, or its interpreter is not",
            ),
            (r#"exec: \"/etc/passwd\": permission denied"#, "`/etc/passwd` may not be executed"),
            (
                "exec /bin/x: exec format error",
                "`/bin/x` is neither a program for this machine nor a script with `#!`",
            ),
            (
                r#"chdir to cwd (\"/a\") set in config.json failed: not a directory"#,
                "`/a` is not a directory",
            ),
            ("something new", "runc says: something new"),
        ] {
            let log = format!(
                "{{\"level\":\"warning\",\"msg\":\"w\",\"time\":\"t\"}}\n{{\"level\":\"error\",\"msg\":\"runc run \
                 failed: unable to start container process: {said}\",\"time\":\"t\"}}\n"
            );
            assert_eq!(of_runc(&log).as_deref(), Some(words));
        }
        assert_eq!(of_runc("{\"level\":\"warning\",\"msg\":\"w\"}\nbroken"), None);
    }

    #[test]
    fn the_launcher_says_what_it_could_not_do() {
        assert_eq!(
            of_launcher("kapell-launch 1 make a user namespace\n").unwrap(),
            "this machine could not make a user namespace for the container: Operation not permitted (os \
             error 1)"
        );
        assert!(of_launcher("kapell-launch 22 map the owners of x\n").unwrap().contains("ext4"));
        assert_eq!(of_launcher(""), None);
    }
}
