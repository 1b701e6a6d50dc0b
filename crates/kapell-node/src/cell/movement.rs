//! One download or upload of a container.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use kapell_core::board::{Download, Upload};
use kapell_core::causes::chain;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::sys::stat::Mode;
use ring::digest::{Context, SHA256};
use tokio::task::spawn_blocking;

use super::tag::Tag;
use super::tools::Tools;
use super::transfers;

/// Removes a file when it is not needed any more.
#[derive(Debug)]
struct Passing(PathBuf);

impl Drop for Passing {
    fn drop(&mut self) {
        // One that was never written is not there.
        drop(fs::remove_file(&self.0));
    }
}

/// Gets a file, looks whether it is the right one, and puts it into a container.
pub(super) async fn download(
    tools: &Tools,
    tag: &Tag,
    name: &str,
    download: &Download,
) -> Result<(), String> {
    let from = &download.from;
    let failed = |why: String| format!("cannot download `{from}`: {why}");
    let dir = tools.downloads.as_ref().ok_or("this cell keeps no files, and downloads nothing")?;
    let guid = tag.instance_guid.as_str();
    let passing = Passing(dir.join(format!("{guid}-{name}")));
    let most = tools.settings.download_bytes;
    match from.strip_prefix("file:") {
        Some(_) => {
            let allowed = tools.settings.downloads.clone();
            let (from, into) = (from.clone(), passing.0.clone());
            let copied = spawn_blocking(move || copy(allowed.as_deref(), &from, &into, most)).await;
            copied.unwrap_or_else(|error| Err(error.to_string())).map_err(failed)?;
        }
        None => tools.transfers.fetch(from, &passing.0, most).await.map_err(failed)?,
    }
    if let Some(wanted) = download.checksum.clone() {
        let file = passing.0.clone();
        let checked = spawn_blocking(move || verify(&file, &wanted)).await;
        checked.unwrap_or_else(|error| Err(error.to_string())).map_err(failed)?;
    }
    let put = tools.containers.put(guid, &passing.0, &download.to).await;
    put.map_err(|error| format!("cannot put `{from}` to `{}`: {}", download.to, chain(&error)))
}

/// Reads a file of a container and sends it.
pub(super) async fn upload(tools: &Tools, tag: &Tag, upload: &Upload) -> Result<(), String> {
    let Upload { from, to } = upload;
    let failed = |why: String| format!("cannot upload `{from}` to `{to}`: {why}");
    let most = tools.settings.upload_bytes;
    let guid = tag.instance_guid.as_str();
    let read = tools.containers.read_own(guid, from, most.saturating_add(1)).await;
    let bytes = read.map_err(|error| failed(chain(&error)))?;
    if bytes.len() as u64 > most {
        return Err(failed(transfers::too_long(most)));
    }
    tools.transfers.send(to, bytes).await.map_err(failed)
}

/// Copies a file of this machine that its operator has laid out for containers.
fn copy(allowed: Option<&Path>, url: &str, into: &Path, most: u64) -> Result<(), String> {
    let allowed = allowed.ok_or(
        "this cell gives none of its files away: its operator can name a directory for `file:` downloads",
    )?;
    let outside = || format!("only files below `{}` may be had", allowed.display());
    let parsed = url::Url::parse(url).map_err(|error| error.to_string())?;
    let path = parsed.to_file_path().map_err(|()| "it names no file of this machine".to_owned())?;
    let below = path.strip_prefix(allowed).map_err(|_| outside())?;
    let found = open_below(allowed, below).map_err(|error| match error.raw_os_error() {
        Some(libc_eloop) if libc_eloop == nix::errno::Errno::ELOOP as i32 => {
            format!("{}, and no link is followed", outside())
        }
        Some(code) if code == nix::errno::Errno::EXDEV as i32 => outside(),
        Some(_) | None => error.to_string(),
    })?;
    let about = found.metadata().map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("it is not a plain file".to_owned());
    }
    let mut to = transfers::create(into).map_err(|error| error.to_string())?;
    let copied = io::copy(&mut found.take(most.saturating_add(1)), &mut to);
    match copied {
        Ok(length) if length > most => Err(transfers::too_long(most)),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// Opens what is below a directory. No link is followed on the way, and nobody waits for a pipe.
fn open_below(dir: &Path, file: &Path) -> io::Result<File> {
    let flags = OFlag::O_CLOEXEC;
    let dir = open(dir, flags | OFlag::O_PATH | OFlag::O_DIRECTORY, Mode::empty())?;
    let resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS;
    let how = OpenHow::new().flags(flags | OFlag::O_NONBLOCK).resolve(resolve);
    Ok(File::from(openat2(dir, file, how)?))
}

fn verify(file: &Path, wanted: &str) -> Result<(), String> {
    let hex = wanted.strip_prefix("sha256:");
    let hex = hex.ok_or_else(|| format!("its checksum `{wanted}` is not `sha256:…`"))?;
    let mut file = File::open(file).map_err(|error| error.to_string())?;
    let mut digest = Context::new(&SHA256);
    let mut part = vec![0; 64 << 10];
    loop {
        let length = file.read(&mut part).map_err(|error| error.to_string())?;
        if length == 0 {
            break;
        }
        digest.update(&part[..length]);
    }
    let found: String = digest.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    if found.eq_ignore_ascii_case(hex) {
        return Ok(());
    }
    Err(format!("its checksum is sha256:{found}, not {wanted}"))
}
