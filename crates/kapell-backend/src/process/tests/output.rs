//! What programs write.

use std::fs;
use std::time::Instant;

use kapell_core::log::{HEAD, Stream};

use super::lab::{Job, Lab, until};

#[tokio::test]
async fn frames_have_the_time_when_they_were_read() {
    let lab = Lab::new();
    lab.run_to_end("times", "echo out; echo err >&2").await;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    for frame in lab.frames("times") {
        let age = i64::try_from(now.as_millis()).unwrap() - frame.at.0;
        assert!((0..20_000).contains(&age), "{age}");
    }
    lab.clean_up().await;
}

#[tokio::test]
async fn last_words_are_the_last_line_that_says_something() {
    let lab = Lab::new();
    let cases = [
        ("words1", "echo one; echo two; echo; echo '  '", "two"),
        ("words2", "echo out; printf 'bad\\n\\n' >&2; echo later", "bad"),
        ("words3", "printf 'in two '; sleep 0.02; printf 'parts'", "in two parts"),
        ("words4", "head -c 100000 /dev/zero | tr '\\0' 'x'; echo end", ""),
        ("words5", "echo word; head -c 100000 /dev/zero | tr '\\0' '\\n'", "word"),
    ];
    for (name, script, want) in cases {
        let words = lab.run_to_end(name, script).await.last_words;
        if name == "words4" {
            assert!(words.len() == 200 && words.ends_with("xend"), "{words}");
        } else {
            assert_eq!(words, want);
        }
    }
    lab.clean_up().await;
}

#[tokio::test]
async fn two_hundred_megabytes_pass_whole_and_quickly() {
    let lab = Lab::new();
    let start = Instant::now();
    let script = "head -c 200000000 /dev/zero; echo last >&2";
    assert_eq!(lab.run_to_end("big", script).await.code, Some(0));
    let took = start.elapsed();
    // Whoever sorts or scans byte by byte takes far longer; a busy machine does not.
    assert!(took.as_secs() < 15, "{took:?}");
    let frames = lab.frames("big");
    let length = |stream| {
        let of = frames.iter().filter(|frame| frame.stream == stream);
        of.map(|frame| frame.bytes.len()).sum::<usize>()
    };
    assert_eq!(
        (length(Stream::Out), length(Stream::Err), length(Stream::Note)),
        (200_000_000, 5, 0)
    );
    lab.clean_up().await;
}

#[tokio::test]
async fn of_too_much_output_the_last_is_kept() {
    let lab = Lab::new();
    for (name, log_bytes) in [("small", 1_u64), ("large", 4 << 20)] {
        let spec = Job { log_bytes, ..lab.job(name, "seq -f %09.0f 1000000; echo the end >&2") };
        lab.start(spec).await;
        assert_eq!(lab.ended(name).await.last_words, "the end");
        let limit = log_bytes.max(128 << 10);
        let files: Vec<_> = fs::read_dir(lab.logs(name)).unwrap().map(Result::unwrap).collect();
        let sizes: Vec<u64> = files.iter().map(|file| file.metadata().unwrap().len()).collect();
        assert!(sizes.iter().sum::<u64>() <= limit, "{sizes:?}");
        assert!(sizes.iter().sum::<u64>() > limit / 3, "{sizes:?}");
        assert!(sizes.iter().all(|size| *size <= (log_bytes / 8).max(64 << 10)), "{sizes:?}");
        assert!(files.iter().all(|file| file.file_name().len() == "00000001.log".len()));
        let out = lab.output(name, Stream::Out);
        assert!(out.ends_with(b"\n000999999\n001000000\n"));
        // Nothing is missing in between.
        let text = String::from_utf8(out).unwrap();
        let numbers: Vec<u64> = text.lines().skip(1).map(|line| line.parse().unwrap()).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]));
        assert_eq!(lab.output(name, Stream::Err), b"the end\n");
    }
    lab.clean_up().await;
}

#[tokio::test]
async fn the_first_removal_is_told() {
    let lab = Lab::new();
    // Three files: the first is removed when the third begins.
    let spec = Job { log_bytes: 1, ..lab.job("told", "head -c 140000 /dev/zero") };
    lab.start(spec).await;
    lab.ended("told").await;
    let notes = String::from_utf8(lab.output("told", Stream::Note)).unwrap();
    let want = "older output was removed: of all output, the last 131072 bytes are kept\n";
    assert_eq!(notes, want);
    let last = fs::read(lab.logs("told").join("00000003.log")).unwrap();
    assert_eq!(last[0], Stream::Note.to_byte());
    assert!(last[HEAD..].starts_with(b"older output"));
    lab.clean_up().await;
}

#[tokio::test]
async fn logs_of_an_earlier_container_are_continued() {
    let lab = Lab::new();
    for name in ["first", "second"] {
        let spec = Job {
            logs: lab.logs("both").parent().unwrap().to_owned(),
            ..lab.job(name, &format!("echo {name}"))
        };
        lab.start(spec).await;
        lab.ended(name).await;
    }
    assert_eq!(lab.text("both"), "first\nsecond\n");
    assert!(lab.logs("both").join("00000002.log").exists());
    lab.clean_up().await;
}

#[tokio::test]
async fn output_is_there_while_the_program_runs() {
    let lab = Lab::new();
    lab.run("live", "echo now; exec >&- 2>&-; sleep 100").await;
    lab.says("live", "now\n").await;
    // A shim whose pipes have ended does not spin.
    let time = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", lab.pid("live", 0))).unwrap();
        let fields: Vec<u64> =
            stat.split(' ').skip(13).take(2).map(|n| n.parse().unwrap()).collect();
        fields.iter().sum::<u64>()
    };
    let (start, before) = (Instant::now(), time());
    until(|| start.elapsed().as_millis() > 200).await;
    assert!(time() - before < 5, "at most 50 ms of 200");
    lab.clean_up().await;
}

#[test]
fn a_directory_for_logs_is_made_though_another_removes_what_is_empty() {
    // Who makes a directory tries more often than that, so it wins whatever their order is.
    const REMOVALS: usize = 20;
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("lrp/web");
    std::thread::scope(|scope| {
        let (allow, allowed) = std::sync::mpsc::sync_channel(1);
        let key = &key;
        // Ends when nobody is left to allow it anything, also because the test failed.
        scope.spawn(move || {
            while let Ok(()) = allowed.recv() {
                let mut removals = (0..100_000).filter(|_| fs::remove_dir(key).is_ok());
                let _last = removals.nth(REMOVALS - 1);
            }
        });
        for number in 0..500 {
            let logs = key.join(number.to_string()).join("0");
            let mut new = Vec::new();
            let _busy = allow.try_send(());
            crate::process::place::make_logs(Some(&logs), &mut new).unwrap();
            assert!(logs.is_dir());
            fs::remove_dir_all(key.join(number.to_string())).unwrap();
        }
    });
}
