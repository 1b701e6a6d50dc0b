//! Those who want something of the platform, and how they ask for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kapell_core::board::{
    Action, DesiredLrp, DesiredUpdate, Domain, InstanceGuid, ProcessGuid, Refusal, Reply, Request,
    Run, TaskDefinition, TaskGuid,
};
use kapell_core::job::JobRequest;
use kapell_node::board::Declined;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::desk::{Desk, Seen};
use super::fact::Fact;
use super::links::cell_id;
use super::machine::{CRASH, RESULT, SERVE, WORK};
use super::mail::{Answer, Ask, Failed, Party};
use super::plan::Plan;
use super::timing::{LINGER, PATIENCE};
use crate::parts::chance::Chance;
use crate::parts::clock::Drifting;

/// Between two rounds through all hosts.
const PAUSE: Duration = Duration::from_millis(300);
/// What every instance and task takes.
pub(super) const MEMORY_MB: u32 = 100;
const DOMAIN_TTL: Duration = Duration::from_secs(20);

/// What clients go by.
#[derive(Debug, Clone)]
pub(super) struct Wishes {
    pub(super) plan: Plan,
    /// How many instances there may be in all, so that they fit.
    pub(super) most_instances: u32,
    /// And that they nearly fill all there is.
    pub(super) tight: bool,
    pub(super) stop: CancellationToken,
    pub(super) clock: Arc<Drifting>,
}

/// Lets all clients do what they do, until they are told to stop and know what became of it all.
pub(super) async fn clients(desk: Arc<Desk>, wishes: Wishes, mut chance: Chance) {
    let asker = Arc::new(Asker { desk, hosts: wishes.plan.hosts, asked: AtomicU64::new(0) });
    let mut tasks = JoinSet::new();
    let client = |chance: Chance| {
        let (asker, wishes) = (Arc::clone(&asker), wishes.clone());
        Client { asker, wishes, chance }
    };
    if wishes.plan.apps {
        tend_apps(&mut tasks, &wishes, &mut chance, client);
    }
    if wishes.plan.jobs {
        for job in 0..=chance.below(if wishes.plan.modest { 1 } else { 4 }) {
            tasks.spawn(client(chance.fork()).tend_job(job));
        }
    }
    while tasks.join_next().await.is_some() {}
    asker.desk.end();
}

fn tend_apps(
    tasks: &mut JoinSet<()>,
    wishes: &Wishes,
    chance: &mut Chance,
    client: impl Fn(Chance) -> Client,
) {
    for domain in 0..DOMAINS {
        tasks.spawn(client(chance.fork()).tend_domain(domain));
    }
    let lrps = 2 + u32::from(chance.permille(500)) + u32::from(chance.permille(500));
    let each = (wishes.most_instances / lrps).max(1);
    for lrp in 0..lrps {
        tasks.spawn(client(chance.fork()).tend_lrp(lrp, each));
    }
    for task in 0..=chance.below(3) {
        tasks.spawn(client(chance.fork()).tend_task(task));
    }
    if wishes.plan.evacuations {
        tasks.spawn(client(chance.fork()).evacuate());
    }
}

const DOMAINS: u32 = 3;

fn domain(number: u32) -> Domain {
    Domain::new(format!("domain-{number}"))
}

/// Asks hosts until it knows what became of it.
#[derive(Debug)]
struct Asker {
    desk: Arc<Desk>,
    hosts: usize,
    asked: AtomicU64,
}

/// How one try went.
enum Try {
    Known(Result<Reply, Refusal>),
    /// Nothing was done.
    Undone,
    /// Nobody knows.
    Unsure,
}

