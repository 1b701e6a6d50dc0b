//! What becomes of what programs write.

use std::time::Instant;

use kapell_core::log::Stream;

use super::rig::{MAIN, Rig};
use crate::containers::{Output, Process, Spec};

pub(crate) async fn streams_are_kept_apart_and_byte_for_byte(rig: Rig) {
    let script = r"printf '\377\376\000 raw\n'; printf 'err\303\n' >&2";
    let exit = rig.run_to_end("raw", script).await;
    assert_eq!(rig.output("raw", MAIN, Stream::Out), b"\xff\xfe\0 raw\n");
    assert_eq!(rig.output("raw", MAIN, Stream::Err), b"err\xc3\n");
    assert_eq!(exit.last_words, "err\u{fffd}");
    rig.clean_up(&["raw"]).await;
}

pub(crate) async fn dropped_output_leaves_only_last_words(rig: Rig) {
    rig.create(Spec { sole: false, ..rig.spec("quiet") }).await;
    let quiet =
        Rig::process("quiet", "echo one; echo two; head -c 300000 /dev/zero >&2; echo bad >&2");
    rig.run("quiet", Process { output: Output::Dropped, ..quiet }).await;
    let exit = rig.ended("quiet", "quiet").await;
    assert_eq!(exit.code, Some(0));
    assert!(exit.last_words.ends_with("bad"), "{exit:?}");
    assert!(!rig.logs("quiet", "quiet").exists());
    rig.clean_up(&["quiet"]).await;
}

pub(crate) async fn output_above_its_rate_is_dropped_and_told(rig: Rig) {
    const RATE: usize = 20_000;
    let spec = Spec { log_rate: Some(RATE as u64), ..rig.spec("loud") };
    rig.create(spec).await;
    // A flood, and what is within the rate again later.
    let script = "i=0; while [ $i -lt 20000 ]; do echo \"line $i of many\"; i=$((i + 1)); done; echo flood >&2; \
                  while [ ! -e go ]; do sleep 0.01; done; echo later; exit 3";
    let start = Instant::now();
    rig.run("loud", Rig::process(MAIN, script)).await;
    let words = || String::from_utf8(rig.output("loud", MAIN, Stream::Out)).unwrap();
    super::until(|| words().contains("line 0 of many")).await;
    let quiet = std::time::Duration::from_millis(1500);
    super::until(|| start.elapsed() > quiet).await;
    rig.touch("loud", "go").await;
    let exit = rig.ended("loud", MAIN).await;
    assert_eq!((exit.code, exit.last_words.as_str()), (Some(3), "flood"));
    let took = usize::try_from(start.elapsed().as_millis()).unwrap();
    let (out, notes) = (words(), rig.output("loud", MAIN, Stream::Note));
    let kept = out.len() + rig.output("loud", MAIN, Stream::Err).len();
    assert!(kept <= RATE + RATE * took / 1000, "{kept} in {took} ms");
    assert!(kept >= RATE / 2, "{kept}");
    assert!(out.ends_with("later\n"), "what is within the rate is kept");
    assert!(out.starts_with("line 0 of many\nline 1 of many\n"));
    let notes = String::from_utf8(notes).unwrap();
    let dropped = notes.lines().map(|note| {
        let (count, why) = note.split_once(' ').unwrap();
        assert_eq!(why, "bytes of output were dropped: they came faster than its log may grow");
        count.parse::<usize>().unwrap()
    });
    let all: usize = (0..20_000).map(|line| format!("line {line} of many\n").len()).sum();
    assert_eq!(dropped.sum::<usize>() + kept, all + "flood\nlater\n".len());
    assert!(notes.lines().count() <= 2 + took / 250, "{notes}");
    rig.clean_up(&["loud"]).await;
}
