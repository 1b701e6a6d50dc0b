use std::time::Duration;

use super::plan::Plan;
use crate::parts::chance::Chance;

/// How a world treats processes and their messages.
#[derive(Debug, Clone)]
pub(super) struct Weather {
    /// Of a message, one way.
    pub(super) delay: (Duration, Duration),
    /// In thousandths of all messages.
    pub(super) lost: u64,
    pub(super) duplicated: u64,
    pub(super) late: u64,
    /// Between two moments at which a process gets the processor.
    pub(super) turn: (Duration, Duration),
    /// Between two faults.
    pub(super) gap: (Duration, Duration),
}

impl Weather {
    pub(super) fn draw(chance: &mut Chance, plan: &Plan) -> Self {
        let ms = Duration::from_millis;
        Self {
            delay: (Duration::from_micros(100), ms(chance.pick(&[2, 2, 10, 50, 200]))),
            lost: plan.lost,
            duplicated: plan.duplicated,
            late: plan.late,
            turn: (ms(10), ms(150)),
            gap: (ms(500), ms(chance.pick(&[4000, 8000, 15_000]))),
        }
    }

    pub(super) const fn calm() -> Self {
        let ms = Duration::from_millis;
        Self {
            delay: (Duration::from_micros(100), ms(5)),
            lost: 0,
            duplicated: 0,
            late: 0,
            turn: (ms(20), ms(250)),
            gap: (Duration::ZERO, Duration::ZERO),
        }
    }
}
