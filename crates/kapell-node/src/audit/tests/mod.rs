//! Real files, on a disk that can be full.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use kapell_core::access::{Kind, Who};
use kapell_core::audit::{AuditRecord, Outcome};
use kapell_core::seams::Timestamp;

use super::files::list;
use super::*;
use crate::system::{SystemClock, SystemIds};

const LIMITS: Limits = Limits { file_bytes: 1 << 20, files: 4 };

/// A disk with so much room, whose syncs are counted and can fail.
#[derive(Debug, Clone, Default)]
struct Small {
    used: Arc<AtomicU64>,
    room: Arc<AtomicU64>,
    syncs: Arc<AtomicUsize>,
    broken: Arc<AtomicBool>,
}

impl Disk for Small {
    fn append(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        let left = self.room.load(Ordering::SeqCst) - self.used.load(Ordering::SeqCst);
        let fits = usize::try_from(left).unwrap().min(bytes.len());
        file.write_all(&bytes[..fits])?;
        if fits < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.used.fetch_add(fits as u64, Ordering::SeqCst);
        Ok(())
    }

    fn sync(&mut self, _: &File) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::SeqCst);
        let broken = self.broken.load(Ordering::SeqCst);
        if broken { Err(io::Error::other("broken")) } else { Ok(()) }
    }
}

impl Small {
    fn new(room: u64) -> Self {
        let small = Self::default();
        small.room.store(room, Ordering::SeqCst);
        small
    }
}

fn open(dir: &Path, limits: Limits, disk: impl Disk + 'static) -> Journal {
    let clock = Arc::new(SystemClock);
    Journal::open(dir.to_owned(), limits, Box::new(disk), clock, &SystemIds).unwrap()
}

fn wish(journal: &Journal, guid: &str) -> AuditRecord {
    let (id, at) = (journal.name(), journal.now());
    let mut record = AuditRecord::wish(id, at, Kind::Change, "desire", &Who::owner());
    record.about("process_guid", guid);
    record
}

fn done(mut record: AuditRecord) -> AuditRecord {
    record.outcome = Some(Outcome { status: 201, code: None });
    record
}

/// Keeps what is to be done, and notes that it was.
async fn change(journal: &Journal, guid: &str) -> Result<(), Unavailable> {
    let record = wish(journal, guid);
    journal.keep(&record).await?;
    journal.note(&done(record));
    Ok(())
}

/// The guids of all records, read in pages of `most`, with whether it is known what came of them.
async fn guids(journal: &Journal, most: usize) -> Vec<(String, bool)> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = journal.read(after.as_deref(), Timestamp(0), most).await.unwrap();
        assert!(page.records.len() <= most);
        let each = page.records.into_iter();
        found.extend(each.map(|it| (it.about["process_guid"].clone(), it.outcome.is_some())));
        if page.is_last {
            return found;
        }
        after = Some(page.next);
    }
}

fn known(guids: &[&str]) -> Vec<(String, bool)> {
    guids.iter().map(|&guid| (guid.to_owned(), true)).collect()
}

#[tokio::test]
async fn a_change_is_one_record_also_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("audit");
    let journal = open(&at, LIMITS, Real);
    assert_eq!(guids(&journal, 10).await, []);
    for guid in ["a", "b", "c"] {
        change(&journal, guid).await.unwrap();
    }
    // Begun and not ended: whoever does it still runs.
    journal.keep(&wish(&journal, "d")).await.unwrap();
    for most in [1, 2, 10] {
        assert_eq!(guids(&journal, most).await, known(&["a", "b", "c"]), "{most}");
    }
    let next = open(&at, LIMITS, Real);
    let mut all = known(&["a", "b", "c"]);
    all.push(("d".to_owned(), false));
    for most in [1, 2, 10] {
        assert_eq!(guids(&next, most).await, all, "{most}");
    }
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&at), 0o700);
    assert_eq!(mode(&files::path(&at, 1)), 0o600);
}

