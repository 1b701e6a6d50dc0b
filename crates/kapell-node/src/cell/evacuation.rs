//! How a cell that evacuates comes to its end.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kapell_core::seams::{Clock, Moment, Timestamp};

use super::Shared;
use super::actor::Actor;
use super::job::Done;
use super::rep::{Read, Rep};

/// Says that a cell evacuates to an agent that comes after this one, and by when it is to be over.
#[derive(Debug)]
pub(super) struct Mark {
    /// None: nothing is kept.
    path: Option<PathBuf>,
}

impl Mark {
    pub(super) fn new(cell_dir: Option<&Path>) -> Self {
        Self { path: cell_dir.map(|dir| dir.join("evacuating")) }
    }

    pub(super) fn set(&self, by: Timestamp) {
        let Some(path) = &self.path else { return };
        let draft = path.with_extension("draft");
        let write = || {
            let mut file = File::create(&draft)?;
            file.write_all(format!("{}\n", by.0).as_bytes())?;
            file.sync_all()?;
            fs::rename(&draft, path)
        };
        if let Err(error) = write() {
            tracing::warn!(%error, path = %path.display(), "an agent that comes after this one will not go on evacuating");
        }
    }

    /// Until when it goes on, if an earlier agent had not done with it.
    pub(super) fn found(&self, clock: &dyn Clock, longest: Duration) -> Option<Moment> {
        let path = self.path.as_deref()?;
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            read => read.unwrap_or_default(),
        };
        // One that cannot be read says at least that it evacuates.
        let by = text.trim().parse().ok().map(Timestamp);
        let left = by.map_or(longest, |by| by.since(clock.wall()).min(longest));
        tracing::info!(?left, "goes on evacuating, as the agent before this one did");
        Some(clock.now().after(left))
    }

    pub(super) fn clear(&self) {
        let Some(path) = &self.path else { return };
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, path = %path.display(), "the next agent will evacuate unless this is removed");
            }
            Ok(()) | Err(_) => {}
        }
    }
}

/// How far an evacuation is, once no container is left.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Evacuation {
    /// Nothing on the board names this cell any more.
    swept: bool,
    /// The records were asked for since the last container went.
    asked: bool,
    leaving: bool,
    again_at: Option<Moment>,
    gone: bool,
}

impl Evacuation {
    /// The records were read when no container was left, and there was nothing to do about any.
    pub(super) const fn is_swept(&mut self) {
        self.swept = true;
    }

    pub(super) const fn is_leaving(&self) -> bool {
        self.leaving || self.gone
    }

    pub(super) const fn is_gone(&self) -> bool {
        self.gone
    }

    pub(super) fn has_left(&mut self, done: bool, now: Moment, shared: &Shared) {
        self.leaving = false;
        if done {
            self.end(shared);
        } else {
            self.again_at = Some(now.after(shared.settings.first_retry));
        }
    }

    fn end(&mut self, shared: &Shared) {
        self.gone = true;
        shared.mark.clear();
        shared.evacuated.send_replace(true);
    }

    pub(super) fn due(&self, rep: &Rep) -> Option<Moment> {
        if self.gone {
            return None;
        }
        let by = rep.evacuate_by?;
        let limit = if rep.timed_out { by.after(rep.executor.settings.ending) } else { by };
        Some(self.again_at.map_or(limit, |again| again.min(limit)))
    }
}

impl Actor {
    pub(super) fn evacuate(&mut self, rep: &mut Rep, now: Moment) {
        let Some(by) = rep.evacuate_by else { return };
        if self.evacuation.is_leaving() {
            return;
        }
        if now >= by && !rep.timed_out {
            tracing::warn!("the evacuation took too long: what is left is given up");
            rep.timed_out = true;
            rep.look_at_all();
        }
        if now >= by.after(self.shared.settings.ending) {
            tracing::warn!("the board was not told that this cell is gone");
            self.evacuation.end(&self.shared);
            return;
        }
        let settled = rep.executor.is_empty() && self.is_quiet();
        if !settled {
            // Whatever was read of the board before, it was before this was over.
            (self.evacuation.swept, self.evacuation.asked) = (false, false);
        }
        let is_early = self.evacuation.again_at.is_some_and(|again| now < again);
        if !settled || self.polling || is_early {
            return;
        }
        if !self.evacuation.swept {
            if !mem::replace(&mut self.evacuation.asked, true) {
                rep.ask(Read::Now);
            }
            return;
        }
        self.evacuation.leaving = true;
        self.evacuation.again_at = None;
        let (board, id) = (Arc::clone(&self.shared.board), self.shared.id.clone());
        self.jobs.spawn(async move { Done::Left(board.leave(&id).await) });
    }
}
