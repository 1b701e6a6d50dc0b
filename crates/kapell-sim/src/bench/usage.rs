//! What measuring takes.

use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

/// Processor time and time of this process.
#[derive(Debug, Clone, Copy)]
pub struct Used {
    pub cpu: Duration,
    pub wall: Duration,
}

#[derive(Debug, Clone, Copy)]
pub struct Stopwatch {
    cpu: Duration,
    begun: Instant,
}

fn cpu() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return Duration::ZERO };
    let (user, system) = (usage.user_time(), usage.system_time());
    let micros = |seconds: i64, micros: i64| {
        u64::try_from(seconds * 1_000_000 + micros).map_or(Duration::ZERO, Duration::from_micros)
    };
    micros(user.tv_sec(), user.tv_usec()) + micros(system.tv_sec(), system.tv_usec())
}

impl Stopwatch {
    pub fn start() -> Self {
        Self { cpu: cpu(), begun: Instant::now() }
    }

    pub fn used(self) -> Used {
        Used { cpu: cpu().saturating_sub(self.cpu), wall: self.begun.elapsed() }
    }
}

/// How many a second.
pub fn rate(count: u32, time: Duration) -> f64 {
    f64::from(count) / time.as_secs_f64()
}

/// 250000 → `250,000`
pub fn thousands(count: u32) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