#[tokio::test]
async fn a_reader_goes_on_where_it_was_and_no_further_back_than_asked() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path(), LIMITS, Real);
    change(&journal, "a").await.unwrap();
    let first = journal.read(None, Timestamp(0), 10).await.unwrap();
    assert_eq!((first.records.len(), first.is_last), (1, true));
    change(&journal, "b").await.unwrap();
    let second = journal.read(Some(&first.next), Timestamp(0), 10).await.unwrap();
    assert_eq!(second.records.len(), 1);
    assert_eq!(second.records[0].about["process_guid"], "b");
    let later = journal.now().next();
    assert_eq!(journal.read(None, later, 10).await.unwrap().records, []);
    let foreign = journal.read(Some("elsewhere-1-999"), Timestamp(0), 10).await.unwrap();
    assert_eq!(foreign.records.len(), 2);
}

#[tokio::test]
async fn files_are_bounded_in_size_and_number() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { file_bytes: 1000, files: 3 };
    let journal = open(dir.path(), limits, Real);
    for number in 0..40 {
        change(&journal, &format!("g{number}")).await.unwrap();
    }
    let kept = guids(&journal, 5).await;
    assert_eq!(list(dir.path()).unwrap().len(), 3);
    for entry in fs::read_dir(dir.path()).unwrap() {
        assert!(entry.unwrap().metadata().unwrap().len() < 2000);
    }
    // What is left are the last ones, without a gap.
    let last: Vec<String> = (40 - kept.len()..40).map(|number| format!("g{number}")).collect();
    let last: Vec<&str> = last.iter().map(String::as_str).collect();
    assert!(kept.len() >= 4, "{kept:?}");
    assert_eq!(kept, known(&last));
}

#[tokio::test]
async fn a_torn_last_line_harms_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path(), LIMITS, Real);
    change(&journal, "a").await.unwrap();
    assert_eq!(guids(&journal, 10).await, known(&["a"]));
    let mut file = File::options().append(true).open(files::path(dir.path(), 1)).unwrap();
    file.write_all(br#"{"id":"torn","at":1"#).unwrap();
    let next = open(dir.path(), LIMITS, Real);
    change(&next, "b").await.unwrap();
    assert_eq!(guids(&next, 10).await, known(&["a", "b"]));
    assert_eq!(guids(&next, 1).await, known(&["a", "b"]));
}

#[tokio::test]
async fn what_a_full_disk_does_not_take_is_refused_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Small::new(1000);
    let journal = open(dir.path(), LIMITS, disk.clone());
    let mut kept = Vec::new();
    let refused = loop {
        let guid = format!("g{}", kept.len());
        match journal.keep(&wish(&journal, &guid)).await {
            Ok(()) => kept.push(guid),
            Err(why) => break why,
        }
    };
    assert!(matches!(refused, Unavailable::Disk(_)), "{refused}");
    assert!(kept.len() > 1);
    let text = fs::read_to_string(files::path(dir.path(), 1)).unwrap();
    assert_eq!(text.lines().count(), kept.len());
    assert!(text.ends_with('\n'));
    disk.room.store(10_000, Ordering::SeqCst);
    change(&journal, "again").await.unwrap();
    assert_eq!(guids(&journal, 10).await, known(&["again"]));
}

#[tokio::test]
async fn after_a_sync_that_failed_another_file_is_begun() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Small::new(100_000);
    let journal = open(dir.path(), LIMITS, disk.clone());
    change(&journal, "a").await.unwrap();
    disk.broken.store(true, Ordering::SeqCst);
    assert!(change(&journal, "b").await.is_err());
    disk.broken.store(false, Ordering::SeqCst);
    change(&journal, "c").await.unwrap();
    assert_eq!(guids(&journal, 10).await, known(&["a", "c"]));
    assert_eq!(list(dir.path()).unwrap(), [1, 2]);
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let journal = open(&file.join("audit"), LIMITS, Real);
    assert!(matches!(change(&journal, "a").await, Err(Unavailable::Disk(_))));
}

