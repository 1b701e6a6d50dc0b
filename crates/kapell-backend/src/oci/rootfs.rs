use std::path::PathBuf;

use serde_json::{Value, json};

/// What a container sees as `/`, and what its image says of how to run it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Rootfs {
    /// Names the image among those that are kept.
    pub(super) image: String,
    /// The topmost first. Never written to.
    pub(super) layers: Vec<PathBuf>,
    /// As `NAME=value`.
    pub(super) env: Vec<String>,
    pub(super) entrypoint: Vec<String>,
    pub(super) cmd: Vec<String>,
    /// Empty if it says nothing, as the next.
    pub(super) working_dir: String,
    pub(super) user: String,
}

impl Rootfs {
    pub(super) fn to_json(&self) -> Value {
        let Self { image, layers, env, entrypoint, cmd, working_dir, user } = self;
        json!({
            "image": image, "layers": layers, "env": env, "entrypoint": entrypoint, "cmd": cmd,
            "workingDir": working_dir, "user": user,
        })
    }

    pub(super) fn from_json(value: &Value) -> Option<Self> {
        let texts = |name: &str| -> Option<Vec<String>> {
            let list = value.get(name)?.as_array()?;
            list.iter().map(|text| text.as_str().map(str::to_owned)).collect()
        };
        let text = |name: &str| value.get(name)?.as_str().map(str::to_owned);
        Some(Self {
            image: text("image")?,
            layers: texts("layers")?.into_iter().map(PathBuf::from).collect(),
            env: texts("env")?,
            entrypoint: texts("entrypoint")?,
            cmd: texts("cmd")?,
            working_dir: text("workingDir")?,
            user: text("user")?,
        })
    }
}
