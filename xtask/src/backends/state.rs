use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::cache::Cache;
use crate::error::{Result, failed};

const FILE: &str = "state.json";

/// A server that was started and not yet taken down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) pid: u32,
    pub(crate) endpoint: String,
    /// Everything that it writes, its log included.
    pub(crate) dir: PathBuf,
    /// Whether it has answered and has its users.
    pub(crate) ready: bool,
    /// Whether it stays when the test runs that use it have ended.
    pub(crate) keep: bool,
}

impl fmt::Display for Record {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {} {}", self.name, self.endpoint, self.pid)
    }
}

/// What runs, as the state file has it. Change it under [`Cache::lock`] only.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    records: Vec<Record>,
}

impl State {
    pub(crate) fn load(cache: &Cache) -> Result<Self> {
        let path = cache.path(FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(cache.explain(FILE, &error)),
        };
        Self::parse(&text).ok_or_else(|| {
            let path = path.display();
            failed(format!("{path}: not readable; end the servers it names and delete the file"))
        })
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Record> {
        self.records.iter().find(|record| record.name == name)
    }

    pub(crate) fn put(&mut self, cache: &Cache, record: Record) -> Result<()> {
        self.records.retain(|each| each.name != record.name);
        self.records.push(record);
        self.save(cache)
    }

    pub(crate) fn remove(&mut self, cache: &Cache, name: &str) -> Result<()> {
        self.records.retain(|each| each.name != name);
        self.save(cache)
    }

    /// Renames a complete file into place, because readers take no lock.
    fn save(&self, cache: &Cache) -> Result<()> {
        let part = cache.path("state.json.part");
        fs::write(&part, self.render()).map_err(|error| cache.explain(FILE, &error))?;
        fs::rename(&part, cache.path(FILE)).map_err(|error| cache.explain(FILE, &error))
    }

    fn render(&self) -> String {
        let record = |each: &Record| {
            json!({
                "name": each.name, "pid": each.pid, "endpoint": each.endpoint,
                "dir": each.dir.to_string_lossy(), "ready": each.ready, "keep": each.keep,
            })
        };
        let servers: Vec<Value> = self.records.iter().map(record).collect();
        format!("{:#}\n", json!({ "servers": servers }))
    }

    fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let records = value["servers"].as_array()?.iter().map(|each| {
            Some(Record {
                name: each["name"].as_str()?.to_owned(),
                pid: u32::try_from(each["pid"].as_u64()?).ok()?,
                endpoint: each["endpoint"].as_str()?.to_owned(),
                dir: each["dir"].as_str()?.into(),
                ready: each["ready"].as_bool()?,
                keep: each["keep"].as_bool()?,
            })
        });
        Some(Self { records: records.collect::<Option<_>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn record(name: &str, pid: u32) -> Record {
        let (endpoint, dir) = (format!("http://127.0.0.1:{pid}"), PathBuf::from("/tmp/x"));
        Record { name: name.to_owned(), pid, endpoint, dir, ready: true, keep: false }
    }

    #[test]
    fn a_name_has_one_record_and_all_of_it_is_kept() {
        let scratch = Scratch::new("state").unwrap();
        let cache = Cache::at(scratch.path());
        let mut state = State::load(&cache).unwrap();
        assert_eq!(state, State::default());
        state.put(&cache, record("a", 1)).unwrap();
        state.put(&cache, record("b", 2)).unwrap();
        state.put(&cache, record("a", 3)).unwrap();
        assert_eq!(State::load(&cache).unwrap(), state);
        assert_eq!(state.get("a"), Some(&record("a", 3)));
        state.remove(&cache, "a").unwrap();
        assert_eq!(State::load(&cache).unwrap().records, [record("b", 2)]);
    }

    #[test]
    fn a_damaged_file_is_an_error_that_says_what_to_do() {
        let scratch = Scratch::new("state").unwrap();
        let cache = Cache::at(scratch.path());
        fs::write(cache.path(FILE), "{\"servers\": [{}]}").unwrap();
        let error = State::load(&cache).unwrap_err().to_string();
        assert!(error.contains("state.json: not readable; end the servers"), "{error}");
    }
}