/// A disk whose first sync lasts until it is let go.
#[derive(Debug)]
struct Slow {
    go: std::sync::mpsc::Receiver<()>,
    begun: std::sync::mpsc::Sender<()>,
    syncs: Arc<AtomicUsize>,
}

impl Disk for Slow {
    fn append(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    fn sync(&mut self, _: &File) -> io::Result<()> {
        if self.syncs.fetch_add(1, Ordering::SeqCst) == 0 {
            self.begun.send(()).unwrap();
            self.go.recv().unwrap();
        }
        Ok(())
    }
}

#[tokio::test]
async fn those_who_wait_share_a_sync() {
    let dir = tempfile::tempdir().unwrap();
    let ((go, gone), (begun, hear)) = (std::sync::mpsc::channel(), std::sync::mpsc::channel());
    let syncs = Arc::new(AtomicUsize::new(0));
    let slow = Slow { go: gone, begun, syncs: Arc::clone(&syncs) };
    let journal = open(dir.path(), LIMITS, slow);
    let first = wish(&journal, "first");
    let mut first = Box::pin(journal.keep(&first));
    assert!(futures_util::poll!(&mut first).is_pending());
    hear.recv().unwrap();
    let records: Vec<AuditRecord> = (0..50).map(|_| wish(&journal, "more")).collect();
    let mut more: Vec<_> = records.iter().map(|it| Box::pin(journal.keep(it))).collect();
    for each in &mut more {
        assert!(futures_util::poll!(each).is_pending());
    }
    go.send(()).unwrap();
    first.await.unwrap();
    for each in more {
        each.await.unwrap();
    }
    assert_eq!(syncs.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn two_that_share_a_directory_do_not_disturb_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { file_bytes: 1 << 20, files: 1 };
    let (one, two) = (open(dir.path(), limits, Real), open(dir.path(), limits, Real));
    change(&one, "a").await.unwrap();
    change(&two, "b").await.unwrap();
    let page = one.read(None, Timestamp(0), 10).await.unwrap();
    assert!(!page.is_last);
    change(&one, "c").await.unwrap();
    assert_eq!(guids(&one, 10).await, known(&["b", "a", "c"]));
    assert_eq!(guids(&two, 10).await, known(&["a", "c", "b"]));
}

#[tokio::test]
async fn whoever_is_refused_again_and_again_is_noted_once() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path(), LIMITS, Real);
    for _ in 0..100 {
        journal.refused("10.0.0.9".to_owned(), "token_revoked");
    }
    let page = journal.read(None, Timestamp(0), 1000).await.unwrap();
    assert_eq!(page.records.len(), 1);
    let record = &page.records[0];
    assert_eq!((record.kind.as_str(), record.from.as_str()), ("enter", "10.0.0.9"));
    assert_eq!(record.count, Some(1));
    assert_eq!(record.outcome.as_ref().unwrap().code.as_deref(), Some("token_revoked"));
    // Who ends says how many more there were.
    journal.end().await;
    let rest = journal.read(Some(&page.next), Timestamp(0), 1000).await.unwrap().records;
    assert_eq!(rest.iter().map(|it| it.count).collect::<Vec<_>>(), [Some(99)]);
}

#[tokio::test]
async fn a_full_disk_is_told_until_it_takes_what_is_owed() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Small::new(0);
    let journal = open(dir.path(), LIMITS, disk.clone());
    assert_eq!(journal.trouble(), None);
    let wished = wish(&journal, "a");
    assert!(journal.keep(&wished).await.is_err());
    let trouble = journal.trouble().expect("it is told");
    assert!(!trouble.why.is_empty());
    // What came of it is owed: nobody waits for it.
    journal.note(&done(wished));
    disk.room.store(10_000, Ordering::SeqCst);
    let well = async {
        while journal.trouble().is_some() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), well).await.expect("it goes on by itself");
    assert_eq!(guids(&journal, 10).await, known(&["a"]));
}
