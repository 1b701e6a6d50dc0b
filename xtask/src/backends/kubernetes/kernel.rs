//! Settings of the kernel, which a kubelet changes for the whole machine.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::error::{Result, failed};

const FILE: &str = "kernel.json";
pub(super) const CHANGED: [&str; 6] = [
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
];

/// What they were.
#[derive(Debug)]
pub(super) struct Settings {
    file: PathBuf,
    values: Map<String, Value>,
}

impl Settings {
    /// Remembers them in a file, in case nobody who knows is left.
    pub(super) fn keep(dir: &Path) -> Result<Self> {
        let read = |name: &str| {
            let value = fs::read_to_string(place(name)).ok()?;
            Some((name.to_owned(), Value::from(value.trim())))
        };
        let values: Map<String, Value> = CHANGED.iter().filter_map(|name| read(name)).collect();
        let file = dir.join(FILE);
        fs::write(&file, Value::from(values.clone()).to_string())?;
        Ok(Self { file, values })
    }

    /// Puts back what the file says, if there is one.
    pub(super) fn restore(dir: &Path) -> Result<()> {
        let file = dir.join(FILE);
        let Ok(text) = fs::read_to_string(&file) else { return Ok(()) };
        let Ok(Value::Object(values)) = serde_json::from_str(&text) else {
            // We were ended while we wrote it: nobody has changed anything yet.
            return Ok(());
        };
        Self { file, values }.put_back()
    }

    pub(super) fn put_back(self) -> Result<()> {
        for (name, value) in &self.values {
            let value = value.as_str().unwrap_or_default();
            let is = fs::read_to_string(place(name)).unwrap_or_default();
            if is.trim() != value {
                write(name, value)?;
            }
        }
        Ok(fs::remove_file(&self.file)?)
    }
}

pub(super) fn write(name: &str, value: &str) -> Result<()> {
    let path = place(name);
    fs::write(&path, value).map_err(|error| failed(format!("{}: {error}", path.display())))
}

fn place(name: &str) -> PathBuf {
    Path::new("/proc/sys").join(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn what_was_kept_is_put_back_once() {
        let scratch = Scratch::new("kernel").unwrap();
        Settings::restore(scratch.path()).unwrap();
        let settings = Settings::keep(scratch.path()).unwrap();
        assert!(settings.values.contains_key("vm/overcommit_memory"));
        assert!(scratch.path().join(FILE).exists());
        Settings::restore(scratch.path()).unwrap();
        assert!(!scratch.path().join(FILE).exists());
        fs::write(scratch.path().join(FILE), "{\"vm").unwrap();
        Settings::restore(scratch.path()).unwrap();
    }
}
