//! One field of a line of cron.

use std::ops::Range;

use super::days::{Dates, Weekdays};
use super::spread;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Second,
    Minute,
    Hour,
    Date,
    Month,
    Weekday,
}

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

impl Kind {
    /// In the order in which they are written.
    pub(super) const ALL: [Self; 6] =
        [Self::Second, Self::Minute, Self::Hour, Self::Date, Self::Month, Self::Weekday];

    const fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Date => "day of the month",
            Self::Month => "month",
            Self::Weekday => "day of the week",
        }
    }

    const fn help(self) -> &'static str {
        match self {
            Self::Second | Self::Minute => "write 0 to 59",
            Self::Hour => "write 0 to 23",
            Self::Date => "write 1 to 31, L, LW or 15W",
            Self::Month => "write 1 to 12 or JAN to DEC",
            Self::Weekday => "write 0 (Sunday) to 7 (Sunday), SUN to SAT, FRI#2 or FRIL",
        }
    }

    /// The least and the greatest value.
    const fn bounds(self) -> (u32, u32) {
        match self {
            Self::Second | Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::Date => (1, 31),
            Self::Month => (1, 12),
            Self::Weekday => (0, 7),
        }
    }

    /// From where to where `H` goes: to a day that every month has, and not to Sunday twice.
    const fn spread(self) -> (u32, u32) {
        match self {
            Self::Date => (1, 28),
            Self::Weekday => (0, 6),
            Self::Second | Self::Minute | Self::Hour | Self::Month => self.bounds(),
        }
    }

    const fn names(self) -> (&'static [&'static str], u32) {
        match self {
            Self::Month => (&MONTHS, 1),
            Self::Weekday => (&WEEKDAYS, 0),
            Self::Second | Self::Minute | Self::Hour | Self::Date => (&[], 0),
        }
    }
}

/// What a field says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Field {
    /// The values that need no month to be known.
    pub(super) values: u64,
    /// It is `*` and nothing else.
    pub(super) any: bool,
    /// There is a wildcard or a step in it.
    pub(super) stepped: bool,
    /// A day must fit the date and the weekday.
    pub(super) together: bool,
    pub(super) dates: Dates,
    pub(super) weekdays: Weekdays,
}

/// What is wrong with a field: where in it, what, and what would be right.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) span: Range<usize>,
    pub(super) problem: String,
    pub(super) help: String,
}

/// Some values of a field, before the suffixes of weekdays are known.
struct Values {
    first: u32,
    last: u32,
    step: u32,
}

/// Reads one field; `seed` is what `H` goes by.
pub(super) fn read(kind: Kind, text: &str, seed: u64) -> Result<Field, Vec<Wrong>> {
    let mut field = Field::default();
    let mut wrong = Vec::new();
    let mut at = 0;
    let mut rest = text;
    if let (Kind::Weekday, Some(more)) = (kind, text.strip_prefix('+')) {
        field.together = true;
        (at, rest) = (1, more);
    }
    let seed = spread::mixed(seed, kind as u64);
    field.any = matches!(rest, "*") || (rest == "?" && is_day(kind));
    for part in rest.split(',') {
        let read = Part { kind, text: part, seed }.read_into(&mut field);
        if let Err((problem, help)) = read {
            wrong.push(Wrong { span: at..at + part.len(), problem, help });
        }
        at += part.len() + 1;
    }
    // Sunday is 0 and 7.
    if kind == Kind::Weekday {
        let sunday = |days: u8| days & 0x7f | days >> 7;
        field.weekdays.plain = sunday(field.weekdays.plain);
        field.weekdays.nth = field.weekdays.nth.map(sunday);
        field.weekdays.last = sunday(field.weekdays.last);
    }
    if wrong.is_empty() { Ok(field) } else { Err(wrong) }
}

fn is_day(kind: Kind) -> bool {
    matches!(kind, Kind::Date | Kind::Weekday)
}

/// One of the parts of a field that commas are between.
struct Part<'a> {
    kind: Kind,
    text: &'a str,
    seed: u64,
}

/// What is wrong, and what would be right.
type Complaint = (String, String);

