//! Lines of cron that are made up, and what they mean, taken literally.

use std::fmt;

use jiff::civil::Date;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

const MONTHS: [&str; 12] =
    ["jan", "FEB", "Mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "mon", "Tue", "wed", "thu", "fri", "sat"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Any,
    One(i8),
    Range(i8, i8),
    Step(i8),
    RangeStep(i8, i8, i8),
    /// Of the month: its last day, its last working day, the working day nearest to a day.
    Last,
    LastWorking,
    Nearest(i8),
    /// Of the week: the nth of the month, the last of the month.
    Nth(i8, i8),
    LastOf(i8),
}

/// A line of cron.
#[derive(Debug, Clone)]
pub(crate) struct Expression {
    pub(crate) second: Option<Vec<Part>>,
    pub(crate) minute: Vec<Part>,
    pub(crate) hour: Vec<Part>,
    date: Vec<Part>,
    month: Vec<Part>,
    weekday: Vec<Part>,
    together: bool,
    names: bool,
}

impl Part {
    fn fits(&self, value: i8, origin: i8) -> bool {
        match *self {
            Self::Any => true,
            Self::One(one) => value == one,
            Self::Range(first, last) => (first..=last).contains(&value),
            Self::Step(step) => (value - origin) % step == 0,
            Self::RangeStep(first, last, step) => {
                (first..=last).contains(&value) && (value - first) % step == 0
            }
            Self::Last | Self::LastWorking | Self::Nearest(_) => unreachable!("a date"),
            Self::Nth(..) | Self::LastOf(_) => unreachable!("a weekday"),
        }
    }

    fn fits_date(&self, date: Date) -> bool {
        let working = |date: &Date| weekday(*date) % 6 != 0;
        match *self {
            Self::Last => date == date.last_of_month(),
            Self::LastWorking => {
                let mut day = date.last_of_month();
                while !working(&day) {
                    day = day.yesterday().unwrap();
                }
                date == day
            }
            Self::Nearest(day) => {
                if day > date.days_in_month() {
                    return false;
                }
                let wanted = date.with().day(day).build().unwrap();
                // The nearest first; of a weekend none is as near on both sides.
                let days =
                    [0, -1, 1, -2, 2].map(|off| wanted.saturating_add(jiff::Span::new().days(off)));
                let nearest =
                    days.into_iter().find(|day| working(day) && day.month() == date.month());
                nearest == Some(date)
            }
            Self::Any | Self::One(_) | Self::Range(..) | Self::Step(_) | Self::RangeStep(..) => {
                self.fits(date.day(), 1)
            }
            Self::Nth(..) | Self::LastOf(_) => unreachable!("a weekday"),
        }
    }

    fn fits_weekday(&self, date: Date) -> bool {
        let today = weekday(date);
        match *self {
            Self::Nth(day, nth) => today == day % 7 && (date.day() - 1) / 7 + 1 == nth,
            Self::LastOf(day) => today == day % 7 && date.day() + 7 > date.days_in_month(),
            Self::Any | Self::One(_) | Self::Range(..) | Self::Step(_) | Self::RangeStep(..) => {
                // Sunday is 0 and 7.
                self.fits(today, 0) || (today == 0 && *self != Self::Step(7) && self.fits(7, 0))
            }
            Self::Last | Self::LastWorking | Self::Nearest(_) => unreachable!("a date"),
        }
    }

    fn show(&self, name: &dyn Fn(i8) -> String) -> String {
        // The other reader takes `SUN` at the end of a range for 7, also in `SUN-SUN`.
        let end = |last: i8| if last == 0 { "0".to_owned() } else { name(last) };
        match *self {
            Self::Any => "*".to_owned(),
            Self::One(one) => name(one),
            Self::Range(first, last) => format!("{}-{}", name(first), end(last)),
            Self::Step(step) => format!("*/{step}"),
            Self::RangeStep(first, last, step) => format!("{}-{}/{step}", name(first), end(last)),
            Self::Last => "L".to_owned(),
            Self::LastWorking => "LW".to_owned(),
            Self::Nearest(day) => format!("{day}W"),
            Self::Nth(day, nth) => format!("{}#{nth}", name(day)),
            Self::LastOf(day) => format!("{}L", name(day)),
        }
    }
}

/// 0 is Sunday.
fn weekday(date: Date) -> i8 {
    date.weekday().to_sunday_zero_offset()
}

