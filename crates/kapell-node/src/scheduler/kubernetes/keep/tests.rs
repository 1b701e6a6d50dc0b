use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{TryStreamExt as _, stream};
use kapell_core::kubernetes::ContainerSight;
use kapell_core::log::{Decoder, Stream};
use tempfile::TempDir;

use super::*;
use crate::scheduler::conformance::attempt;

/// One whose container writes these lines, and then for ever the last of them.
struct Talker {
    lines: Vec<String>,
    seen: watch::Sender<u64>,
    /// How many lines were asked for.
    asked: Arc<AtomicUsize>,
    life: Life,
}

impl Talker {
    fn new(lines: Vec<String>, life: Life) -> Self {
        Self { lines, seen: watch::Sender::new(0), asked: Arc::default(), life }
    }
}

impl Pod for Talker {
    fn sight(&self) -> Presence<PodSight> {
        let containers = vec![ContainerSight { name: "main".into(), life: self.life }];
        Presence::There(PodSight { containers, ..PodSight::default() })
    }

    fn life(&self, _container: &str) -> Life {
        self.life
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.seen.subscribe()
    }

    async fn open(&self, _pod: &str, _container: &str, _follow: bool) -> Result<Lines, Error> {
        let all = stream::iter(self.lines.clone());
        if self.life == Life::Over {
            return Ok(Lines::new("read", all.map(io::Result::Ok).into_async_read()));
        }
        let (last, asked) = (self.lines.last().unwrap().clone(), Arc::clone(&self.asked));
        let for_ever = stream::repeat_with(move || {
            asked.fetch_add(1, Ordering::Relaxed);
            last.clone()
        });
        Ok(Lines::new("read", all.chain(for_ever).map(io::Result::Ok).into_async_read()))
    }
}

fn text(prefix: &str) -> Vec<Text> {
    vec![Text { prefix: prefix.to_owned(), log: PodLog::of("main".to_owned()) }]
}

fn line(second: u32, text: &str) -> String {
    format!("2026-01-01T00:00:{second:02}Z {text}\n")
}

/// Keeps what a pod says, and gives all that is kept then.
async fn keep(dir: &TempDir, pod: &Talker, prefix: &str) -> Vec<Frame> {
    let (logs, one) = (RunLogs::below(dir.path()), attempt("one", 0));
    let (kept, texts) = begin(&logs, &one, text(prefix)).unwrap();
    let (kept, trouble) = pass_on(pod, texts, kept).await.unwrap();
    assert_eq!(trouble, None);
    kept.finish().unwrap();
    frames(&logs, &one)
}

fn frames(logs: &RunLogs, attempt: &Attempt) -> Vec<Frame> {
    let file = logs.read(attempt).unwrap().parts[0].join("00000001.log");
    let mut decoder = Decoder::default();
    decoder.push(&std::fs::read(file).unwrap());
    std::iter::from_fn(|| decoder.next_frame().unwrap()).collect()
}

fn written(frames: &[Frame]) -> Vec<&str> {
    frames.iter().map(|it| std::str::from_utf8(&it.bytes).unwrap()).collect()
}

#[tokio::test]
async fn who_has_kept_all_that_there_is_room_for_reads_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let pod = Talker::new(vec![line(1, &"x".repeat(8000))], Life::Writes);
    let frames = keep(&dir, &pod, "").await;
    let (mark, kept) = frames.split_last().unwrap();
    assert_eq!(mark.stream, Stream::Note);
    assert_eq!(mark.bytes, b"the rest was cut: a log of a run keeps 16 MiB\n");
    let size: usize = kept.iter().map(|it| 13 + it.bytes.len()).sum();
    let most = usize::try_from(MOST_FETCHED).unwrap();
    assert!(size <= most && size > most - 10_000, "{size}");
    assert!(pod.asked.load(Ordering::Relaxed) < kept.len() + 2 * BATCH, "it stops");
}

#[tokio::test]
async fn what_was_kept_before_a_restart_stays_though_the_cluster_has_dropped_it() {
    for prefix in ["", "[main] "] {
        let dir = tempfile::tempdir().unwrap();
        let logs = RunLogs::below(dir.path());
        let (mut kept, _) = begin(&logs, &attempt("one", 0), text(prefix)).unwrap();
        let at = |second: i64| kapell_core::seams::Timestamp(1_767_225_600_000 + second * 1000);
        for (second, text) in [(1, "one"), (2, "two")] {
            let bytes = format!("{prefix}{text}\n").into_bytes();
            kept.take(&Frame { stream: Stream::Out, at: at(second), bytes }).unwrap();
        }
        kept.remark(at(3), "the log is not whole: the host was killed").unwrap();
        drop(kept);
        let there = vec![line(2, "two"), line(3, "three")];
        let frames = keep(&dir, &Talker::new(there, Life::Over), prefix).await;
        let want = ["one", "two", "three"].map(|text| format!("{prefix}{text}\n"));
        assert_eq!(written(&frames), want);
    }
}

#[tokio::test]
async fn what_was_being_written_when_the_host_was_killed_is_written_anew() {
    let dir = tempfile::tempdir().unwrap();
    let there = vec![line(1, "one"), line(2, "two")];
    let pod = Talker::new(there, Life::Over);
    keep(&dir, &pod, "").await;
    let logs = RunLogs::below(dir.path());
    let file = logs.read(&attempt("one", 0)).unwrap().parts[0].join("00000001.log");
    let all = std::fs::read(&file).unwrap();
    for cut in 0..all.len() {
        std::fs::write(&file, &all[..cut]).unwrap();
        assert_eq!(written(&keep(&dir, &pod, "").await), ["one\n", "two\n"], "cut at {cut}");
    }
}
