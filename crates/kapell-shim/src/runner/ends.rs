//! How programs end, and what is left of them then.

use super::parcel::{ENDED, RELEASE};
use super::program::Ended;
use super::{Runner, kernel, now_ms};
use crate::record::End;
use crate::sys::{self, Dead};

impl Runner {
    /// Waits for all that has ended.
    pub(super) fn reap(&mut self) {
        while sys::next_signal(&self.signals).is_some() {}
        let now = now_ms();
        while let Some(pid) = kernel::next_dead() {
            let program = self.programs.get_mut(&pid);
            if program.is_some() {
                // Before it is waited for: until then nobody else can have its number.
                sys::signal(-pid, libc::SIGKILL);
            }
            let Ok(Some((_, dead))) = sys::reap(pid) else { return };
            let end = match dead {
                Dead::Code(code) => End::Code(code),
                Dead::Signal(signal) => End::Signal(signal),
            };
            match program {
                Some(program) => {
                    program.ended(end, now);
                    self.timed.remove(&pid);
                    self.ending.insert(pid);
                }
                None => self.orphans.reaped(pid),
            }
        }
    }

    /// Kills those whose grace is over.
    pub(super) fn kill_due(&mut self) {
        if self.timed.is_empty() {
            return;
        }
        let now = sys::monotonic_ms();
        for pid in self.timed.clone() {
            match self.programs.get_mut(&pid) {
                Some(program) if program.kill_at.is_some_and(|at| at > now) => {}
                Some(program) => {
                    program.kill(pid);
                    self.timed.remove(&pid);
                }
                None => drop(self.timed.remove(&pid)),
            }
        }
    }

    /// Tells of all programs of which nothing is left.
    pub(super) fn settle(&mut self) {
        if self.ending.is_empty() {
            return;
        }
        let waits = self.orphans.sweep(&self.programs);
        let now = sys::monotonic_ms();
        for pid in self.ending.clone() {
            let end = self.programs.get(&pid).and_then(|program| program.end.as_ref());
            let is_over = end.is_none_or(|end| end.told_by_ms <= now);
            if !waits.contains(&pid) || is_over {
                self.ending.remove(&pid);
                self.finish(pid);
            }
        }
    }

    fn finish(&mut self, pid: i32) {
        let Some(mut program) = self.programs.remove(&pid) else { return };
        let Some(Ended { how, at_ms, .. }) = program.end.take() else { return };
        let record = program.finish(how, &mut self.buffer);
        let strangers = self.orphans.has_strangers();
        let left = program.dir.take().and_then(|dir| self.dirs.give_back(dir, strangers));
        let guid = &program.guid;
        let parts: [&[u8]; 3] = [&at_ms.to_be_bytes(), &left.unwrap_or(0).to_be_bytes(), &record];
        self.say(ENDED, guid, &parts);
        if program.is_released {
            self.stories.remove(guid);
            self.journal.note(RELEASE, guid, &[]);
            return;
        }
        self.journal.note(ENDED, guid, &parts);
        if let Some(story) = self.stories.get_mut(guid) {
            story.end = Some((at_ms, record));
        }
    }
}
