//! The log of a task is kept before its task is let go.

use std::fs;

use kapell_core::log::{Decoder, Frame, Stream};
use kapell_core::seams::Timestamp;

use super::rig::Stage;
use crate::scheduler::backend::{Attempt, Backend as _};
use crate::scheduler::conformance::{Rig as _, attempt};
use crate::scheduler::logs::MOST_FETCHED;

fn out(bytes: &[u8]) -> Frame {
    Frame { stream: Stream::Out, at: Timestamp(7), bytes: bytes.to_vec() }
}

async fn to_its_end(stage: &Stage, attempt: &Attempt) {
    stage.backend.launch(&stage.work(attempt)).await.unwrap();
    stage.start(attempt).await;
    stage.end(attempt, 0).await;
    stage.backend.release(attempt).await;
    assert_eq!(stage.task(attempt), None);
}

fn kept(stage: &Stage, attempt: &Attempt) -> Vec<Frame> {
    let parts = stage.logs().read(attempt).unwrap().parts;
    let [part] = &parts[..] else { panic!("{parts:?}") };
    let mut decoder = Decoder::default();
    decoder.push(&fs::read(part.join("00000001.log")).unwrap());
    std::iter::from_fn(|| decoder.next_frame().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn what_a_task_wrote_is_kept_when_it_is_released() {
    let stage = Stage::new().await;
    let one = attempt("logged", 0);
    *stage.cell.frames.lock().unwrap() = vec![out(b"one\n"), out(b"two\n")];
    to_its_end(&stage, &one).await;
    assert_eq!(kept(&stage, &one), [out(b"one\n"), out(b"two\n")]);
    stage.logs().forget(&one.run_id).unwrap();
    assert_eq!(stage.logs().read(&one), None);
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_log_that_is_too_long_or_breaks_off_says_so() {
    let stage = Stage::new().await;
    let [long, broken] = ["long", "broken"].map(|job| attempt(job, 0));
    *stage.cell.frames.lock().unwrap() = vec![out("x".repeat(1 << 20).as_bytes()); 20];
    to_its_end(&stage, &long).await;
    let frames = kept(&stage, &long);
    let last = frames.last().unwrap();
    assert_eq!((frames.len(), last.stream), (16, Stream::Note));
    assert_eq!(last.bytes, b"the rest was cut: a log of a run keeps 16 MiB\n");
    let bytes: usize = frames.iter().map(|frame| frame.bytes.len()).sum();
    assert!(u64::try_from(bytes).unwrap() < MOST_FETCHED);
    *stage.cell.frames.lock().unwrap() = vec![out(b"half")];
    *stage.cell.breaks.lock().unwrap() = true;
    to_its_end(&stage, &broken).await;
    let frames = kept(&stage, &broken);
    assert_eq!(frames[0], out(b"half"));
    assert_eq!(frames[1].bytes, b"the log is not whole: the cell broke off\n");
    stage.close().await;
}
