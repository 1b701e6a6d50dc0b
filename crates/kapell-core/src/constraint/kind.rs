//! Reads single values of a configuration, each by the kind of its field.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use super::fault::Faults;
use super::fields::{Header, Kind, LONGEST, MOST, Value, meant, snake};
use super::template::Template;
use super::window;
use crate::board::validate::url;
use crate::board::{JobId, SecretName};
use crate::job::Length;

impl Kind {
    /// Reads a value that fits, or tells why it does not.
    pub(super) fn read(self, json: &Json, path: &str, faults: &mut Faults) -> Option<Value> {
        match self {
            Self::Weekdays => {
                return list(
                    json,
                    path,
                    faults,
                    |it| window::weekday(it.as_str()?),
                    "a day as `mon` or `monday`",
                )
                .map(Value::Weekdays);
            }
            Self::Statuses => {
                return list(json, path, faults, status, "a status of HTTP, from 100 to 599")
                    .map(Value::Statuses);
            }
            Self::Texts => {
                return list(json, path, faults, |it| short(it).map(str::to_owned), "a text")
                    .map(Value::Texts);
            }
            Self::Headers => return headers(json, path, faults).map(Value::Headers),
            Self::Parameters => return parameters(json, path, faults).map(Value::Parameters),
            Self::Body => return body(json, path, faults).map(Value::Json),
            Self::Template
            | Self::Url
            | Self::Length { .. }
            | Self::Flag
            | Self::Count { .. }
            | Self::Number
            | Self::Choice(_)
            | Self::Job
            | Self::Secret
            | Self::Figure
            | Self::Zone
            | Self::TimeOfDay => {}
        }
        self.plain(json).map_err(|message| faults.add(path, message)).ok()
    }

    fn plain(self, json: &Json) -> Result<Value, String> {
        match self {
            Self::Length { least, most } => length(json, least, most).map(Value::Length),
            Self::Flag => {
                json.as_bool().map(Value::Flag).ok_or_else(|| "must be true or false".to_owned())
            }
            Self::Count { least, most } => {
                let fits = json.as_u64().filter(|count| (least..=most).contains(count));
                fits.map(Value::Count)
                    .ok_or_else(|| format!("must be a whole number from {least} to {most}"))
            }
            Self::Number => {
                json.as_f64().map(Value::Number).ok_or_else(|| "must be a number".to_owned())
            }
            Self::Template
            | Self::Url
            | Self::Choice(_)
            | Self::Job
            | Self::Secret
            | Self::Figure
            | Self::Zone
            | Self::TimeOfDay => self.text(short(json).ok_or_else(|| self.about())?),
            Self::Body
            | Self::Weekdays
            | Self::Statuses
            | Self::Texts
            | Self::Headers
            | Self::Parameters => Err("must be a mapping or a list".to_owned()),
        }
    }

    fn text(self, text: &str) -> Result<Value, String> {
        let fits = match self {
            Self::Template => return Template::parse(text).map(|_| Value::Text(text.to_owned())),
            Self::TimeOfDay => {
                return window::minute(text).map(Value::Minute).ok_or_else(|| self.about());
            }
            Self::Zone => return window::zone(text).map(|_| Value::Text(text.to_owned())),
            Self::Url => {
                if url::has_credentials(text) {
                    return Err("must not hold a user or a password: use `headers` with a secret"
                        .to_owned());
                }
                url::is_http(text)
            }
            Self::Choice(choices) => {
                let is =
                    |choice: &&&str| **choice == snake(text) || choice.eq_ignore_ascii_case(text);
                let Some(choice) = choices.iter().find(is) else {
                    let meant = meant(text, choices.iter().copied());
                    return Err(format!("{}, not `{text}`{meant}", self.about()));
                };
                return Ok(Value::Text((*choice).to_owned()));
            }
            Self::Job => JobId::from(text).is_valid(),
            Self::Secret => SecretName::from(text).is_valid(),
            Self::Figure => is_figure(text),
            Self::Body
            | Self::Length { .. }
            | Self::Flag
            | Self::Count { .. }
            | Self::Number
            | Self::Weekdays
            | Self::Statuses
            | Self::Texts
            | Self::Headers
            | Self::Parameters => false,
        };
        if fits { Ok(Value::Text(text.to_owned())) } else { Err(self.about()) }
    }

    /// What would be right.
    fn about(self) -> String {
        match self {
            Self::Template => format!("must be a text of at most {LONGEST} bytes"),
            Self::Url => "must be a URL that begins with http:// or https://".to_owned(),
            Self::Choice(choices) => format!("must be one of {}", choices.join(", ")),
            Self::Job => "must be the id of a job: letters, digits, `-` and `_`".to_owned(),
            Self::Secret => "must be the name of a secret: letters, digits, `-` and `_`".to_owned(),
            Self::Figure => {
                "must be the name of a figure: letters, digits and `_`, at most 100".to_owned()
            }
            Self::Zone => "must be a time zone as `Europe/Berlin`".to_owned(),
            Self::TimeOfDay => "must be a time of day as \"08:30\", up to \"24:00\"".to_owned(),
            Self::Body
            | Self::Length { .. }
            | Self::Flag
            | Self::Count { .. }
            | Self::Number
            | Self::Weekdays
            | Self::Statuses
            | Self::Texts
            | Self::Headers
            | Self::Parameters => "does not fit".to_owned(),
        }
    }
}

