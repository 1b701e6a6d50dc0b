use std::sync::Arc;

use async_trait::async_trait;
use kapell_core::run::{Evidence, StopKind};
use tokio::sync::mpsc::{self, UnboundedReceiver};

use super::{FakeBackend, FakeWork, Manner};
use crate::scheduler::backend::{Attempt, Backend, News, What, Work};
use crate::scheduler::conformance::{Rig, attempt, conforms};
use crate::scheduler::local::tests::command;
use crate::system::SystemClock;

struct Fake {
    work: FakeWork,
    backend: FakeBackend,
    news: UnboundedReceiver<News>,
}

impl Fake {
    fn on(work: FakeWork) -> Self {
        let (newsroom, news) = mpsc::unbounded_channel();
        let backend = FakeBackend::new(work.clone(), newsroom, Arc::new(SystemClock));
        Self { work, backend, news }
    }
}

#[async_trait]
impl Rig for Fake {
    fn backend(&self) -> &dyn Backend {
        &self.backend
    }

    fn news(&mut self) -> &mut UnboundedReceiver<News> {
        &mut self.news
    }

    fn work(&self, attempt: &Attempt) -> Work {
        command(attempt, "true")
    }

    fn unstartable(&self, attempt: &Attempt) -> Work {
        self.work.behave(Manner::Refuses { why: "no such thing".to_owned() });
        command(attempt, "true")
    }

    async fn start(&self, attempt: &Attempt) {
        self.backend.start(attempt);
    }

    async fn end(&self, attempt: &Attempt, code: i32) {
        self.backend.end(attempt, code);
    }

    fn launches(&self, attempt: &Attempt) -> u32 {
        self.work.launches(attempt)
    }

    fn is_under_way(&self, attempt: &Attempt) -> bool {
        self.work.is_under_way(attempt)
    }

    async fn reopen(self) -> Self {
        Self::on(self.work)
    }

    async fn close(self) {}
}

#[tokio::test]
async fn a_fake_backend_does_what_every_backend_does() {
    conforms(async || Fake::on(FakeWork::default())).await;
}

#[tokio::test]
async fn what_turns_out_not_to_start_is_news() {
    let mut fake = Fake::on(FakeWork::default());
    let one = attempt("one", 0);
    fake.backend.launch(&command(&one, "true")).await.unwrap();
    fake.backend.cannot_start(&one, "no image");
    let why = "no image".to_owned();
    assert_eq!(fake.news.try_recv().unwrap().what, What::Unstartable { why });
    assert_eq!(fake.backend.find(&one, "").await, Evidence::Launched);
    fake.backend.stop(&one, "", StopKind::AtOnce).await.unwrap();
    assert!(fake.news.try_recv().is_err());
}
