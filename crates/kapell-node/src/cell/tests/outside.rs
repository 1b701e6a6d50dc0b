//! A world outside of which the tests say how it answers.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::path::Path;
use std::sync::Mutex;

use async_trait::async_trait;

use crate::cell::{Probes, Transfers};

/// What the ports of instances answer, by path, or by `tcp`.
#[derive(Debug, Default)]
pub(super) struct Outside {
    /// What is to be had, by URL.
    pub(super) files: Mutex<BTreeMap<String, Vec<u8>>>,
    pub(super) sent: Mutex<Vec<(String, Vec<u8>)>>,
    /// What never answers: URLs, paths, `tcp`.
    pub(super) hangs: Mutex<BTreeSet<String>>,
    /// What is wrong with those that are not well.
    pub(super) ill: Mutex<BTreeMap<String, String>>,
    /// All that was asked.
    pub(super) asked: Mutex<Vec<(String, u16)>>,
    pub(super) most_at_once: Mutex<(usize, usize)>,
}

impl Outside {
    pub(super) fn is_ill(&self, what: &str, why: Option<&str>) {
        let mut ill = self.ill.lock().unwrap();
        match why {
            Some(why) => drop(ill.insert(what.to_owned(), why.to_owned())),
            None => drop(ill.remove(what)),
        }
    }

    pub(super) fn hangs(&self, what: &str) {
        self.hangs.lock().unwrap().insert(what.to_owned());
    }

    pub(super) fn asked(&self, what: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|(asked, _)| asked == what).count()
    }

    async fn ask(&self, what: &str, port: u16) -> Result<(), String> {
        self.asked.lock().unwrap().push((what.to_owned(), port));
        let hangs = self.hangs.lock().unwrap().contains(what);
        if hangs {
            let _under_way = UnderWay::new(self);
            pending::<()>().await;
        }
        self.ill.lock().unwrap().get(what).cloned().map_or(Ok(()), Err)
    }
}

struct UnderWay<'a>(&'a Outside);

impl<'a> UnderWay<'a> {
    fn new(outside: &'a Outside) -> Self {
        let mut at_once = outside.most_at_once.lock().unwrap();
        at_once.0 += 1;
        at_once.1 = at_once.1.max(at_once.0);
        Self(outside)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.most_at_once.lock().unwrap().0 -= 1;
    }
}

#[async_trait]
impl Probes for Outside {
    async fn tcp(&self, port: u16) -> Result<(), String> {
        self.ask("tcp", port).await
    }

    async fn http(&self, port: u16, path: &str) -> Result<(), String> {
        self.ask(path, port).await
    }
}

#[async_trait]
impl Transfers for Outside {
    async fn fetch(&self, url: &str, into: &Path, most: u64) -> Result<(), String> {
        self.ask(url, 0).await?;
        let file = self.files.lock().unwrap().get(url).cloned();
        let bytes = file.ok_or_else(|| "the answer is 404 Not Found".to_owned())?;
        if bytes.len() as u64 > most {
            return Err(crate::cell::transfers::too_long(most));
        }
        std::fs::create_dir_all(into.parent().unwrap()).unwrap();
        std::fs::write(into, bytes).map_err(|error| error.to_string())
    }

    async fn send(&self, url: &str, bytes: Vec<u8>) -> Result<(), String> {
        self.ask(url, 0).await?;
        self.sent.lock().unwrap().push((url.to_owned(), bytes));
        Ok(())
    }
}
