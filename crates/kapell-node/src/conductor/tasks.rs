use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio_util::task::TaskTracker;

pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What runs a conductor's tasks, handed in so that their order can be explored.
pub trait Tasks: fmt::Debug + Send + Sync {
    fn spawn(&self, task: Task);

    fn sleep(&self, wait: Duration) -> Task;
}

/// Tasks of the runtime, counted.
#[derive(Debug, Clone, Default)]
pub struct TokioTasks(TaskTracker);

impl TokioTasks {
    /// How many have not ended.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl Tasks for TokioTasks {
    fn spawn(&self, task: Task) {
        drop(self.0.spawn(task));
    }

    fn sleep(&self, wait: Duration) -> Task {
        Box::pin(tokio::time::sleep(wait))
    }
}
