//! One line of a schedule.

use std::ops::Range;

use super::cron::{Cron, Due};
use super::days::{Both, Days, Monthly};
use super::fault::{Fault, Place};
use super::field::{self, Field, Kind};
use super::zone::Zone;
use crate::source::closest;
use crate::workflow::parse_duration;

const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// When something is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    Cron(Cron),
    /// Every so many seconds since 1970.
    Every(i64),
}

impl Line {
    /// The first instant that is this second or a later one; 1970 or later.
    pub(super) fn from(&self, second: i64, zone: &Zone) -> Option<Due> {
        match self {
            Self::Cron(cron) => cron.from(second, zone),
            Self::Every(length) => {
                let rest = second % length;
                let wait = if rest == 0 { 0 } else { length - rest };
                Some((second.checked_add(wait)?, None))
            }
        }
    }

    /// Reads a line; `seed` is what `H` goes by.
    pub(super) fn read(text: &str, place: Place, seed: u64) -> Result<Self, Vec<Fault>> {
        let reader = Reader { text, place };
        let words = words(text);
        let Some(first) = words.first().map(|span| &text[span.clone()]) else {
            let help = "write five fields as in `0 4 * * *`, or leave it out";
            return Err(reader.all("the line is empty".to_owned(), help));
        };
        if let Some((name, zone)) = first.split_once('=')
            && matches!(name, "TZ" | "CRON_TZ")
        {
            let problem = format!("`{name}=` does not belong into a line");
            let help = format!("write `timezone: {zone}` beside `schedule`");
            return Err(vec![reader.at(words[0].clone(), problem, help)]);
        }
        if first.starts_with('@') {
            return reader.nickname(first, &words, seed);
        }
        reader.cron(&words, seed).map(Self::Cron)
    }
}

/// Where the words of a line are.
fn words(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::with_capacity(6);
    let mut start = None;
    for (at, char) in text.char_indices() {
        if char.is_whitespace() {
            found.extend(start.take().map(|start| start..at));
        } else if start.is_none() {
            start = Some(at);
        }
    }
    found.extend(start.map(|start| start..text.len()));
    found
}

struct Reader<'a> {
    text: &'a str,
    place: Place,
}

impl Reader<'_> {
    fn at(&self, span: Range<usize>, problem: String, help: impl Into<String>) -> Fault {
        Fault { span, ..Fault::whole(self.place, self.text, problem, help) }
    }

    fn all(&self, problem: String, help: impl Into<String>) -> Vec<Fault> {
        let blank = self.text.len() - self.text.trim_start().len();
        let span = blank..self.text.trim_end().len().max(blank);
        vec![self.at(span, problem, help)]
    }

    fn nickname(&self, name: &str, words: &[Range<usize>], seed: u64) -> Result<Line, Vec<Fault>> {
        if name == "@every" {
            return self.every(words).map_err(|fault| vec![fault]);
        }
        let Some((_, cron)) = NICKNAMES.iter().find(|(each, _)| *each == name) else {
            let names = NICKNAMES.iter().map(|(name, _)| *name).chain(["@every"]);
            let help = match closest(name, names) {
                _ if name == "@reboot" => {
                    "a job runs at times; for what runs always, apply an LRP".to_owned()
                }
                Some(near) => format!("write `{near}`"),
                None => "write @hourly, @daily, @weekly, @monthly, @yearly or @every 1h30m".into(),
            };
            return Err(vec![self.at(words[0].clone(), format!("`{name}` is not known"), help)]);
        };
        if let Some(more) = words.get(1) {
            let span = more.start..self.text.trim_end().len();
            let problem = format!("nothing may follow `{name}`");
            return Err(vec![self.at(span, problem, format!("write `{name}` alone"))]);
        }
        let parts: Vec<&str> = cron.split(' ').collect();
        let fields =
            [(Kind::Second, "0")].into_iter().chain(Kind::ALL[1..].iter().copied().zip(parts));
        let mut read = [Field::default(); 6];
        for (slot, (kind, text)) in read.iter_mut().zip(fields) {
            // The table above has no faults.
            *slot = field::read(kind, text, seed).unwrap_or_default();
        }
        Ok(Line::Cron(assemble(&read)))
    }

    fn every(&self, words: &[Range<usize>]) -> Result<Line, Fault> {
        let help = "write whole seconds or more, as in `@every 90s` or `@every 1h30m`";
        let Some(first) = words.get(1) else {
            return Err(self.at(words[0].clone(), "`@every` says no length of time".into(), help));
        };
        let span = first.start..self.text.trim_end().len();
        let text = &self.text[span.clone()];
        let length = parse_duration(text).filter(|length| length.subsec_nanos() == 0);
        let seconds = length.and_then(|length| i64::try_from(length.as_secs()).ok());
        match seconds {
            Some(seconds) if seconds > 0 => Ok(Line::Every(seconds)),
            Some(_) | None => {
                Err(self.at(span, format!("`{text}` is no length of time between runs"), help))
            }
        }
    }

    fn cron(&self, words: &[Range<usize>], seed: u64) -> Result<Cron, Vec<Fault>> {
        let kinds = match words.len() {
            5 => &Kind::ALL[1..],
            6 => &Kind::ALL[..],
            7 => {
                let help = "write six fields: second minute hour day month weekday; a year cannot be given";
                return Err(vec![self.at(
                    words[6].clone(),
                    "there is a seventh field".into(),
                    help,
                )]);
            }
            count => {
                let plural = if count == 1 { "" } else { "s" };
                let problem = format!("the line has {count} field{plural}");
                let help =
                    "write five: minute hour day month weekday; or six, with the second first";
                return Err(self.all(problem, help));
            }
        };
        let mut fields = [Field { values: 1, ..Field::default() }; 6];
        let mut faults = Vec::new();
        let skipped = 6 - kinds.len();
        for ((kind, span), slot) in kinds.iter().zip(words).zip(&mut fields[skipped..]) {
            match field::read(*kind, &self.text[span.clone()], seed) {
                Ok(field) => *slot = field,
                Err(wrong) => faults.extend(wrong.into_iter().map(|wrong| {
                    let place = span.start + wrong.span.start..span.start + wrong.span.end;
                    self.at(place, wrong.problem, wrong.help)
                })),
            }
        }
        let cron = assemble(&fields);
        if faults.is_empty() && !cron.days.ever() {
            let days = &words[3 - skipped];
            let problem = "no such day ever comes".to_owned();
            let help = "write days that one of the months has; `L` is the last of each";
            faults.push(self.at(days.start..words[words.len() - 1].end, problem, help));
        }
        if faults.is_empty() { Ok(cron) } else { Err(faults) }
    }
}

fn assemble(fields: &[Field; 6]) -> Cron {
    let [seconds, minutes, hours, dates, months, weekdays] = fields;
    let both = match (dates.any, weekdays.any) {
        (_, true) => Both::Dates,
        (true, false) => Both::Weekdays,
        (false, false) if weekdays.together => Both::Together,
        (false, false) => Both::Either,
    };
    let months = u16::try_from(months.values).unwrap_or(0);
    let monthly = Monthly { months, dates: dates.dates, weekdays: weekdays.weekdays, both };
    Cron {
        seconds: seconds.values,
        minutes: minutes.values,
        hours: u32::try_from(hours.values).unwrap_or(0),
        days: Days::new(monthly),
        by_instant: hours.stepped,
    }
}
