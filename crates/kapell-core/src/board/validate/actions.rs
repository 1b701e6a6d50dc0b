//! What a container may be told to do.

use super::{Problems, quoted, url};
use crate::board::action::{Action, Download, Run, Upload};

const DEEPEST_ACTION: usize = 16;
/// In one of setup, action and monitor, with all that they are made of.
const MOST_ACTIONS: usize = 256;

impl Problems {
    pub(super) fn actions(&mut self, field: &str, action: &Action) {
        let count = action.all().count();
        if count > MOST_ACTIONS {
            let text = format!("must be made of at most {MOST_ACTIONS} actions, not {count}");
            return self.add(field, text);
        }
        self.action(field, action, 1);
    }

    fn action(&mut self, field: &str, action: &Action, depth: usize) {
        if depth > DEEPEST_ACTION {
            self.add(field, format!("must be nested at most {DEEPEST_ACTION} deep"));
            return;
        }
        let field = format!("{field}.{}", name(action));
        match action {
            Action::Run(run) => self.run(&field, run),
            Action::Download(download) => self.download(&field, download),
            Action::Upload(upload) => self.upload(&field, upload),
            Action::Timeout(timeout) => {
                if timeout.timeout_ms == 0 {
                    self.add(&format!("{field}.timeout_ms"), "must be more than 0");
                }
                self.action(&field, &timeout.action, depth + 1);
            }
            Action::Try(nested) => self.action(&field, &nested.action, depth + 1),
            Action::EmitProgress(progress) => self.action(&field, &progress.action, depth + 1),
            Action::Parallel(several) | Action::Serial(several) | Action::Codependent(several) => {
                if several.actions.is_empty() {
                    self.add(&format!("{field}.actions"), "must hold at least one action");
                }
                for (place, action) in several.actions.iter().enumerate() {
                    self.action(&format!("{field}.actions[{place}]"), action, depth + 1);
                }
            }
        }
    }

    fn run(&mut self, field: &str, run: &Run) {
        self.needed(&format!("{field}.path"), &run.path);
        for (place, arg) in run.args.iter().enumerate() {
            self.no_nul(&format!("{field}.args[{place}]"), arg);
        }
        for (part, text) in [("dir", &run.dir), ("user", &run.user)] {
            if let Some(text) = text {
                self.needed(&format!("{field}.{part}"), text);
            }
        }
        self.env(&format!("{field}.env"), &run.env);
    }

    fn download(&mut self, field: &str, download: &Download) {
        let from = &download.from;
        if url::has_credentials(from) {
            self.add(&format!("{field}.from"), url::NO_CREDENTIALS);
        } else if !url::is_http(from) && !url::is_file(from) {
            let right = "must be a URL such as `https://host/path` or `file:///path`";
            self.add(&format!("{field}.from"), format!("{right}, not {}", quoted(from)));
        }
        self.path(&format!("{field}.to"), &download.to);
        let wrong = download.checksum.as_ref().filter(|checksum| !is_checksum(checksum));
        if let Some(checksum) = wrong {
            let right = "must be `sha256:` and 64 hexadecimal digits";
            self.add(&format!("{field}.checksum"), format!("{right}, not {}", quoted(checksum)));
        }
    }

    fn upload(&mut self, field: &str, upload: &Upload) {
        self.path(&format!("{field}.from"), &upload.from);
        if url::has_credentials(&upload.to) {
            self.add(&format!("{field}.to"), url::NO_CREDENTIALS);
        } else if !url::is_http(&upload.to) {
            let right = "must be a URL such as `https://host/path`";
            self.add(&format!("{field}.to"), format!("{right}, not {}", quoted(&upload.to)));
        }
    }

    /// A file of the container.
    fn path(&mut self, field: &str, path: &str) {
        self.needed(field, path);
        if !url::is_relative(path) {
            let right = "must be a relative path without `..`";
            self.add(field, format!("{right}, not {}", quoted(path)));
        }
    }
}

fn is_checksum(text: &str) -> bool {
    let digits = text.strip_prefix("sha256:").unwrap_or("");
    digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

const fn name(action: &Action) -> &'static str {
    match action {
        Action::Run(_) => "run",
        Action::Download(_) => "download",
        Action::Upload(_) => "upload",
        Action::Timeout(_) => "timeout",
        Action::Try(_) => "try",
        Action::Parallel(_) => "parallel",
        Action::Serial(_) => "serial",
        Action::Codependent(_) => "codependent",
        Action::EmitProgress(_) => "emit_progress",
    }
}