impl Expression {
    pub(crate) fn fits_time(parts: &[Part], value: i8) -> bool {
        parts.iter().any(|part| part.fits(value, 0))
    }

    pub(crate) fn fits_day(&self, date: Date) -> bool {
        let by_date = self.date.iter().any(|part| part.fits_date(date));
        let by_weekday = self.weekday.iter().any(|part| part.fits_weekday(date));
        let day = match (self.date == [Part::Any], self.weekday == [Part::Any]) {
            (true, true) => true,
            (false, true) => by_date,
            (true, false) => by_weekday,
            (false, false) if self.together => by_date && by_weekday,
            (false, false) => by_date || by_weekday,
        };
        day && self.month.iter().any(|part| part.fits(date.month(), 1))
    }

    /// The hour has a wildcard or a step.
    pub(crate) fn by_instant(&self) -> bool {
        self.hour.iter().any(|part| matches!(part, Part::Any | Part::Step(_) | Part::RangeStep(..)))
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |value: i8| value.to_string();
        let named = |names: &'static [&'static str], from: i8| {
            let names = if self.names { names } else { &[] };
            move |value: i8| {
                let at = usize::try_from(value - from).unwrap_or(usize::MAX);
                names.get(at).map_or_else(|| value.to_string(), |name| (*name).to_owned())
            }
        };
        let field = |parts: &[Part], name: &dyn Fn(i8) -> String| {
            parts.iter().map(|part| part.show(name)).collect::<Vec<_>>().join(",")
        };
        if let Some(second) = &self.second {
            write!(f, "{} ", field(second, &number))?;
        }
        let (minute, hour) = (field(&self.minute, &number), field(&self.hour, &number));
        let date = field(&self.date, &number);
        let month = field(&self.month, &named(&MONTHS, 1));
        let weekday = field(&self.weekday, &named(&WEEKDAYS, 0));
        let plus = if self.together { "+" } else { "" };
        write!(f, "{minute} {hour} {date} {month} {plus}{weekday}")
    }
}

fn values(least: i8, most: i8) -> impl Strategy<Value = Part> {
    let range = (least..=most, least..=most).prop_map(|(a, b)| (a.min(b), a.max(b)));
    let stepped = (range.clone(), 1..=most)
        .prop_map(|((first, last), step)| Part::RangeStep(first, last, step.min(last - first + 1)));
    prop_oneof![
        4 => (least..=most).prop_map(Part::One),
        2 => range.prop_map(|(first, last)| Part::Range(first, last)),
        1 => (1..=most).prop_map(Part::Step),
        1 => stepped,
    ]
}

fn field(
    any: u32,
    part: impl Strategy<Value = Part> + 'static,
) -> impl Strategy<Value = Vec<Part>> {
    prop_oneof![any => Just(vec![Part::Any]), 4 => vec(part, 1..=3)]
}

fn dates() -> impl Strategy<Value = Part> {
    prop_oneof![
        6 => values(1, 31),
        1 => Just(Part::Last),
        1 => prop_oneof![Just(1), Just(30), Just(31), 1..=31i8].prop_map(Part::Nearest),
    ]
}

fn weekdays() -> impl Strategy<Value = Part> {
    prop_oneof![
        6 => values(0, 7),
        1 => (0..=7i8, 1..=5i8).prop_map(|(day, nth)| Part::Nth(day, nth)),
        1 => (0..=6i8).prop_map(Part::LastOf),
    ]
}

fn date_field() -> impl Strategy<Value = Vec<Part>> {
    prop_oneof![8 => field(4, dates()), 1 => Just(vec![Part::LastWorking])]
}

/// Hours near those at which clocks are changed come more often than others.
fn hours() -> impl Strategy<Value = Vec<Part>> {
    let near = prop_oneof![(0..=3i8).prop_map(Part::One), Just(Part::Range(0, 3)), values(0, 23)];
    field(2, near)
}

pub(crate) fn expressions() -> impl Strategy<Value = Expression> {
    let second = option::weighted(0.25, field(1, values(0, 59)));
    let time = (second, field(2, values(0, 59)), hours());
    let days = (date_field(), field(6, values(1, 12)), field(6, weekdays()));
    (time, days, any::<bool>(), any::<bool>()).prop_map(|(time, days, together, names)| {
        let ((second, minute, hour), (date, month, weekday)) = (time, days);
        Expression { second, minute, hour, date, month, weekday, together, names }
    })
}
