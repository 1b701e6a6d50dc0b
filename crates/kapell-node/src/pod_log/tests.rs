use std::collections::VecDeque;
use std::io;
use std::sync::Mutex;

use futures_util::stream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use kapell_core::kubernetes::{ContainerSight, PodEnd, life};

use super::*;

/// A pod whose cluster answers as it was told to, one answer a call.
struct Scripted {
    answers: Mutex<VecDeque<Answer>>,
    /// Whether each call was to follow.
    calls: Mutex<Vec<bool>>,
    sight: Mutex<Presence<PodSight>>,
    seen: watch::Sender<u64>,
}

struct Answer {
    text: &'static str,
    then: Then,
    /// The pod is over by then.
    ends: bool,
}

/// What comes behind an answer.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    End,
    Break,
    /// Nobody is there any more, and nobody says so.
    Nothing,
}

/// Longer than anybody waits for a log that is over.
const LONG: Duration = Duration::from_secs(600);

impl Scripted {
    /// Of which `main` runs, after `first`.
    fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let of = |name: &str, life| ContainerSight { name: name.into(), life };
        let containers = vec![of("first", Life::Over), of("main", Life::Writes)];
        let runs = PodSight { name: "p".to_owned(), containers, ..PodSight::default() };
        Self {
            answers: Mutex::new(answers.into_iter().collect()),
            calls: Mutex::default(),
            sight: Mutex::new(Presence::There(runs)),
            seen: watch::Sender::new(0),
        }
    }

    fn see(&self, change: impl FnOnce(&mut PodSight)) {
        if let Presence::There(pod) = &mut *self.sight.lock().unwrap() {
            change(pod);
        }
        self.seen.send_modify(|count| *count += 1);
    }

    fn end(&self) {
        let end = PodEnd { at: None, exit_code: Some(0), failure: None, ran: true };
        self.see(|pod| pod.end = Some(end));
    }

    fn calls(&self) -> Vec<bool> {
        self.calls.lock().unwrap().clone()
    }

    async fn all(&self) -> String {
        self.all_of("main").await
    }

    async fn all_of(&self, container: &str) -> String {
        let mut log = PodLog::of(container.to_owned());
        let mut all = Vec::new();
        while let Some(frame) = timeout(LONG, log.next(self)).await.expect("an end").unwrap() {
            all.extend(frame.bytes);
        }
        assert!(self.answers.lock().unwrap().is_empty(), "not all was asked for");
        String::from_utf8(all).unwrap()
    }
}

impl Pod for Scripted {
    fn sight(&self) -> Presence<PodSight> {
        self.sight.lock().unwrap().clone()
    }

    fn life(&self, container: &str) -> Life {
        life(&Presence::Unseen, &self.sight(), container)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.seen.subscribe()
    }

    async fn open(&self, _pod: &str, _container: &str, follow: bool) -> Result<Lines, Error> {
        self.calls.lock().unwrap().push(follow);
        let answer = self.answers.lock().unwrap().pop_front().expect("another answer");
        if answer.ends {
            self.end();
        }
        let text = Ok(answer.text.as_bytes());
        let broken = (answer.then == Then::Break).then(|| Err(io::Error::other("cut")));
        let said = stream::iter([text].into_iter().chain(broken));
        Ok(match answer.then {
            Then::End | Then::Break => Lines::new("read", said.into_async_read()),
            Then::Nothing => Lines::new("read", said.chain(stream::pending()).into_async_read()),
        })
    }
}

const fn whole(text: &'static str, ends: bool) -> Answer {
    Answer { text, then: Then::End, ends }
}

const fn dead(text: &'static str, ends: bool) -> Answer {
    Answer { text, then: Then::Nothing, ends }
}

const ONE: &str = "2026-01-01T00:00:00.001Z one\n";
const TWO: &str = "2026-01-01T00:00:00.001Z one\n2026-01-01T00:00:00.002Z two\n";

#[tokio::test(start_paused = true)]
async fn a_log_that_was_followed_too_early_is_read_once_more_when_its_container_is_over() {
    let pod = Scripted::new([whole("", true), whole(TWO, false)]);
    assert_eq!(pod.all().await, "one\ntwo\n");
    assert_eq!(pod.calls(), [true, false]);
}

