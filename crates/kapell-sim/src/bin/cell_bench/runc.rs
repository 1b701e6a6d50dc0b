//! `runc` alone, with the bundle of a container of ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use kapell_sim::bench::parts::ms;
use serde_json::{Value, json};

use crate::root::Root;

const ID: &str = "bare";

#[derive(Debug)]
pub(crate) struct Bare {
    dir: PathBuf,
    group: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// `runc` waits for the program and clears up behind it.
    WithProgram,
    /// `runc` ends when the program runs.
    Before,
}

impl Bare {
    /// Takes the bundle of a container that was made, with files that are there already in the place of what a
    /// launcher mounts, and with namespaces for `runc` to make.
    pub(crate) fn like(bundle: &Path, root: &Root, dir: PathBuf) -> anyhow::Result<Self> {
        fs::create_dir_all(&dir)?;
        let text = fs::read(bundle.join("config.json")).context("its bundle")?;
        let mut config: Value = serde_json::from_slice(&text)?;
        let base = config["linux"]["uidMappings"][0]["hostID"].as_u64().context("its users")?;
        let files = dir.join("root");
        root.copy_to(&files)?;
        let owner = format!("{base}:{base}");
        let given = Command::new("chown").args(["-hR", &owner]).arg(&files).status()?;
        ensure!(given.success(), "its files cannot be given away");
        // Beside ours: on a busy machine those who share a group share a processor.
        let ours = config["linux"]["cgroupsPath"].as_str().context("its control group")?;
        let group = Path::new(ours).with_file_name(ID).display().to_string();
        config["root"]["path"] = json!(files);
        config["linux"]["cgroupsPath"] = json!(group);
        let namespaces = config["linux"]["namespaces"].as_array_mut().context("namespaces")?;
        for namespace in namespaces.iter_mut() {
            namespace.as_object_mut().context("a namespace")?.remove("path");
        }
        for mount in config["mounts"].as_array_mut().context("mounts")? {
            if mount["type"] == "bind" {
                let shown = mount["source"].as_str().context("a source")?;
                let copy = dir.join(Path::new(shown).file_name().context("a name")?);
                fs::copy(shown, &copy)?;
                mount["source"] = json!(copy);
            }
        }
        fs::write(dir.join("config.json"), config.to_string())?;
        Ok(Self { dir, group })
    }

    fn command(&self) -> Command {
        let mut runc = Command::new("runc");
        runc.arg("--root").arg(self.dir.join("state"));
        runc.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        runc
    }

    /// Runs it once, in milliseconds.
    pub(crate) fn run(&self, ends: Ends) -> anyhow::Result<f64> {
        let mut run = self.command();
        run.args(["run", "--bundle"]).arg(&self.dir);
        match ends {
            Ends::WithProgram => {}
            Ends::Before => {
                run.arg("--detach");
            }
        }
        run.arg(ID);
        let begun = Instant::now();
        ensure!(run.status()?.success(), "runc does not run the bundle");
        let took = ms(begun.elapsed());
        match ends {
            Ends::WithProgram => {}
            Ends::Before => {
                let deleted = self.command().args(["delete", "--force", ID]).status()?;
                ensure!(deleted.success(), "runc does not delete its container");
            }
        }
        Ok(took)
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let group = self.group.trim_start_matches('/');
        let all = Path::new("/sys/fs/cgroup");
        let hierarchies = fs::read_dir(all).into_iter().flatten().flatten();
        for hierarchy in hierarchies.map(|it| it.path()).chain([all.to_owned()]) {
            let _absent = fs::remove_dir(hierarchy.join(group));
        }
    }
}