fn is_figure(text: &str) -> bool {
    (1..=100).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !text.as_bytes()[0].is_ascii_digit()
}

fn short(json: &Json) -> Option<&str> {
    json.as_str().filter(|text| !text.is_empty() && text.len() <= LONGEST)
}

fn status(json: &Json) -> Option<u16> {
    u16::try_from(json.as_u64()?).ok().filter(|status| (100..=599).contains(status))
}

fn length(json: &Json, least: u64, most: u64) -> Result<Length, String> {
    let length: Length = serde_json::from_value(json.clone()).map_err(|error| error.to_string())?;
    let seconds = length.get().as_secs_f64();
    let show = |seconds: u64| Length::new(std::time::Duration::from_secs(seconds));
    #[expect(clippy::cast_precision_loss, reason = "bounds are small")]
    let fits = seconds >= least as f64 && seconds <= most as f64;
    if fits {
        Ok(length)
    } else {
        Err(format!("must be from {} to {}, not {length}", show(least), show(most)))
    }
}

/// A list, or one entry alone.
fn list<T>(
    json: &Json,
    path: &str,
    faults: &mut Faults,
    read: impl Fn(&Json) -> Option<T>,
    what: &str,
) -> Option<Vec<T>> {
    let one = std::slice::from_ref(json);
    let (entries, many) = match json {
        Json::Array(entries) => (entries.as_slice(), true),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Object(_) => {
            (one, false)
        }
    };
    if entries.is_empty() || entries.len() > MOST {
        faults.add(path, format!("must have from 1 to {MOST} entries"));
        return None;
    }
    let before = faults.0.len();
    let mut all = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        match read(entry) {
            Some(value) => all.push(value),
            None if many => {
                faults.add(&format!("{path}[{index}]"), format!("must be {what}, not {entry}"));
            }
            None => faults.add(path, format!("must be {what}, or a list of such, not {entry}")),
        }
    }
    (faults.0.len() == before).then_some(all)
}

/// A name that a header may have, and that is not ours to give.
fn header_fits(name: &str) -> Result<(), String> {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let lower = name.to_ascii_lowercase();
    if name.is_empty() || name.len() > 100 || !name.bytes().all(token) {
        return Err("is not the name of a header".to_owned());
    }
    let ours = [
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "webhook-id",
        "webhook-timestamp",
        "webhook-signature",
    ];
    if ours.contains(&lower.as_str()) { Err("is set by Kapell itself".to_owned()) } else { Ok(()) }
}

fn header_text(json: &Json) -> Option<Header> {
    match json {
        Json::String(text) => {
            let fits = text.len() <= LONGEST && text.bytes().all(|b| (b' '..0x7f).contains(&b));
            fits.then(|| Header::Text(text.clone()))
        }
        Json::Object(map) if map.len() == 1 => {
            let name = SecretName::from(map.get("secret")?.as_str()?);
            name.is_valid().then_some(Header::Secret(name))
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_) => None,
    }
}

fn headers(json: &Json, path: &str, faults: &mut Faults) -> Option<Vec<(String, Header)>> {
    let map = mapping(json, path, faults)?;
    let before = faults.0.len();
    let mut all = Vec::new();
    for (name, value) in map {
        let at = format!("{path}.{name}");
        if let Err(why) = header_fits(name) {
            faults.add(&at, why);
        } else if let Some(header) = header_text(value) {
            all.push((name.clone(), header));
        } else {
            faults.add(&at, "must be a text of plain characters or {secret: NAME}");
        }
    }
    (faults.0.len() == before).then_some(all)
}

fn parameters(json: &Json, path: &str, faults: &mut Faults) -> Option<BTreeMap<String, String>> {
    let map = mapping(json, path, faults)?;
    let before = faults.0.len();
    let mut all = BTreeMap::new();
    for (name, value) in map {
        let at = format!("{path}.{name}");
        match Kind::Template.plain(value) {
            Ok(Value::Text(text)) => drop(all.insert(name.clone(), text)),
            Ok(_) => {}
            Err(why) => faults.add(&at, why),
        }
    }
    (faults.0.len() == before).then_some(all)
}

fn mapping<'a>(json: &'a Json, path: &str, faults: &mut Faults) -> Option<&'a Map<String, Json>> {
    let map = json.as_object().filter(|map| map.len() <= MOST);
    if map.is_none() {
        faults.add(path, format!("must be a mapping with at most {MOST} entries"));
    }
    map
}

fn body(json: &Json, path: &str, faults: &mut Faults) -> Option<Json> {
    let before = faults.0.len();
    if json.to_string().len() > 4 * LONGEST {
        faults.add(path, format!("must be at most {} bytes of JSON", 4 * LONGEST));
    } else {
        templates(json, path, faults);
    }
    (faults.0.len() == before).then(|| json.clone())
}

fn templates(json: &Json, path: &str, faults: &mut Faults) {
    match json {
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
        Json::String(text) => {
            if let Err(why) = Template::parse(text) {
                faults.add(path, why);
            }
        }
        Json::Array(entries) => {
            for (index, entry) in entries.iter().enumerate() {
                templates(entry, &format!("{path}[{index}]"), faults);
            }
        }
        Json::Object(map) => {
            for (key, value) in map {
                templates(value, &format!("{path}.{key}"), faults);
            }
        }
    }
}
