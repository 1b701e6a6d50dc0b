//! Reads the crontabs of other schedulers.

use std::ops::Range;

use super::fault::{Fault, Place};
use super::line::Line;
use super::zone::{self, Zone};

/// A line of a crontab that runs something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrontabLine {
    /// Its number, from 1.
    pub line: usize,
    /// As `schedule` of a job takes it.
    pub schedule: String,
    /// What `CRON_TZ` said last above it.
    pub timezone: Option<String>,
    /// Who runs it, in a crontab of the system.
    pub user: Option<String>,
    /// Text for a shell.
    pub command: String,
    /// The variables set above it, by name.
    pub env: Vec<(String, String)>,
}

/// Whose crontab it is, which decides its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// `crontab -l`.
    User,
    /// `/etc/crontab` and `/etc/cron.d`: who runs a command stands before it.
    System,
}

/// Reads a crontab, or says everything that is wrong with it.
pub fn read(text: &str, columns: Columns) -> Result<Vec<CrontabLine>, Vec<Fault>> {
    let mut reader = Reader { columns, timezone: None, env: Vec::new(), faults: Vec::new() };
    let mut lines = Vec::new();
    for (text, number) in text.lines().zip(1..) {
        let plain = text.trim();
        if plain.is_empty() || plain.starts_with('#') {
            continue;
        }
        match assignment(plain) {
            Some((name, value)) => reader.set(text, number, name, value),
            None => lines.extend(reader.entry(text, number)),
        }
    }
    if reader.faults.is_empty() { Ok(lines) } else { Err(reader.faults) }
}

struct Reader {
    columns: Columns,
    timezone: Option<String>,
    env: Vec<(String, String)>,
    faults: Vec<Fault>,
}

impl Reader {
    fn set(&mut self, text: &str, number: usize, name: &str, value: &str) {
        if name != "CRON_TZ" {
            self.env.retain(|(each, _)| each != name);
            self.env.push((name.to_owned(), value.to_owned()));
            return;
        }
        if Zone::named(value).is_none() {
            let near = zone::nearest(value).unwrap_or("Europe/Berlin");
            let start = text.rfind(value).unwrap_or(0);
            let problem = format!("the time zone `{value}` is not known");
            let span = start..start + value.len();
            self.fault(text, number, span, problem, &format!("write `{near}`"));
        }
        self.timezone = Some(value.to_owned());
    }

    fn entry(&mut self, text: &str, number: usize) -> Option<CrontabLine> {
        let blank = text.len() - text.trim_start().len();
        let rest = &text[blank..];
        let fields = match rest.split_whitespace().next() {
            Some("@every") => 2,
            Some(word) if word.starts_with('@') => 1,
            Some(_) | None => 5,
        };
        let schedule = blank..blank + length_of_words(rest, fields);
        let mut at = after_blanks(text, schedule.end);
        let user = match self.columns {
            Columns::User => None,
            Columns::System => {
                let end = at + length_of_words(&text[at..], 1);
                let user = text[at..end].to_owned();
                at = after_blanks(text, end);
                Some(user)
            }
        };
        let command = text[at..].trim_end();
        if command.is_empty() {
            let wants = match self.columns {
                Columns::User => "write five fields or `@daily`, then the command",
                Columns::System => "write five fields or `@daily`, the user, then the command",
            };
            let problem = "the line has no command".to_owned();
            self.fault(text, number, blank..text.trim_end().len(), problem, wants);
            return None;
        }
        let schedule = self.schedule(text, number, schedule);
        let command = self.command(text, number, at..at + command.len())?;
        let (timezone, env) = (self.timezone.clone(), self.env.clone());
        Some(CrontabLine { line: number, schedule: schedule?, timezone, user, command, env })
    }

    /// Faults are shown within the whole line.
    fn schedule(&mut self, text: &str, number: usize, span: Range<usize>) -> Option<String> {
        let schedule = &text[span.clone()];
        let Err(faults) = Line::read(schedule, Place::Crontab(number), 0) else {
            return Some(schedule.to_owned());
        };
        for fault in faults {
            let within = span.start + fault.span.start..span.start + fault.span.end;
            self.fault(text, number, within, fault.problem, &fault.help);
        }
        None
    }

    /// The command with `\%` as `%`; a bare one would begin its input.
    fn command(&mut self, text: &str, number: usize, span: Range<usize>) -> Option<String> {
        let command = &text[span.clone()];
        let mut plain = String::with_capacity(command.len());
        let mut chars = command.char_indices().peekable();
        while let Some((at, char)) = chars.next() {
            match char {
                '\\' if chars.next_if(|(_, next)| *next == '%').is_some() => plain.push('%'),
                '%' => {
                    let at = span.start + at;
                    let problem = "`%` as the end of a command is not supported".to_owned();
                    let help = "write `\\%` for a percent sign; give input with `printf … |`";
                    self.fault(text, number, at..at + 1, problem, help);
                    return None;
                }
                other => plain.push(other),
            }
        }
        Some(plain)
    }

    fn fault(&mut self, text: &str, line: usize, span: Range<usize>, problem: String, help: &str) {
        self.faults.push(Fault { span, ..Fault::whole(Place::Crontab(line), text, problem, help) });
    }
}

/// `NAME=value`, `NAME = "value"`: a name, and what is left without quotes.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = unquoted(name.trim_end());
    let begins = name.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_');
    let plain = name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
    (begins && plain).then(|| (name, unquoted(value.trim())))
}

fn unquoted(text: &str) -> &str {
    let within = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
    within('"').or_else(|| within('\'')).unwrap_or(text)
}

/// How long the first words of a text are, with the blanks between them.
fn length_of_words(text: &str, count: usize) -> usize {
    let mut end = 0;
    for _ in 0..count {
        let start = after_blanks(text, end);
        let rest = &text[start..];
        let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
        if length == 0 {
            break;
        }
        end = start + length;
    }
    end
}

fn after_blanks(text: &str, at: usize) -> usize {
    text.len() - text[at..].trim_start().len()
}
