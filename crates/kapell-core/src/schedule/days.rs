//! The days of a line of cron.

use super::civil::{CYCLE_YEARS, DAY_S, Date, days_in_month, weekday};

const ALL_WEEKDAYS: u8 = 0x7f;
const ALL_MONTHS: u16 = 0x1ffe;
/// Bit 0 of each week from the first day of a month on, for the weekday of that day.
const WEEKLY: u64 = 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28 | 1 << 35;
/// Nobody schedules beyond what four digits can say.
const LAST_DAY: i64 = 253_402_300_799 / DAY_S;

/// On which days something is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Days {
    Every,
    /// Bit 0 is Sunday.
    Weekly(u8),
    Monthly(Monthly),
}

/// Days that depend on the month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Monthly {
    /// Bits 1 to 12.
    pub(super) months: u16,
    pub(super) dates: Dates,
    pub(super) weekdays: Weekdays,
    pub(super) both: Both,
}

/// Of days by date and days by weekday, which count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Both {
    /// The weekday is `*`.
    #[default]
    Dates,
    /// The date is `*`.
    Weekdays,
    Either,
    Together,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Dates {
    /// Bits 1 to 31.
    pub(super) plain: u32,
    /// The working day nearest to each, in the same month.
    pub(super) nearest: u32,
    pub(super) last: bool,
    pub(super) last_working_day: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Weekdays {
    /// Bit 0 is Sunday.
    pub(super) plain: u8,
    /// Those that are the first to fifth of their month.
    pub(super) nth: [u8; 5],
    pub(super) last: u8,
}

impl Days {
    pub(super) fn new(monthly: Monthly) -> Self {
        let weekdays = match monthly.both {
            Both::Dates if monthly.dates.plain == !1 => ALL_WEEKDAYS,
            Both::Weekdays if monthly.weekdays.last == 0 && monthly.weekdays.nth == [0; 5] => {
                monthly.weekdays.plain
            }
            Both::Dates | Both::Weekdays | Both::Either | Both::Together => 0,
        };
        match (monthly.months, weekdays) {
            (_, 0) => Self::Monthly(monthly),
            (ALL_MONTHS, ALL_WEEKDAYS) => Self::Every,
            (ALL_MONTHS, some) => Self::Weekly(some),
            (_, _) => Self::Monthly(monthly),
        }
    }

    /// The first such day that is this one or a later one.
    pub(super) fn from(&self, day: i64) -> Option<i64> {
        let found = match self {
            Self::Every => Some(day),
            Self::Weekly(weekdays) => {
                let twice = u32::from(*weekdays) | u32::from(*weekdays) << 7;
                Some(day + i64::from((twice >> weekday(day)).trailing_zeros()))
            }
            Self::Monthly(monthly) if day <= LAST_DAY => monthly.from(day),
            Self::Monthly(_) => None,
        };
        found.filter(|day| *day <= LAST_DAY)
    }

    /// Whether there is any.
    pub(super) fn ever(&self) -> bool {
        self.from(0).is_some()
    }
}

impl Monthly {
    fn from(&self, day: i64) -> Option<i64> {
        let date = Date::of(day);
        let (mut year, mut month) = (date.year, date.month);
        let mut first = day - i64::from(date.day) + 1;
        let mut left = u32::MAX << date.day;
        while year <= date.year + CYCLE_YEARS {
            let length = days_in_month(year, month);
            if self.months >> month & 1 == 1 {
                let found = self.of_month(length, weekday(first)) & left;
                if found != 0 {
                    return Some(first - 1 + i64::from(found.trailing_zeros()));
                }
            }
            left = u32::MAX;
            first += i64::from(length);
            (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
        }
        None
    }

    /// The days of a month that is so long and whose first day is such a weekday: bits 1 to 31.
    fn of_month(&self, length: u32, first: u32) -> u32 {
        let days = match self.both {
            Both::Dates => self.dates.of_month(length, first),
            Both::Weekdays => self.weekdays.of_month(length, first),
            Both::Either => {
                self.dates.of_month(length, first) | self.weekdays.of_month(length, first)
            }
            Both::Together => {
                self.dates.of_month(length, first) & self.weekdays.of_month(length, first)
            }
        };
        days & month_mask(length)
    }
}

/// Bits 1 to `length`.
const fn month_mask(length: u32) -> u32 {
    (u32::MAX >> (31 - length)) & !1
}

impl Dates {
    fn of_month(&self, length: u32, first: u32) -> u32 {
        let weekday = |day: u32| (first + day - 1) % 7;
        let mut days = self.plain;
        if self.last {
            days |= 1 << length;
        }
        if self.last_working_day {
            days |= 1 << (length - [2, 0, 0, 0, 0, 0, 1][weekday(length) as usize]);
        }
        let mut nearest = self.nearest & month_mask(length);
        while nearest != 0 {
            let day = nearest.trailing_zeros();
            nearest &= nearest - 1;
            let moved = match weekday(day) {
                6 if day > 1 => day - 1,
                6 => day + 2,
                0 if day < length => day + 1,
                0 => day - 2,
                _ => day,
            };
            days |= 1 << moved;
        }
        days
    }
}

impl Weekdays {
    fn of_month(self, length: u32, first: u32) -> u32 {
        let mut days = each_week(self.plain, first);
        for (week, weekdays) in (0..).zip(self.nth) {
            if weekdays != 0 {
                days |= each_week(weekdays, first) & (0b1111_1110 << (7 * week));
            }
        }
        if self.last != 0 {
            days |= each_week(self.last, first) & !month_mask(length - 7);
        }
        days
    }
}

/// The days of a month with such weekdays: bits 1 to 31 and perhaps some above its end.
fn each_week(weekdays: u8, first: u32) -> u32 {
    let twice = u64::from(weekdays) | u64::from(weekdays) << 7;
    let week = twice >> first & u64::from(ALL_WEEKDAYS);
    #[expect(clippy::cast_possible_truncation, reason = "what is above bit 31 is no day")]
    let days = (week.wrapping_mul(WEEKLY) << 1) as u32;
    days
}
