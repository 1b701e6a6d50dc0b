//! A browser without a window, told what to do over two pipes.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::bench::{is_there, try_eventually};

pub(crate) const PROGRAM: &str = "chromium-headless-shell";
const LIMIT: Duration = Duration::from_secs(20);
/// What a browser says of a script whose page it leaves while it is evaluated.
const WENT_AWAY: &str = "Inspected target navigated or closed";
/// Finds what people with a disability stumble over; see `axe/LICENSE`.
const AXE: &str = include_str!("axe/axe.min.js");

/// A page in a browser of its own.
pub(crate) struct Browser {
    child: Child,
    commands: std::fs::File,
    messages: Receiver<Value>,
    /// Read while something else was waited for.
    events: VecDeque<Value>,
    session: String,
    last: u64,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Opens an empty page; the reason if there is no browser here.
    pub(crate) fn open() -> Result<Self, String> {
        if !is_there(PROGRAM) {
            return Err(format!("there is no {PROGRAM} here"));
        }
        let profile = tempfile::tempdir().expect("a directory");
        // No other browser that a test starts meanwhile may hold an end of them.
        let pipe = || nix::unistd::pipe2(OFlag::O_CLOEXEC).expect("a pipe");
        let ((their_in, our_out), (our_in, their_out)) = (pipe(), pipe());
        let child = start(&profile, &their_in, &their_out);
        drop((their_in, their_out));
        let (sender, messages) = mpsc::channel();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(std::fs::File::from(our_in));
            let mut bytes = Vec::new();
            while reader.read_until(0, &mut bytes).is_ok_and(|length| length > 0) {
                bytes.pop();
                let message = serde_json::from_slice(&bytes).expect("a message");
                bytes.clear();
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser = Self {
            child,
            commands: our_out.into(),
            messages,
            events: VecDeque::new(),
            session: String::new(),
            last: 0,
            _profile: profile,
        };
        let page = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let target = json!({"targetId": page["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", &target);
        attached["sessionId"].as_str().expect("a session").clone_into(&mut browser.session);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        Ok(browser)
    }

    /// Has something done, and gives its result.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.answer(method, params);
        assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
        answer["result"].clone()
    }

    #[track_caller]
    fn answer(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let id = self.last;
        let mut message = json!({"id": id, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.commands.write_all(&bytes).expect("the browser is there");
        let deadline = Instant::now() + LIMIT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let message = self.messages.recv_timeout(left).expect("an answer of the browser");
            if message["id"] == id {
                return message;
            }
            self.events.push_back(message);
        }
    }

    pub(crate) fn resize(&mut self, width: u32, height: u32) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &size);
    }

    pub(crate) fn dark(&mut self, dark: bool) {
        let value = if dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": value}]});
        self.call("Emulation.setEmulatedMedia", &features);
    }

    pub(crate) fn go(&mut self, url: &str) {
        self.call("Page.navigate", &json!({"url": url}));
    }

    /// What a piece of script gives.
    #[track_caller]
    pub(crate) fn evaluate(&mut self, script: &str) -> Value {
        self.try_evaluate(script).unwrap_or_else(|| panic!("{script}: the page went away"))
    }

    /// The same; nothing if the page goes away meanwhile, for whoever waits for the next one.
    #[track_caller]
    fn try_evaluate(&mut self, script: &str) -> Option<Value> {
        let params = json!({"expression": script, "returnByValue": true, "awaitPromise": true});
        let answer = self.answer("Runtime.evaluate", &params);
        if answer["error"]["message"] == WENT_AWAY {
            return None;
        }
        assert!(answer["error"].is_null(), "{script}: {}", answer["error"]);
        let result = &answer["result"];
        assert!(result["exceptionDetails"].is_null(), "{script}: {result}");
        Some(result["result"]["value"].clone())
    }

    pub(crate) fn text(&mut self) -> String {
        self.try_text().expect("the page stays")
    }

    fn try_text(&mut self) -> Option<String> {
        let text = self.try_evaluate("document.body ? document.body.innerText : ''")?;
        Some(text.as_str().unwrap_or_default().to_owned())
    }

    /// Waits until the page shows this.
    #[track_caller]
    pub(crate) fn until(&mut self, wanted: &str) {
        let mut seen = String::new();
        let shown = try_eventually(LIMIT, || {
            seen = self.try_text()?;
            seen.contains(wanted).then_some(())
        });
        assert!(shown.is_some(), "no `{wanted}` in:\n{seen}");
    }

    /// Waits until a piece of script gives true.
    #[track_caller]
    pub(crate) fn until_true(&mut self, script: &str) {
        let shown = try_eventually(LIMIT, || (self.try_evaluate(script)? == true).then_some(()));
        assert!(shown.is_some(), "never true: {script}; in:\n{}", self.text());
    }

    /// What makes this page hard to use, each with where it is.
    #[track_caller]
    pub(crate) fn barriers(&mut self) -> Vec<String> {
        self.evaluate(&format!("{AXE};1"));
        let found = self.evaluate(
            "axe.run().then((it) => it.violations.flatMap((rule) => rule.nodes.map((node) => \
             rule.id + ' at ' + node.target.join(' ') + ': ' + node.failureSummary)))",
        );
        let found = found.as_array().expect("a list").clone();
        found.iter().map(ToString::to_string).collect()
    }

    /// Everything that went wrong so far: script errors, console errors, refused or failed loads.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        // An answer comes behind all that happened before.
        self.evaluate("1");
        let mut found = Vec::new();
        for event in self.events.drain(..) {
            let params = &event["params"];
            match event["method"].as_str().unwrap_or_default() {
                "Runtime.exceptionThrown" => found.push(params["exceptionDetails"].to_string()),
                "Runtime.consoleAPICalled" if params["type"] == "error" => {
                    found.push(params["args"].to_string());
                }
                "Log.entryAdded" if params["entry"]["level"] == "error" => {
                    found.push(params["entry"].to_string());
                }
                "Network.responseReceived"
                    if params["response"]["status"].as_u64() >= Some(400) =>
                {
                    found.push(params["response"]["url"].to_string());
                }
                _ => {}
            }
        }
        found
    }

