//! Starting other programs.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Result, failed};

/// Longer than anybody waits for a program.
const FOREVER: Duration = Duration::from_hours(24 * 365);

/// The cargo that started us, so that a toolchain override holds for its children too.
pub(crate) fn cargo(root: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root);
    // What it told us of our own package. Build scripts that look at these would run again, and all that hangs on
    // them, whenever a person's own `cargo` and ours take turns.
    for (name, _) in std::env::vars_os() {
        let is_ours =
            |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        if name.to_str().is_some_and(is_ours) {
            command.env_remove(&name);
        }
    }
    command
}

/// The command as a person would type it.
pub(crate) fn show(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let mut text = program.to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

/// Runs to the end with our own streams; false if it failed.
pub(crate) fn succeeds(command: &mut Command) -> Result<bool> {
    let status = command.status().map_err(|error| failed(format!("{}: {error}", show(command))))?;
    Ok(status.success())
}

/// Runs to the end and shows every line of its stdout as it comes, and to `each` as well.
pub(crate) fn tee(command: &mut Command, each: impl FnMut(&str)) -> Result<bool> {
    tee_until(command, None, each)
}

/// Like [`tee`], with [`each_line_until`]'s end.
pub(crate) fn tee_until(
    command: &mut Command,
    end: Option<Instant>,
    mut each: impl FnMut(&str),
) -> Result<bool> {
    let mut shown = Ok(());
    let ok = each_line_until(command, end, |line| {
        let mut out = io::stdout().lock();
        if shown.is_ok() {
            shown = out.write_all(line).and_then(|()| out.flush());
        }
        each(String::from_utf8_lossy(line).trim_end());
    })?;
    shown?;
    Ok(ok)
}

/// Runs to the end and tells every line of its stdout as it comes, with its end.
pub(crate) fn each_line(command: &mut Command, each: impl FnMut(&[u8])) -> Result<bool> {
    each_line_until(command, None, each)
}

/// Like [`each_line`], but what still runs at `end` is killed and has failed.
pub(crate) fn each_line_until(
    command: &mut Command,
    end: Option<Instant>,
    mut each: impl FnMut(&[u8]),
) -> Result<bool> {
    let name = show(command);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("{name}: {error}")))?;
    let pipe = child.stdout.take().ok_or_else(|| failed(format!("{name}: no stdout")))?;
    let (say, said) = sync_channel::<Vec<u8>>(1024);
    // Nobody waits for this thread: a child of a killed program may hold the pipe for as long as it likes.
    thread::spawn(move || {
        let mut lines = BufReader::new(pipe);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            if say.send(std::mem::take(&mut line)).is_err() {
                break;
            }
        }
    });
    loop {
        let left = end.map_or(FOREVER, |end| end.saturating_duration_since(Instant::now()));
        match said.recv_timeout(left) {
            Ok(line) => each(&line),
            Err(RecvTimeoutError::Disconnected) => return Ok(child.wait()?.success()),
            Err(RecvTimeoutError::Timeout) => break,
        }
    }
    child.kill()?;
    child.wait()?;
    each(format!("{name}: killed, because it did not end\n").as_bytes());
    Ok(false)
}

/// What a command prints on stdout, trimmed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let name = show(command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| failed(format!("{name}: {error}")))?;
    if !output.status.success() {
        return Err(failed(format!("{name}: {}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// Where a program lies, by `PATH`.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}

/// The commit at hand, marked if files differ from it.
pub(crate) fn commit(root: &Path) -> String {
    let mut git = Command::new("git");
    git.current_dir(root).args(["describe", "--always", "--dirty", "--exclude=*"]);
    output(&mut git).unwrap_or_else(|_| "unknown".to_owned())
}

/// Today in UTC, as `2026-01-31`.
pub(crate) fn today() -> String {
    output(Command::new("date").args(["-u", "+%F"])).unwrap_or_else(|_| "unknown".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn run(script: &str, end: Option<Instant>) -> (bool, String) {
        let mut said = Vec::new();
        let ok = each_line_until(&mut shell(script), end, |line| said.extend_from_slice(line));
        (ok.unwrap(), String::from_utf8(said).unwrap())
    }

    #[test]
    fn whole_lines_come_with_their_ends_and_the_status_is_told() {
        assert_eq!(run("printf 'a\\nb'", None), (true, "a\nb".to_owned()));
        assert_eq!(run("echo a; exit 3", None), (false, "a\n".to_owned()));
    }

    #[test]
    fn what_does_not_end_is_killed_whoever_holds_its_pipe() {
        let end = Instant::now() + Duration::from_millis(300);
        let (ok, said) = run("echo begun; sleep 5 & wait", Some(end));
        assert!(!ok && said.starts_with("begun\n"), "{said}");
        assert!(said.ends_with("killed, because it did not end\n"), "{said}");
        assert!(end.elapsed() < Duration::from_secs(3), "{:?}", end.elapsed());
    }
}
