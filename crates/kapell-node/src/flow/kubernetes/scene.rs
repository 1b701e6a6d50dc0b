//! One Job, as those see it who wait for it.

use std::sync::Arc;
use std::time::Duration;

use kapell_backend::executor::{Error, Output};
use kapell_backend::kubernetes::{Calls, Client};
use kapell_core::kubernetes::{Course, JobPlace, Standing};
use kapell_core::workflow::show_duration;
use tokio::time::{Instant, timeout};

use super::sight::{Held, Sight};

/// What passes in a moment is not told.
const UNTOLD: Duration = Duration::from_secs(2);
/// So long a cluster that has answered before has to refuse what it is asked before it is believed: one that has just started may
/// do so until it knows who may do what.
const BELIEVED: Duration = Duration::from_secs(10);
/// Between two looks at a cluster that was lost sight of.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub(super) struct Scene {
    pub(super) client: Client,
    pub(super) sight: Arc<Sight>,
    pub(super) place: JobPlace,
    pub(super) output: Arc<dyn Output>,
    pub(super) calls: Calls,
}

impl Scene {
    pub(super) fn held(&self) -> Held {
        self.sight.held(&self.place.name)
    }

    /// Waits until something is so.
    pub(super) async fn until(&self, is_so: impl Fn(&Held) -> bool) {
        let mut changes = self.sight.changes();
        while !is_so(&self.held()) && changes.changed().await.is_ok() {}
    }
}

/// Waits for changes, and for a cluster that is away, but not for ever.
#[derive(Debug)]
pub(super) struct Watcher {
    scene: Scene,
    patience: Duration,
    told: bool,
}

impl Watcher {
    pub(super) const fn new(scene: Scene, patience: Duration) -> Self {
        Self { scene, patience, told: false }
    }

    /// Waits until every Job that was there is known.
    pub(super) async fn listed(&mut self) -> Result<(), Error> {
        let mut changes = self.scene.sight.changes();
        while !self.scene.sight.is_listed() {
            self.look().await?;
            let _quiet = timeout(LOOK, changes.changed()).await;
        }
        Ok(())
    }

    /// Waits until the containers run; tells what keeps them from it.
    pub(super) async fn started(&mut self, limit: Duration) -> Result<Standing, Error> {
        let deadline = Instant::now() + limit;
        let mut changes = self.scene.sight.changes();
        let mut said = None;
        loop {
            let standing = self.scene.held().standing();
            let Standing::Waits { hindrance } = standing else { return Ok(standing) };
            let why = hindrance.map(|it| it.tell());
            if let Some(why) = why.as_ref().filter(|why| said.as_ref() != Some(*why)) {
                self.scene.output.remark(&format!("it waits: {why}"));
            }
            said = why.or(said);
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let limit = show_duration(limit);
                let why = said.map(|why| format!(": {why}")).unwrap_or_default();
                let reason = format!("it did not start within {limit} (start_timeout){why}");
                return Err(Error::Elsewhere { reason });
            }
            self.look().await?;
            let _quiet = timeout(left.min(LOOK), changes.changed()).await;
        }
    }

    /// Waits until it is over.
    pub(super) async fn ended(&mut self) -> Result<Standing, Error> {
        let mut changes = self.scene.sight.changes();
        loop {
            let standing = self.scene.held().standing();
            match standing {
                Standing::Waits { .. } | Standing::Runs { .. } => {}
                Standing::Hopeless { .. } | Standing::Ended { .. } => return Ok(standing),
            }
            self.look().await?;
            let _quiet = timeout(LOOK, changes.changed()).await;
        }
    }

    /// Asks a cluster that was lost sight of. An error if it stays away, or will never say anything.
    async fn look(&mut self) -> Result<(), Error> {
        let Scene { client, sight, place, output, calls } = &self.scene;
        if self.scene.held().is_overlooked()
            && let Ok(Ok(pods)) =
                timeout(LOOK, client.pods(&place.namespace, &place.name, calls)).await
        {
            sight.found(&place.name, &pods);
        }
        let Some(trouble) = sight.trouble() else {
            if std::mem::take(&mut self.told) {
                output.remark("the cluster answers again");
            }
            return Ok(());
        };
        let (away, has_answered) = (trouble.since.elapsed(), sight.is_listed());
        let refused = |error: &kapell_backend::kubernetes::Error| {
            let reason = || Error::Elsewhere { reason: error.to_string() };
            stays_refused(error.course(), away, has_answered).then(reason)
        };
        if let Some(error) = refused(&trouble.error) {
            return Err(error);
        }
        if away < UNTOLD {
            return Ok(());
        }
        // A watch that was taken up again says nothing until something changes.
        let error = match timeout(LOOK, client.job(&place.namespace, &place.name, calls)).await {
            Ok(Ok(_)) => {
                sight.is_fine();
                return Ok(());
            }
            Ok(Err(error)) => refused(&error).map_or(Ok(error), Err)?,
            Err(_) => trouble.error,
        };
        let limit = show_duration(self.patience);
        if away >= self.patience {
            let reason = format!("the cluster did not answer for {limit}: {error}");
            return Err(Error::Elsewhere { reason });
        }
        if !std::mem::replace(&mut self.told, true) {
            output.remark(&format!("{error}; waiting for at most {limit} (host_patience)"));
        }
        Ok(())
    }
}

/// Whether what a cluster says will not change.
fn stays_refused(course: Option<Course>, away: Duration, has_answered: bool) -> bool {
    course == Some(Course::GiveUp) && (!has_answered || away >= BELIEVED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_has_answered_before_has_to_refuse_for_a_while() {
        let (soon, late) = (Duration::from_millis(100), BELIEVED);
        for (course, away, has_answered, want) in [
            (Some(Course::GiveUp), soon, true, false),
            (Some(Course::GiveUp), late, true, true),
            (Some(Course::GiveUp), soon, false, true),
            (Some(Course::Again), late, true, false),
            (None, late, false, false),
        ] {
            let refused = stays_refused(course, away, has_answered);
            assert_eq!(refused, want, "{course:?} for {away:?}, {has_answered}");
        }
    }
}