    /// A picture of the page, as a PNG file.
    pub(crate) fn picture(&mut self) -> Vec<u8> {
        let shot = self.call("Page.captureScreenshot", &json!({"format": "png"}));
        decode_base64(shot["data"].as_str().expect("a picture"))
    }
}

fn start(profile: &tempfile::TempDir, commands: &OwnedFd, answers: &OwnedFd) -> Child {
    let (commands, answers) = (commands.as_raw_fd(), answers.as_raw_fd());
    let mut command = Command::new(PROGRAM);
    command
        .args(["--no-sandbox", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu"])
        .args(["--disable-background-networking", "--disable-component-update"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // What is started is a script that starts the browser: both are to end.
        .process_group(0);
    // Above the numbers that the browser wants, so that neither overwrites the other.
    let high = |fd| {
        // SAFETY: the caller holds it open for the whole call.
        #[expect(unsafe_code, reason = "a descriptor by its number")]
        let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
        fcntl(fd, FcntlArg::F_DUPFD_CLOEXEC(10)).expect("a descriptor")
    };
    let (commands, answers) = (high(commands), high(answers));
    // SAFETY: `dup2` and `close` may be called between fork and exec.
    #[expect(unsafe_code, reason = "the browser wants its pipes at 3 and 4")]
    unsafe {
        command.pre_exec(move || {
            for (from, to) in [(commands, 3), (answers, 4)] {
                if nix::libc::dup2(from, to) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                nix::libc::close(from);
            }
            Ok(())
        });
    }
    let child = command.spawn().expect("the browser starts");
    for fd in [commands, answers] {
        nix::unistd::close(fd).expect("ours");
    }
    child
}

impl Drop for Browser {
    fn drop(&mut self) {
        if let Ok(group) = i32::try_from(self.child.id()) {
            let _gone = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
        let _reaped = self.child.wait();
    }
}

fn decode_base64(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::new();
    for four in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits =
            four.iter().fold(0, |bits, byte| bits << 6 | value(*byte)) << (6 * (4 - four.len()));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..four.len()]);
    }
    bytes
}