impl Asker {
    async fn ask(&self, request: Request) -> Result<Reply, Refusal> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        self.desk.see(Seen::Wants(number, request.clone()));
        let mut unsure = false;
        let mut host = 0;
        let known = loop {
            match self.try_once(host, &request).await {
                Try::Known(known) => break known,
                Try::Undone => {}
                Try::Unsure => unsure = true,
            }
            host = (host + 1) % self.hosts;
            if host == 0 {
                tokio::time::sleep(PAUSE).await;
            }
        };
        if let Some(reply) = settled(&request, &known) {
            let request = named(request, &reply);
            self.desk.see(Seen::Fact(Fact::Acknowledged { request, reply }));
        }
        if unsure {
            tokio::time::sleep(LINGER).await;
        }
        self.desk.see(Seen::Knows(number));
        known
    }

    async fn try_once(&self, host: usize, request: &Request) -> Try {
        let ask = Ask::Request(Box::new(request.clone()));
        match self.desk.ask(Party::Host(host), ask, PATIENCE).await {
            Ok(Answer::Reply(reply)) => Try::Known(Ok(reply)),
            Ok(other) => unreachable!("answered in another kind: {other:?}"),
            Err(Failed::Declined(Declined::Refused(refusal))) => Try::Known(Err(refusal)),
            Err(
                Failed::NotLeading
                | Failed::Unreachable
                | Failed::Declined(Declined::Busy | Declined::ReadOnly(_)),
            ) => Try::Undone,
            Err(
                Failed::Refused(_)
                | Failed::Broken
                | Failed::Declined(Declined::Unsettled(_) | Declined::NotLeading),
            ) => Try::Unsure,
        }
    }
}

/// What a client may take for done: what is to be gone and is not there is gone.
fn settled(request: &Request, known: &Result<Reply, Refusal>) -> Option<Reply> {
    match known {
        Ok(reply) => Some(reply.clone()),
        Err(Refusal::NotFound { .. }) => {
            let removes = matches!(
                request,
                Request::RemoveDesired { .. }
                    | Request::DeleteTask { .. }
                    | Request::Job(JobRequest::Remove { .. })
            );
            removes.then_some(Reply::Done)
        }
        // Each run that is asked for has a name of its own: that it is there is what was asked for.
        Err(Refusal::Exists { .. }) => {
            matches!(request, Request::Job(JobRequest::Trigger { .. })).then_some(Reply::Done)
        }
        Err(Refusal::Invalid { .. } | Refusal::Version { .. } | Refusal::State { .. }) => None,
    }
}

/// The request with the name that the board has given to a task's container.
fn named(mut request: Request, reply: &Reply) -> Request {
    if let (Request::CreateTask { instance_guid, .. }, Reply::Task { task, .. }) =
        (&mut request, reply)
    {
        *instance_guid = task.instance_guid.clone();
    }
    request
}

/// One of those who want something.
pub(super) struct Client {
    asker: Arc<Asker>,
    pub(super) wishes: Wishes,
    pub(super) chance: Chance,
}

impl Client {
    /// Waits. False if it is to stop.
    pub(super) async fn rest(&mut self, least_ms: u64, most_ms: u64) -> bool {
        let (least, most) = (Duration::from_millis(least_ms), Duration::from_millis(most_ms));
        let wait = self.chance.between(least, most);
        tokio::select! {
            biased;
            () = self.wishes.stop.cancelled() => false,
            () = tokio::time::sleep(wait) => true,
        }
    }

    pub(super) async fn ask(&self, request: Request) -> Result<Reply, Refusal> {
        self.asker.ask(request).await
    }

    /// The first domain is fresh for ever, the second for as long as somebody says so, and where
    /// domains go stale, the third is never fresh.
    async fn tend_domain(mut self, number: u32) {
        let stale = self.wishes.plan.stale_domains;
        let ttl = (number == 1).then_some(DOMAIN_TTL);
        if number == 2 && stale {
            return;
        }
        loop {
            let request = Request::SetDomain { domain: domain(number), ttl };
            let _answered = self.ask(request).await;
            let Some(ttl) = ttl else { return };
            let ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
            let most = if stale { 3 * ms } else { ms / 2 };
            if !self.rest(ms / 4, most).await {
                return;
            }
        }
    }

