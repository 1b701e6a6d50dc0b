use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use kapell_core::seams::{Clock, Moment};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::elections::Killer;
use crate::system::SystemClock;

const NEVER: u64 = u64::MAX;
const QUIT: u64 = u64::MAX - 1;

/// Ends the process. Gets the reason; must not return to anything that matters.
type End = dyn Fn(&str) + Send + Sync;

/// A dead man's switch on a thread of its own: it works while the runtime is blocked and a
/// call to the store hangs, and a machine that slept wakes to find its time over.
pub struct DeadMan {
    switch: Arc<Switch>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Switch {
    timer: TimerFd,
    /// Nanoseconds of [`SystemClock`], or one of the two words above.
    at: AtomicU64,
    end: Box<End>,
}

impl DeadMan {
    /// A switch that is not armed. Its thread begins when it is.
    pub fn new(end: impl Fn(&str) + Send + Sync + 'static) -> Result<Self, nix::Error> {
        let timer = TimerFd::new(ClockId::CLOCK_BOOTTIME, TimerFlags::TFD_CLOEXEC)?;
        let switch = Switch { timer, at: AtomicU64::new(NEVER), end: Box::new(end) };
        Ok(Self { switch: Arc::new(switch), thread: Mutex::default() })
    }

    fn begin(&self) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let switch = Arc::clone(&self.switch);
            let started =
                std::thread::Builder::new().name("killer".to_owned()).spawn(move || switch.watch());
            match started {
                Ok(started) => *thread = Some(started),
                Err(error) => (self.switch.end)(&format!("the killer could not be armed: {error}")),
            }
        }
    }
}

impl Switch {
    fn arm(&self, nanos: u64) {
        self.at.store(nanos, Ordering::SeqCst);
        // A time in the past fires at once; zero would mean never.
        let at = if nanos == QUIT { 1 } else { nanos.max(1) };
        let armed = if nanos == NEVER {
            self.timer.unset()
        } else {
            let at = TimeSpec::from_duration(Duration::from_nanos(at));
            self.timer.set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
        };
        if let Err(error) = armed {
            (self.end)(&format!("the killer could not be armed: {error}"));
        }
    }

    fn watch(&self) {
        loop {
            let waited = self.timer.wait();
            let at = self.at.load(Ordering::SeqCst);
            let now = u64::try_from(SystemClock.now().since_origin().as_nanos()).unwrap_or(NEVER);
            match (at, waited) {
                (QUIT, _) => return,
                (NEVER, _) => {}
                (_, Err(error)) if error != nix::Error::EINTR => {
                    (self.end)(&format!("the killer's timer failed: {error}"));
                    return;
                }
                (at, _) if now >= at => {
                    (self.end)("the seat was not renewed in time");
                    return;
                }
                (_, _) => {}
            }
        }
    }
}

impl Killer for DeadMan {
    fn set(&self, at: Option<Moment>) {
        let nanos = at.map_or(NEVER, |at| {
            u64::try_from(at.since_origin().as_nanos()).unwrap_or(QUIT).min(QUIT - 1)
        });
        if nanos != self.switch.at.load(Ordering::SeqCst) {
            if nanos != NEVER {
                self.begin();
            }
            self.switch.arm(nanos);
        }
    }

    fn fire(&self, why: &str) {
        (self.switch.end)(why);
    }
}

impl Drop for DeadMan {
    fn drop(&mut self) {
        // Armed, it outlives us on purpose: the process has to end.
        if self.switch.at.load(Ordering::SeqCst) != NEVER {
            return;
        }
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            self.switch.arm(QUIT);
            let _ended = thread.join();
        }
    }
}

impl fmt::Debug for DeadMan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadMan").field("at", &self.switch.at).finish_non_exhaustive()
    }
}

/// Where nothing expires, nobody need be killed; what does not stop is left to the operator.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoKiller;

impl Killer for NoKiller {
    fn set(&self, _at: Option<Moment>) {}

    fn fire(&self, why: &str) {
        tracing::error!("{why}");
    }
}
