//! Those who want jobs, and have them run, changed, paused and deleted.

use std::collections::BTreeMap;
use std::time::Duration;

use kapell_core::board::{JobId, Request};
use kapell_core::job::{ActionId, JobDefinition, JobRequest, NewRun, PauseCause};
use kapell_core::run::{RunId, StopKind, Trigger};
use kapell_core::seams::{Clock as _, Timestamp};

use super::want::{Kind, draw};
use crate::fleet::client::Client;

/// For so long jobs go on when nothing goes wrong any more, before they are put to rest.
const QUIET_LIFE: (Duration, Duration) = (Duration::from_secs(45), Duration::from_secs(60));
/// Who asks for runs faster than they can be led to their end asks for less.
const MOST_ASKED: u64 = 6;

impl Client {
    pub(in crate::fleet) async fn tend_job(mut self, number: u64) {
        let job_id = JobId::new(format!("job-{number}"));
        let grouped = self.chance.permille(350);
        let modest = self.wishes.plan.crash_at.is_some() || self.wishes.plan.modest;
        let kind = Kind { job_id: job_id.clone(), grouped, modest };
        let mut asked = Asked { left: MOST_ASKED, runs: Vec::new() };
        let mut stands = None;
        while self.rest(1, 3000).await {
            let definition = draw(&kind, &mut self.chance);
            let _answered = self.job(apply(&definition)).await;
            stands = Some(definition);
            for _ in 0..self.chance.below(9) {
                if !self.rest(300, 6000).await {
                    break;
                }
                self.wish(&kind, &mut stands, &mut asked).await;
            }
            if self.chance.permille(300) && self.rest(1, 6000).await {
                let cancel_runs = self.chance.permille(500);
                let _answered =
                    self.job(JobRequest::Remove { job_id: job_id.clone(), cancel_runs }).await;
                stands = None;
            }
        }
        let (least, most) = QUIET_LIFE;
        let wait = self.chance.between(least, most);
        tokio::time::sleep(wait).await;
        self.put_to_rest(job_id, stands, &asked).await;
    }

    async fn job(&self, request: JobRequest) -> bool {
        self.ask(Request::Job(request)).await.is_ok()
    }

    /// One thing that somebody may want of a job.
    async fn wish(&mut self, kind: &Kind, stands: &mut Option<JobDefinition>, asked: &mut Asked) {
        let job_id = kind.job_id.clone();
        let request = match self.chance.below(10) {
            0..=2 => return self.trigger(&job_id, asked).await,
            3 => return self.cancel(&job_id, asked).await,
            4 => {
                let cause = PauseCause::Person { who: "ann".to_owned() };
                JobRequest::Pause { job_id, cause, note: "a break".to_owned() }
            }
            5 => JobRequest::Resume { job_id },
            6 => {
                let definition = draw(kind, &mut self.chance);
                *stands = Some(definition.clone());
                apply(&definition)
            }
            7 => return self.backfill(&job_id, asked).await,
            8 => {
                let count = 1 + u32::from(self.chance.permille(300));
                let action = ActionId(u128::from(self.chance.draw()));
                JobRequest::SkipNext { job_id, action, count }
            }
            _ => {
                let Some(definition) = stands else { return };
                definition.suspend = !definition.suspend;
                apply(definition)
            }
        };
        let _answered = self.job(request).await;
    }

    async fn trigger(&mut self, job_id: &JobId, asked: &mut Asked) {
        if asked.left == 0 {
            return;
        }
        asked.left -= 1;
        let at = self.wishes.clock.wall();
        let trigger = Trigger::Manual { who: "ann".into() };
        let run = new_run(RunId::asked_for(job_id, at, self.chance.draw()), at, trigger);
        asked.runs.push(run.run_id.clone());
        let _answered = self.job(JobRequest::Trigger { job_id: job_id.clone(), run }).await;
    }

    async fn backfill(&mut self, job_id: &JobId, asked: &mut Asked) {
        let (now, drawn) = (self.wishes.clock.wall(), self.chance.draw());
        for back in 1..=asked.left.min(3) {
            asked.left -= 1;
            let at = Timestamp((now.0 / 1000 - 10 * back.cast_signed()) * 1000);
            let trigger = Trigger::Backfill { who: "ann".into() };
            let run = new_run(RunId::asked_for(job_id, at, drawn), at, trigger);
            asked.runs.push(run.run_id.clone());
            let _answered = self.job(JobRequest::Trigger { job_id: job_id.clone(), run }).await;
        }
    }

    /// One that was asked for, or one that the schedule may have made.
    async fn cancel(&mut self, job_id: &JobId, asked: &Asked) {
        let last = asked.runs.last().filter(|_| self.chance.permille(600)).cloned();
        let run_id = last.unwrap_or_else(|| {
            let second = self.wishes.clock.wall().0 / 1000;
            RunId::scheduled(job_id, Timestamp((second - second % 20) * 1000))
        });
        let kind = self.chance.pick(&[StopKind::Graceful, StopKind::AtOnce]);
        let why = "ann wants it to end".to_owned();
        let _answered = self.job(JobRequest::Cancel { run_id, kind, why }).await;
    }

    /// Nothing is scheduled any more, in one of the ways there are.
    async fn put_to_rest(&mut self, job_id: JobId, stands: Option<JobDefinition>, asked: &Asked) {
        for run_id in &asked.runs {
            let (kind, why) = (StopKind::Graceful, "it is late".to_owned());
            let _answered =
                self.job(JobRequest::Cancel { run_id: run_id.clone(), kind, why }).await;
        }
        let how = self.chance.below(3);
        match stands {
            // Runs of moments that are far ahead wait for them: they go with their job.
            Some(mut definition) if how == 0 && !self.wishes.plan.far_clocks => {
                definition.suspend = true;
                let _answered = self.job(apply(&definition)).await;
            }
            Some(_) | None => {
                let _answered =
                    self.job(JobRequest::Remove { job_id, cancel_runs: how == 1 }).await;
            }
        }
    }
}

/// What one client has asked for besides the schedule.
struct Asked {
    left: u64,
    runs: Vec<RunId>,
}

fn apply(definition: &JobDefinition) -> JobRequest {
    JobRequest::Apply { definition: Box::new(definition.clone()) }
}

/// When it is due, whoever takes it says.
fn new_run(run_id: RunId, scheduled_at: Timestamp, trigger: Trigger) -> NewRun {
    NewRun { run_id, scheduled_at, due_at: scheduled_at, trigger, parameters: BTreeMap::new() }
}
