//! One watch for all objects of a kind in a namespace: listed once, and then told of every change.

use std::time::Duration;

use futures_util::StreamExt as _;
use hyper::Method;
use kapell_core::kubernetes::{Course, List};
use kube::core::WatchEvent;
use tokio::time::{Instant, sleep, timeout};

use super::{Calls, Client, Error, PAGE, TRY, Watched, query, request};

/// So long a watch goes on until it is taken up again where it was.
const LENGTH: Duration = Duration::from_secs(30);
/// A server that says nothing for so long, not even that the watch is over, is not there any more.
const SILENCE: Duration = Duration::from_secs(35);
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// A watch that went on for longer was none that ends at once.
const LASTED: Duration = Duration::from_secs(1);

/// What is seen of objects.
#[derive(Debug)]
pub enum Event<T> {
    /// All that there are: what is not among them is gone.
    All(Vec<T>),
    /// It is new, or has changed.
    Seen(T),
    Gone(T),
    /// Nothing can be seen for now.
    Blind(Error),
}

/// How a watch ended.
enum Over {
    /// It goes on where it was.
    Resume,
    /// What is known is too old: all is listed again.
    Relist,
    Failed(Error),
}

/// How long nothing is asked for between two watches: longer each time while they come to nothing.
#[derive(Debug)]
pub(super) struct Rest {
    next: Duration,
}

impl Rest {
    pub(super) const fn new() -> Self {
        Self { next: PAUSE.0 }
    }

    /// A watch is over. One that was of use is taken up again soon, for nothing is seen until then.
    pub(super) fn after(&mut self, was_of_use: bool) -> Duration {
        let pause = if was_of_use { PAUSE.0 } else { self.next };
        self.next = (pause * 2).min(PAUSE.1);
        pause
    }
}

/// Whether a watch did what it was for: it told something, or there was nothing to tell and it ended when its time was over.
pub(super) fn was_of_use(ended_well: bool, lasted: Duration, told: bool) -> bool {
    told || ended_well && lasted > LASTED
}

/// Tells of all objects that a selector chooses, for as long as it is polled.
pub async fn watch<T: Watched>(
    client: Client,
    namespace: String,
    selector: String,
    mut tell: impl FnMut(Event<T>) + Send,
) {
    let mut rest = Rest::new();
    loop {
        let is_listed = match list::<T>(&client, &namespace, &selector).await {
            Ok((all, version)) => {
                tell(Event::All(all));
                follow(&client, (&namespace, &selector), version, &mut tell).await;
                true
            }
            Err(error) => {
                tell(Event::Blind(error));
                false
            }
        };
        sleep(rest.after(is_listed)).await;
    }
}

/// All there are, and the version at which that is so.
async fn list<T: Watched>(
    client: &Client,
    namespace: &str,
    selector: &str,
) -> Result<(Vec<T>, String), Error> {
    let what =
        format!("cannot list {} in namespace `{namespace}` of cluster `{}`", T::WHAT, client.name);
    let (mut all, mut next) = (Vec::new(), String::new());
    let limit = PAGE.to_string();
    loop {
        let query = query(&[("labelSelector", selector), ("limit", &limit), ("continue", &next)]);
        let path = format!("{}?{query}", T::path(namespace));
        let request = request(Method::GET, &path, String::new());
        let page: List<T> = client.call(&what, &request, &Calls::default()).await?;
        all.extend(page.items);
        if page.metadata.next.is_empty() {
            return Ok((all, page.metadata.resource_version));
        }
        next = page.metadata.next;
    }
}

/// Goes on until all has to be listed again.
async fn follow<T: Watched>(
    client: &Client,
    (namespace, selector): (&str, &str),
    mut version: String,
    tell: &mut (impl FnMut(Event<T>) + Send),
) {
    let mut rest = Rest::new();
    loop {
        let (before, began) = (version.clone(), Instant::now());
        let ended_well = match once(client, (namespace, selector), &mut version, tell).await {
            Over::Resume => true,
            Over::Relist => {
                let cluster = &*client.name;
                tracing::info!(
                    cluster,
                    namespace,
                    what = T::WHAT,
                    "what was seen of a cluster is too long ago: all is listed again"
                );
                return;
            }
            Over::Failed(error) => {
                tell(Event::Blind(error));
                false
            }
        };
        sleep(rest.after(was_of_use(ended_well, began.elapsed(), version != before))).await;
    }
}

async fn once<T: Watched>(
    client: &Client,
    (namespace, selector): (&str, &str),
    version: &mut String,
    tell: &mut (impl FnMut(Event<T>) + Send),
) -> Over {
    let what =
        format!("cannot watch {} in namespace `{namespace}` of cluster `{}`", T::WHAT, client.name);
    let seconds = LENGTH.as_secs().to_string();
    let query = query(&[
        ("labelSelector", selector),
        ("watch", "true"),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", &seconds),
        ("resourceVersion", version),
    ]);
    let request = request(Method::GET, &format!("{}?{query}", T::path(namespace)), String::new());
    client.limiter.pass().await;
    let failed = |error: &kube::Error| {
        let error = Error::of(&what, error);
        if error.course() == Some(Course::Stale) { Over::Relist } else { Over::Failed(error) }
    };
    // That it has begun is said at once, whether there is anything to see or not.
    let events = match timeout(TRY, client.inner.request_events::<T>(request)).await {
        Ok(Ok(events)) => events,
        Ok(Err(error)) => return failed(&error),
        Err(_) => return Over::Failed(Error::silent(&what, TRY)),
    };
    let mut events = std::pin::pin!(events);
    loop {
        let event = match timeout(SILENCE, events.next()).await {
            Ok(Some(Ok(event))) => event,
            Ok(Some(Err(error))) => return failed(&error),
            Ok(None) => return Over::Resume,
            Err(_) => return Over::Failed(Error::silent(&what, SILENCE)),
        };
        match event {
            WatchEvent::Added(it) | WatchEvent::Modified(it) => {
                it.version().clone_into(version);
                tell(Event::Seen(it));
            }
            WatchEvent::Deleted(it) => {
                it.version().clone_into(version);
                tell(Event::Gone(it));
            }
            WatchEvent::Bookmark(mark) => mark.metadata.resource_version.clone_into(version),
            WatchEvent::Error(status) => return failed(&kube::Error::Api(status)),
        }
    }
}