#[tokio::test(start_paused = true)]
async fn a_log_that_is_cut_is_followed_on_and_each_line_comes_once() {
    let cut = Answer { text: ONE, then: Then::Break, ends: false };
    let pod = Scripted::new([cut, whole(TWO, true), whole(TWO, false)]);
    assert_eq!(pod.all().await, "one\ntwo\n");
    assert_eq!(pod.calls(), [true, true, false]);
}

#[tokio::test(start_paused = true)]
async fn a_line_without_an_end_waits_until_nothing_more_can_come() {
    let begun = "2026-01-01T00:00:00.001Z one\n2026-01-01T00:00:00.002Z tw";
    let pod = Scripted::new([
        Answer { text: begun, then: Then::Break, ends: false },
        whole(begun, true),
        whole(begun, false),
    ]);
    assert_eq!(pod.all().await, "one\ntw");
    let pod = Scripted::new([whole(begun, true), whole(TWO, false)]);
    assert_eq!(pod.all().await, "one\ntwo\n");
}

#[tokio::test(start_paused = true)]
async fn what_has_ended_is_read_once() {
    let pod = Scripted::new([whole(TWO, false)]);
    pod.end();
    assert_eq!(pod.all().await, "one\ntwo\n");
    assert_eq!(pod.calls(), [false]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_gone_says_nothing() {
    let pod = Scripted::new([]);
    *pod.sight.lock().unwrap() = Presence::Gone(PodSight::default());
    assert_eq!(pod.all().await, "");
}

#[tokio::test(start_paused = true)]
async fn a_log_on_a_dead_connection_is_read_anew_once_its_container_is_over() {
    let pod = Scripted::new([dead(ONE, true), whole(TWO, false)]);
    assert_eq!(pod.all().await, "one\ntwo\n");
    assert_eq!(pod.calls(), [true, false]);
    let pod = Scripted::new([dead(ONE, false), whole(TWO, false)]);
    let (all, ()) = tokio::join!(pod.all(), async {
        // However long it says nothing while it runs, it is not asked again.
        sleep(LONG / 2).await;
        assert_eq!(pod.calls(), [true]);
        pod.end();
    });
    assert_eq!(all, "one\ntwo\n");
}

#[tokio::test(start_paused = true)]
async fn what_is_read_last_on_a_dead_connection_is_read_once_more() {
    let pod = Scripted::new([dead(ONE, false), whole(TWO, false)]);
    pod.end();
    assert_eq!(pod.all().await, "one\ntwo\n");
    assert_eq!(pod.calls(), [false, false]);
}

#[tokio::test(start_paused = true)]
async fn a_log_that_is_given_up_while_it_is_read_goes_on_where_it_was() {
    let pod = Scripted::new([dead(ONE, false), whole(TWO, false)]);
    let mut log = PodLog::of("main".to_owned());
    let first = log.next(&pod).await.unwrap().unwrap();
    for _ in 0..3 {
        assert!(timeout(AGAIN, log.next(&pod)).await.is_err());
    }
    pod.end();
    let second = timeout(LONG, log.next(&pod)).await.unwrap().unwrap().unwrap();
    assert_eq!((first.bytes, second.bytes), (b"one\n".to_vec(), b"two\n".to_vec()));
    assert_eq!(log.next(&pod).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_container_that_is_over_is_asked_once_though_its_pod_runs_on() {
    for (said, want) in [(TWO, "one\ntwo\n"), ("", "")] {
        let pod = Scripted::new([whole(said, false)]);
        assert_eq!(pod.all_of("first").await, want);
        assert_eq!(pod.calls(), [false]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_container_that_waits_for_others_is_not_asked_before_it_is_started() {
    let pod = Scripted::new([whole(ONE, true), whole(TWO, false)]);
    pod.see(|pod| pod.containers[1].life = Life::Waits);
    let (all, ()) = tokio::join!(pod.all(), async {
        sleep(LONG / 2).await;
        assert_eq!(pod.calls(), [false; 0]);
        pod.see(|pod| pod.containers[1].life = Life::Writes);
    });
    assert_eq!(all, "one\ntwo\n");
    assert_eq!(pod.calls(), [true, false]);
}