impl Part<'_> {
    fn read_into(&self, field: &mut Field) -> Result<(), Complaint> {
        if self.text.is_empty() {
            let help = format!("{} before, after or between commas", self.kind.help());
            return Err((format!("a {} is missing", self.kind.name()), help));
        }
        match self.kind {
            Kind::Date => {
                if self.special_date(&mut field.dates)? {
                    return Ok(());
                }
                field.dates.plain |= low(self.values(self.text, field)?);
            }
            Kind::Weekday => {
                let (text, days) =
                    self.of_month(&mut field.weekdays.nth, &mut field.weekdays.last)?;
                let mut scratch = Field::default();
                let bits = low(self.values(text, &mut scratch)?).to_le_bytes()[0];
                match days {
                    Some(days) => *days |= bits,
                    None => field.weekdays.plain |= bits,
                }
            }
            Kind::Second | Kind::Minute | Kind::Hour | Kind::Month => {
                field.values |= self.values(self.text, field)?;
            }
        }
        Ok(())
    }

    /// `L`, `LW` and `15W`.
    fn special_date(&self, dates: &mut Dates) -> Result<bool, Complaint> {
        let upper = self.text.to_ascii_uppercase();
        match upper.as_str() {
            "L" => dates.last = true,
            "LW" => dates.last_working_day = true,
            _ => match upper.strip_suffix('W') {
                Some(day) => dates.nearest |= 1 << self.value(day)?,
                None => return Ok(false),
            },
        }
        Ok(true)
    }

    /// What is before `#2`, `#L` or `L`, and which days of the month that means.
    fn of_month<'f>(
        &self,
        nth: &'f mut [u8; 5],
        last: &'f mut u8,
    ) -> Result<(&str, Option<&'f mut u8>), Complaint> {
        let Some((text, which)) = self.text.split_once('#') else {
            let shorter = self.text.strip_suffix(['L', 'l']).filter(|text| !text.is_empty());
            return Ok(shorter.map_or((self.text, None), |text| (text, Some(last))));
        };
        if which.eq_ignore_ascii_case("L") {
            return Ok((text, Some(last)));
        }
        let number = which.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let days = number.and_then(|number| nth.get_mut(number)).ok_or_else(|| {
            let problem = format!("`#{which}` is none of the weeks of a month");
            (problem, "write #1 to #5, or #L for the last".to_owned())
        })?;
        Ok((text, Some(days)))
    }

    /// The bits of a value, a range, `*` or `H`, each perhaps with a step.
    fn values(&self, text: &str, field: &mut Field) -> Result<u64, Complaint> {
        let (range, step) = match text.split_once('/') {
            Some((range, step)) => (range, Some(self.step(step)?)),
            None => (text, None),
        };
        let values = self.range(range, step)?;
        field.stepped |= step.is_some() || matches!(range, "*" | "?");
        let wide = values.last - values.first + 1;
        if values.step > wide {
            let problem = format!("`/{}` is wider than its {wide} values", values.step);
            let help = "write a smaller step, or `@every` with a length of time".to_owned();
            return Err((problem, help));
        }
        let steps = (values.first..=values.last).step_by(values.step as usize);
        Ok(steps.fold(0, |bits, value| bits | 1 << value))
    }

    fn range(&self, text: &str, step: Option<u32>) -> Result<Values, Complaint> {
        let (min, max) = self.kind.bounds();
        let every = step.unwrap_or(1);
        if text == "*" || (text == "?" && is_day(self.kind)) {
            // A step over all weekdays ends on Saturday: the other Sunday is of the next week.
            let last = if self.kind == Kind::Weekday { 6 } else { max };
            return Ok(Values { first: min, last, step: every });
        }
        if let Some(rest) = text.strip_prefix(['H', 'h']) {
            return self.hashed(rest, step);
        }
        if let Some((first, last)) = text.split_once('-') {
            let (first, mut last) = (self.value(first)?, self.value(last)?);
            if self.kind == Kind::Weekday && last == 0 && first > 0 {
                last = 7;
            }
            if first > last {
                let problem = format!("`{text}` ends before it begins");
                return Err((problem, self.around(first, last)));
            }
            return Ok(Values { first, last, step: every });
        }
        let value = self.value(text)?;
        if let Some(step) = step {
            let problem = format!("`{text}/{step}` is a step from a single value");
            return Err((problem, format!("write `{value}-{max}/{step}`")));
        }
        Ok(Values { first: value, last: value, step: 1 })
    }

    /// How to write a range that goes on after the greatest value.
    fn around(&self, first: u32, last: u32) -> String {
        let (min, mut max) = self.kind.bounds();
        if self.kind == Kind::Weekday {
            max = 6;
        }
        format!("write `{first}-{max},{min}-{last}`")
    }

    /// What follows an `H`: nothing, or `(0-29)`. A value of the job's own, or its first step.
    fn hashed(&self, rest: &str, step: Option<u32>) -> Result<Values, Complaint> {
        let (first, last) = if rest.is_empty() {
            self.kind.spread()
        } else {
            let inner = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
            let Some((first, last)) = inner.and_then(|inner| inner.split_once('-')) else {
                let problem = format!("`{}` is no form of `H`", self.text);
                return Err((problem, "write H, H/15, H(0-29) or H(0-29)/10".to_owned()));
            };
            (self.value(first)?, self.value(last)?)
        };
        if first > last {
            let problem = format!("`{rest}` ends before it begins");
            return Err((problem, format!("write `H({last}-{first})`")));
        }
        let choices = step.map_or(last - first + 1, |step| step.min(last - first + 1));
        let drawn = u32::try_from(self.seed % u64::from(choices)).unwrap_or(0);
        match step {
            None => Ok(Values { first: first + drawn, last: first + drawn, step: 1 }),
            // The step may be wider than what is left after the first value.
            Some(step) if step <= last - first + 1 => {
                let (first, step) = (first + drawn, step.min(last - first - drawn + 1));
                Ok(Values { first, last, step })
            }
            Some(step) => Ok(Values { first, last, step }),
        }
    }

    fn step(&self, text: &str) -> Result<u32, Complaint> {
        let step = number(text).filter(|step| *step > 0);
        step.ok_or_else(|| {
            let problem = format!("`/{text}` is no step");
            (problem, format!("write how many {}s apart, as in `*/5`", self.kind.name()))
        })
    }

    fn value(&self, text: &str) -> Result<u32, Complaint> {
        let (min, max) = self.kind.bounds();
        let (names, from) = self.kind.names();
        let by_name = || names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let value = number(text).or_else(|| Some(from + u32::try_from(by_name()?).ok()?));
        value.filter(|value| (min..=max).contains(value)).ok_or_else(|| {
            let problem = format!("`{text}` is no {}", self.kind.name());
            (problem, self.kind.help().to_owned())
        })
    }
}

fn number(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

/// The bits of values below 32.
fn low(bits: u64) -> u32 {
    u32::try_from(bits).unwrap_or(u32::MAX)
}
