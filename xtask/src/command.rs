//! Starting other programs.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Result, failed};

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
pub(crate) fn tee(command: &mut Command, mut each: impl FnMut(&str)) -> Result<bool> {
    let mut shown = Ok(());
    let ok = each_line(command, |line| {
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
pub(crate) fn each_line(command: &mut Command, mut each: impl FnMut(&[u8])) -> Result<bool> {
    let name = show(command);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("{name}: {error}")))?;
    let pipe = child.stdout.take().ok_or_else(|| failed(format!("{name}: no stdout")))?;
    let mut lines = BufReader::new(pipe);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        each(&line);
        line.clear();
    }
    Ok(child.wait()?.success())
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
