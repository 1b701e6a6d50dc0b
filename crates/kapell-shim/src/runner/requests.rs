//! What a host asks for.

use super::journal::Story;
use super::lease::Lease;
use super::parcel::{
    FAILED, INTENT, KILL, LAUNCH, LEASE, NUMBER, Parcel, RELEASE, Read, STARTED, STOP,
};
use super::{MOST_AT_ONCE, Runner, now_ms, parcel, token};
use crate::record::{Failure, Stage};

/// A program to be started.
struct Launch<'a> {
    guid: &'a [u8],
    tag: &'a [u8],
    spec: &'a [u8],
}

impl Runner {
    /// Does what was asked for, in that order.
    pub(super) fn heed(&mut self) {
        let mut asked = Vec::new();
        while asked.len() < MOST_AT_ONCE
            && let Some(parcel) = self.line.as_mut().and_then(super::Line::next)
        {
            asked.push(parcel);
        }
        self.is_behind = asked.len() == MOST_AT_ONCE;
        let mut launches = Vec::new();
        for bytes in &asked {
            let Read::Whole(Parcel { kind, name, rest }, _) = parcel::read(bytes) else { continue };
            if kind == LAUNCH {
                launches.extend(launch(name, rest));
                continue;
            }
            self.start(&std::mem::take(&mut launches));
            match kind {
                STOP => self.stop(name),
                KILL => self.kill(name),
                RELEASE => self.release(name),
                LEASE => self.lease = Lease::read(rest),
                // Of a host that is newer than we are.
                _ => {}
            }
        }
        self.start(&launches);
    }

    /// Writes down what is going to be started, then starts it.
    fn start(&mut self, launches: &[Launch<'_>]) {
        if launches.is_empty() {
            return;
        }
        if self.lease == Lease::Over {
            for launch in launches {
                self.fail(launch.guid, Failure { stage: Stage::Fork, errno: libc::ECANCELED });
            }
            return;
        }
        let mark = self.journal.mark();
        let now = now_ms();
        let mut new = Vec::with_capacity(launches.len());
        for launch @ Launch { guid, tag, .. } in launches {
            if let Some(story) = self.stories.get(*guid) {
                // It was asked for before: it is what it was.
                self.line.iter_mut().for_each(|line| line.tell(guid, story));
                continue;
            }
            self.journal.note(INTENT, guid, &[&now.to_be_bytes(), tag]);
            new.push(launch);
        }
        let io = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EIO);
        let room = self.journal.make_room(self.programs.len() + new.len());
        let written = room.and_then(|()| self.journal.flush().map_err(io));
        if let Err(errno) = written {
            self.journal.forget_from(mark);
            for launch in new {
                self.fail(launch.guid, Failure { stage: Stage::Exit, errno });
            }
            return;
        }
        for launch in new {
            if let Err(failure) = self.start_one(launch) {
                self.journal.note(RELEASE, launch.guid, &[]);
                self.fail(launch.guid, failure);
            }
        }
    }

    fn start_one(&mut self, launch: &Launch<'_>) -> Result<(), Failure> {
        let Launch { guid, tag, spec } = *launch;
        let dir = self.dirs.take().map_err(|error| Failure {
            stage: Stage::Work,
            errno: error.raw_os_error().unwrap_or(libc::EIO),
        })?;
        let (pid, program) = match self.starter.start(guid, spec, dir) {
            Ok(started) => started,
            Err((failure, dir)) => {
                self.dirs.give_back(dir, false);
                return Err(failure);
            }
        };
        let began_ms = now_ms();
        self.journal.note(NUMBER, guid, &[&pid.to_be_bytes()]);
        self.say(STARTED, guid, &[&began_ms.to_be_bytes()]);
        for (pipe, is_err) in [(&program.out.pipe, false), (&program.err.pipe, true)] {
            if let Some(pipe) = pipe {
                // Without it, what it writes is read when it has ended.
                let _unwatched = self.poll.add(pipe, token(pid, is_err));
            }
        }
        self.programs.insert(pid, program);
        let story = Story { tag: tag.to_vec(), began_ms, pid: Some(pid), end: None };
        self.stories.insert(guid.to_vec(), story);
        Ok(())
    }

    fn fail(&mut self, guid: &[u8], Failure { stage, errno }: Failure) {
        self.say(FAILED, guid, &[&[stage as u8], &errno.to_be_bytes()]);
    }

    pub(super) fn say(&mut self, kind: u8, guid: &[u8], parts: &[&[u8]]) {
        if let Some(line) = &mut self.line {
            line.say(kind, guid, parts);
        }
    }

    /// The number of a program that has not ended.
    fn running(&self, guid: &[u8]) -> Option<i32> {
        let story = self.stories.get(guid)?;
        story.pid.filter(|_| story.end.is_none())
    }

    fn stop(&mut self, guid: &[u8]) {
        let Some(pid) = self.running(guid) else { return };
        if let Some(program) = self.programs.get_mut(&pid) {
            program.stop(pid);
            self.timed.insert(pid);
        }
    }

    fn kill(&mut self, guid: &[u8]) {
        let Some(pid) = self.running(guid) else { return };
        if let Some(program) = self.programs.get_mut(&pid) {
            program.kill(pid);
        }
    }

    /// What still runs is ended first.
    fn release(&mut self, guid: &[u8]) {
        match self.running(guid) {
            Some(pid) => {
                if let Some(program) = self.programs.get_mut(&pid) {
                    program.is_released = true;
                    program.kill(pid);
                }
            }
            None => {
                if self.stories.remove(guid).is_some() {
                    self.journal.note(RELEASE, guid, &[]);
                }
            }
        }
    }
}

fn launch<'a>(guid: &'a [u8], rest: &'a [u8]) -> Option<Launch<'a>> {
    let (length, rest) = rest.split_first_chunk::<2>()?;
    let (tag, spec) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    Some(Launch { guid, tag, spec })
}