    async fn tend_lrp(mut self, number: u32, most: u32) {
        let process_guid = ProcessGuid::new(format!("lrp-{number}"));
        let domain = domain(number % DOMAINS);
        let most = most.min(4);
        let crashing = self.wishes.plan.crashing_apps && number == 0;
        while self.rest(1, 4000).await {
            let told = if crashing { CRASH } else { SERVE };
            let mut lrp = DesiredLrp::new(process_guid.clone(), domain.clone(), program(told));
            lrp.instances = if self.wishes.tight { most } else { self.some(most) };
            (lrp.memory_mb, lrp.disk_mb) = (MEMORY_MB, 10);
            let _answered = self.ask(Request::Desire(Box::new(lrp))).await;
            for _ in 0..self.chance.below(5) {
                if !self.rest(500, 12_000).await {
                    return;
                }
                if self.wishes.plan.scaling {
                    let instances = Some(self.some(most + 1) - 1);
                    let update = DesiredUpdate { instances, ..DesiredUpdate::default() };
                    let process_guid = process_guid.clone();
                    let _answered = self.ask(Request::UpdateDesired { process_guid, update }).await;
                }
            }
            if !self.rest(3000, 25_000).await {
                return;
            }
            let process_guid = process_guid.clone();
            let _answered = self.ask(Request::RemoveDesired { process_guid }).await;
        }
    }

    fn some(&mut self, most: u32) -> u32 {
        1 + u32::try_from(self.chance.below(u64::from(most.max(1)))).unwrap_or(0)
    }

    async fn tend_task(mut self, number: u64) {
        let task_guid = TaskGuid::new(format!("task-{number}"));
        let mut most_ms = 6000;
        while self.rest(1, most_ms).await {
            // Now and then another one of the same name comes at once.
            most_ms = self.chance.pick(&[20, 6000]);
            let calls = self.chance.permille(500);
            let definition = Box::new(definition(&task_guid, calls));
            let instance_guid = InstanceGuid::new("");
            let _answered = self.ask(Request::CreateTask { definition, instance_guid }).await;
            if self.chance.permille(300) {
                if !self.rest(1, 8000).await {
                    return;
                }
                let _answered =
                    self.ask(Request::CancelTask { task_guid: task_guid.clone() }).await;
            }
            while !calls && self.rest(500, 8000).await {
                let resolve = Request::ResolveTask { task_guid: task_guid.clone() };
                match self.ask(resolve).await {
                    Err(Refusal::State { .. }) => {}
                    Ok(_) => {
                        let delete = Request::DeleteTask { task_guid: task_guid.clone() };
                        let _answered = self.ask(delete).await;
                        break;
                    }
                    Err(
                        Refusal::NotFound { .. }
                        | Refusal::Invalid { .. }
                        | Refusal::Exists { .. }
                        | Refusal::Version { .. },
                    ) => break,
                }
            }
        }
    }

    async fn evacuate(mut self) {
        while self.rest(5000, 20_000).await {
            let cells = self.wishes.plan.cells as u64;
            let cell = cell_id(usize::try_from(self.chance.below(cells)).unwrap_or(0));
            for host in 0..self.wishes.plan.hosts {
                let ask = Ask::Evacuate(cell.clone());
                let told = self.asker.desk.ask(Party::Host(host), ask, PATIENCE * 2).await;
                if told.is_ok() {
                    break;
                }
            }
            // One at a time: what moves must find room.
            if !self.rest(45_000, 50_000).await {
                return;
            }
        }
    }
}

fn program(told: &str) -> Action {
    let args = vec![told.to_owned()];
    Action::Run(Run { path: "/program".to_owned(), args, ..Run::default() })
}

fn definition(task_guid: &TaskGuid, calls: bool) -> TaskDefinition {
    TaskDefinition {
        task_guid: task_guid.clone(),
        domain: domain(0),
        rootfs: None,
        memory_mb: MEMORY_MB,
        disk_mb: 10,
        max_pids: 0,
        cpu_millis: 0,
        log_rate: 0,
        placement_tags: Vec::new(),
        env: Vec::new(),
        action: program(WORK),
        result_file: RESULT.to_owned(),
        completion_callback_url: if calls { "http://receiver".to_owned() } else { String::new() },
        annotation: String::new(),
    }
}
