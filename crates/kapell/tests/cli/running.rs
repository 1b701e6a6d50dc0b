//! A command that has not ended yet.

use std::fs::File;
use std::io::{Read, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::bench::{LIMIT, Ran, eventually};
use crate::census::{children, marked};

/// Something that a command wrote; nothing means that the stream has ended.
enum News {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    End,
}

/// A command under way. Dropped before its end, it takes its processes with it.
pub(crate) struct Running {
    child: Child,
    mark: String,
    dir: String,
    news: Receiver<News>,
    streams: usize,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    began: Instant,
    finished: bool,
}

impl Running {
    /// What it tells on standard error goes to `log` as well.
    pub(crate) fn start(
        mut command: Command,
        mark: String,
        dir: String,
        log: Option<File>,
    ) -> Self {
        let began = Instant::now();
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command starts");
        let (sender, news) = mpsc::channel();
        forward(child.stdout.take().expect("a pipe"), sender.clone(), News::Stdout, None);
        forward(child.stderr.take().expect("a pipe"), sender, News::Stderr, log);
        let (stdout, stderr) = (Vec::new(), Vec::new());
        Self { child, mark, dir, news, streams: 2, stdout, stderr, began, finished: false }
    }

    /// The process that was started: the supervisor.
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a process id")
    }

    /// The process below it that does the work.
    #[track_caller]
    pub(crate) fn worker(&self) -> i32 {
        eventually("the worker", || self.worker_now())
    }

    /// The same, if it is there by now.
    pub(crate) fn worker_now(&self) -> Option<i32> {
        children(self.pid()).first().map(|child| child.pid)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// Waits until standard output holds `text`.
    #[track_caller]
    pub(crate) fn until(&mut self, text: &str) {
        let since = Instant::now();
        while !String::from_utf8_lossy(&self.stdout).contains(text) {
            assert!(self.hear(since), "ended without `{text}`:\n{}", self.so_far());
        }
    }

    /// Waits until standard error holds `text`, `count` times.
    #[track_caller]
    pub(crate) fn until_told(&mut self, text: &str, count: usize) {
        let since = Instant::now();
        while String::from_utf8_lossy(&self.stderr).matches(text).count() < count {
            assert!(self.hear(since), "ended without `{text}` ({count}):\n{}", self.so_far());
        }
    }

    /// Standard error as far as it was written by now.
    pub(crate) fn stderr_so_far(&mut self) -> String {
        while let Ok(news) = self.news.try_recv() {
            self.take(news);
        }
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    fn take(&mut self, news: News) {
        match news {
            News::Stdout(chunk) => self.stdout.extend(chunk),
            News::Stderr(chunk) => self.stderr.extend(chunk),
            News::End => self.streams -= 1,
        }
    }

    /// Takes the next piece of news. False if both streams have ended.
    #[track_caller]
    fn hear(&mut self, since: Instant) -> bool {
        let left = LIMIT.saturating_sub(since.elapsed());
        match self.news.recv_timeout(left) {
            Ok(news) => self.take(news),
            Err(error) => panic!("not done after {LIMIT:?}: {error}\n{}", self.so_far()),
        }
        self.streams > 0
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|ended| ended.is_some())
    }

    fn so_far(&self) -> String {
        let text = String::from_utf8_lossy;
        format!("stdout:\n{}\nstderr:\n{}", text(&self.stdout), text(&self.stderr))
    }

    /// Waits for the end.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Ran {
        // A host may have lived for longer than anybody waits.
        let since = Instant::now();
        while self.streams > 0 {
            self.hear(since);
        }
        let status = self.child.wait().expect("it is our child");
        self.finished = true;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ran {
            status,
            stdout: text(&self.stdout),
            stderr: text(&self.stderr),
            took: self.began.elapsed(),
            dir: self.dir.clone(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        for process in marked(&self.mark) {
            send(process.pid, Signal::SIGKILL);
        }
        // It is dead or dying; a zombie is all that could stay.
        let _reaped = self.child.wait();
    }
}

/// Sends a signal to a process that may be gone.
pub(crate) fn send(pid: i32, signal: Signal) {
    let _gone = kill(Pid::from_raw(pid), signal);
}

/// Whether what is started here heeds a signal: whoever runs all of this under `nohup` has it go on when it is hung up on.
pub(crate) fn is_heeded(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("we are there");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask");
    let ignored = u64::from_str_radix(ignored.trim(), 16).expect("a number");
    ignored & (1 << (signal as u32 - 1)) == 0
}

fn forward(
    mut pipe: impl Read + Send + 'static,
    to: Sender<News>,
    wrap: fn(Vec<u8>) -> News,
    mut log: Option<File>,
) {
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(length @ 1..) = pipe.read(&mut buffer) {
            if let Some(log) = &mut log {
                log.write_all(&buffer[..length]).expect("a log can be written");
            }
            if to.send(wrap(buffer[..length].to_vec())).is_err() {
                return;
            }
        }
        // Nobody may be listening any more.
        let _told = to.send(News::End);
    });
}
