//! How fast a layer of 200 MB becomes a directory, as a multiple of what `tar` takes for it.
//!
//! Ours includes what `tar` does not do: both digests, and all of it on the disk at the end.
#![expect(clippy::print_stdout, reason = "it is a report")]

use std::error::Error;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use kapell_backend::image::{Digest, Images, Settings};

const ROUNDS: usize = 3;
const FILES: u32 = 4_000;
const FILE_BYTES: u32 = 50_000;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let (layout, blob) = write_layout(dir.path())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for round in 0..ROUNDS {
        let plain = tar(dir.path(), &blob, &format!("tar-{round}"), "tar xzf \"$1\"")?;
        let durable =
            tar(dir.path(), &blob, &format!("sync-{round}"), "tar xzf \"$1\" && sync -f .")?;
        let settings = Settings { local_roots: vec![dir.path().to_owned()], ..Settings::default() };
        let images = Images::open(&dir.path().join(format!("store-{round}")), settings)?;
        let start = Instant::now();
        runtime.block_on(images.prepare(&format!("oci://{}", layout.display())))?;
        let ours = start.elapsed();
        let ratio = |other: Duration| ours.as_secs_f64() / other.as_secs_f64();
        println!(
            "tar {plain:.2?}, tar and sync {durable:.2?}, ours {ours:.2?}: {:.2} x tar, {:.2} x tar and sync",
            ratio(plain),
            ratio(durable)
        );
    }
    Ok(())
}

fn tar(dir: &Path, blob: &Path, name: &str, script: &str) -> Result<Duration, Box<dyn Error>> {
    let into = dir.join(name);
    fs::create_dir(&into)?;
    let start = Instant::now();
    let status =
        Command::new("sh").args(["-c", script, "sh"]).arg(blob).current_dir(&into).status()?;
    let took = start.elapsed();
    if status.success() { Ok(took) } else { Err("tar failed".into()) }
}

/// An image of one layer, half of which can be compressed.
fn write_layout(dir: &Path) -> Result<(std::path::PathBuf, std::path::PathBuf), Box<dyn Error>> {
    let (content, layout) = (dir.join("content"), dir.join("layout"));
    let mut random = 1_u32;
    for number in 0..FILES {
        let at = content.join(format!("d{}", number / 100));
        fs::create_dir_all(&at)?;
        let mut file = File::create(at.join(format!("f{number}")))?;
        let mut next = || {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            u8::try_from(random >> 24).unwrap_or_default()
        };
        let bytes: Vec<u8> =
            (0..FILE_BYTES).map(|at| if at % 2 == 0 { next() } else { b'x' }).collect();
        file.write_all(&bytes)?;
    }
    let archive = dir.join("layer.tar");
    let status =
        Command::new("tar").arg("cf").arg(&archive).arg("-C").arg(&content).arg(".").status()?;
    if !status.success() {
        return Err("tar failed".into());
    }
    let diff_id = Digest::of(&fs::read(&archive)?);
    Command::new("gzip").arg("-1").arg(&archive).status()?;
    let blobs = layout.join("blobs/sha256");
    fs::create_dir_all(&blobs)?;
    let put = |bytes: &[u8]| -> Result<String, Box<dyn Error>> {
        let digest = Digest::of(bytes);
        fs::write(blobs.join(digest.hex()), bytes)?;
        Ok(format!(r#""digest":"{digest}","size":{}"#, bytes.len()))
    };
    let blob = fs::read(dir.join("layer.tar.gz"))?;
    let layer = put(&blob)?;
    let config = put(format!(r#"{{"rootfs":{{"diff_ids":["{diff_id}"]}}}}"#).as_bytes())?;
    let kind = "application/vnd.oci.image.layer.v1.tar+gzip";
    let manifest =
        format!(r#"{{"config":{{{config}}},"layers":[{{"mediaType":"{kind}",{layer}}}]}}"#);
    let manifest = put(manifest.as_bytes())?;
    fs::write(layout.join("index.json"), format!(r#"{{"manifests":[{{{manifest}}}]}}"#))?;
    Ok((layout, dir.join("layer.tar.gz")))
}
