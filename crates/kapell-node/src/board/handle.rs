//! The way to ask a board.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use kapell_api::v1::{CellRecords, CellView, Problem, RecordsWanted, Welcome};
use kapell_core::board::{
    ActualLrp, CellId, CellPresence, Effect, Event, InstanceGuid, LrpKey, Records, Refusal, Reply,
    Request, Resources, Settings, Task, TaskGuid, TaskState, shard_of,
};
use kapell_core::job::SchedulerNews;
use kapell_core::seams::{Clock, Ids, Timestamp};
use kapell_core::seat::Epoch;
use kapell_store::model::SHARDS;
use tokio::sync::{mpsc, oneshot};

use super::alarm::Alarm;
use super::callback;
use super::circles;
use super::hub::{EventId, Hub, Subscription};
use super::lanes::{Answer, Asked, Asker, Door, Tagged};
use super::meters::Meters;
use super::newsstand::Newsstand;
use super::orders::Order;
use super::presence::Presences;
use super::sheet::Sheet;
use super::sights::Sights;
use super::trouble::{ReadOnly, Trouble};
use crate::auctioneer::{Start, Starts};
use crate::elections::Tenure;
use crate::link::{CELL_ID_IN_USE, CellLink, LinkError};

/// How long a cell may take to take the word to evacuate.
const EVACUATE_LIMIT: Duration = Duration::from_secs(5);

/// A way to ask the board. Cheap to clone; of use for as long as its leader leads.
#[derive(Debug, Clone)]
pub struct Board {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) tenure: Tenure,
    pub(super) settings: Settings,
    pub(super) clock: Arc<dyn Clock>,
    /// The clock on the wall as it is, which may jump.
    pub(super) wall: Arc<dyn Clock>,
    pub(super) ids: Arc<dyn Ids>,
    pub(super) cells: Arc<dyn CellLink>,
    pub(super) sheets: Vec<RwLock<Sheet>>,
    pub(super) doors: Vec<Door>,
    pub(super) presences: Presences,
    pub(super) hub: Arc<Hub>,
    pub(super) alarm: Alarm,
    pub(super) starts: Starts,
    pub(super) orders: mpsc::Sender<Order>,
    pub(super) callbacks: mpsc::Sender<Box<Task>>,
    pub(super) meters: Meters,
    pub(super) trouble: Trouble,
    pub(super) scheduler: Newsstand,
    pub(super) circles: circles::Pending,
    pub(super) sights: Arc<Sights>,
}

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Declined {
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Too much is waiting already; nothing was decided.
    #[error("the board has too much to do: ask again")]
    Busy,
    /// The store takes no writes for now, and this was not decided; reads go on.
    #[error("read-only: the store does not take writes: {0}; nothing was done")]
    ReadOnly(String),
    /// The store takes no writes for now, and this is in a commit that is sent again and again.
    #[error("the store does not take writes: {0}; whether this was carried out is not known yet")]
    Unsettled(String),
    /// The seat is lost. Whether it was carried out is not known.
    #[error("this host does not lead any more")]
    NotLeading,
}

impl Board {
    pub(super) fn new(shared: Shared) -> Self {
        Self { shared: Arc::new(shared) }
    }

    pub fn epoch(&self) -> Epoch {
        self.shared.tenure.epoch()
    }

    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// The time by which it decides, which goes on when the clock on the wall jumps.
    pub fn now(&self) -> Timestamp {
        self.shared.clock.wall()
    }

    /// What the clock on the wall says: jobs go by it.
    pub fn wall(&self) -> Timestamp {
        self.shared.wall.wall()
    }

    /// Whether its leader still leads. Who does not shows nothing and decides nothing.
    pub fn may_act(&self) -> bool {
        self.shared.tenure.may_act()
    }

    /// A name for a container that no other ever had.
    pub fn draw_instance_guid(&self) -> InstanceGuid {
        InstanceGuid::drawn(self.shared.ids.draw(), self.shared.ids.draw())
    }

    /// Decides a request; answers when it is committed.
    pub async fn ask(&self, request: Request) -> Result<Reply, Declined> {
        match circles::kicking(&request) {
            Some(kicking) => self.ask_without_circle(kicking, request).await,
            None => self.ask_at_once(request).await,
        }
    }

    pub(super) fn pending_kicks(&self) -> &circles::Pending {
        &self.shared.circles
    }

    pub(super) async fn ask_at_once(&self, request: Request) -> Result<Reply, Declined> {
        let (answer, answered) = oneshot::channel();
        self.hand_in(request, Asker::One(answer))?;
        answered.await.unwrap_or(Err(Declined::NotLeading))
    }

    /// Asks without waiting: the answer comes over `to` with the same number, unless the request is declined at once.
    pub(crate) fn ask_tagged(
        &self,
        (tag, request): (u64, Request),
        to: &mpsc::UnboundedSender<Tagged>,
    ) -> Result<(), Declined> {
        self.hand_in(request, Asker::Many(tag, to.clone()))
    }

    fn hand_in(&self, request: Request, by: Asker) -> Result<(), Declined> {
        if let Some(ReadOnly { why, .. }) = self.read_only() {
            return Err(Declined::ReadOnly(why));
        }
        let door = self.door(&request);
        let taken = door.ask(Asked { request, answer: Some(by), inside: false });
        taken.inspect_err(|declined| {
            let busy = *declined == Declined::Busy;
            Meters::add(&self.shared.meters.busy, usize::from(busy));
        })
    }

    /// Why the store takes no writes, while that is so.
    pub fn read_only(&self) -> Option<ReadOnly> {
        self.shared.trouble.now()
    }

    /// Looks at the committed records of the shard where `partition` (a guid or a domain) lies.
    pub fn look<T>(&self, partition: &str, at: impl FnOnce(&Records) -> T) -> T {
        at(self.sheet(shard_of(partition, SHARDS)).records())
    }

    /// Looks at the committed records of each shard in turn.
    pub fn look_at_all(&self, mut at: impl FnMut(&Records)) {
        for shard in 0..SHARDS {
            at(self.sheet(shard).records());
        }
    }

    /// How much was found in the store that is no record.
    pub fn set_aside_count(&self) -> usize {
        (0..SHARDS).map(|shard| self.sheet(shard).aside()).sum()
    }

    /// A cell says that it is there. Refused if another cell is, by the same id.
    pub fn present(&self, presence: CellPresence) -> Result<Welcome, Problem> {
        let cell_id = presence.cell_id.clone();
        let now = self.shared.clock.now();
        let Some(news) = self.shared.presences.present(presence, now) else {
            return Err(id_in_use(&cell_id));
        };
        if news.changed {
            self.shared.starts.answered(&cell_id);
            self.shared.hub.publish([(Event::Cell { cell_id, present: true }, 0)]);
        }
        if news.room {
            self.shared.starts.room();
        }
        let ttl = self.shared.settings.presence_ttl.as_millis();
        Ok(Welcome { epoch: self.epoch(), ttl_ms: u64::try_from(ttl).unwrap_or(u64::MAX) })
    }

    /// A cell says that it goes.
    pub fn leave(&self, cell_id: &CellId) {
        if self.shared.presences.leave(cell_id) {
            self.lost([cell_id.clone()]);
        }
    }

    /// Tells of cells that are there no more, and has what they held looked after at once.
    pub(super) fn lost(&self, cells: impl IntoIterator<Item = CellId>) {
        let gone = |cell_id| (Event::Cell { cell_id, present: false }, 0);
        self.shared.hub.publish(cells.into_iter().map(gone));
        self.shared.alarm.cell_lost();
    }

    pub fn cell(&self, cell_id: &CellId) -> Option<CellPresence> {
        self.shared.presences.get(cell_id)
    }

    /// The cells that are there, and those that this leader still waits for, by id.
    pub fn cells(&self) -> Vec<CellView> {
        let now = self.shared.clock.now();
        let mut views = BTreeMap::new();
        for heard in self.shared.presences.heard() {
            let state = if heard.presence.evacuating { "evacuating" } else { "present" };
            let ago = u64::try_from(now.since(heard.at).as_millis()).unwrap_or(u64::MAX);
            let id = heard.presence.cell_id.clone();
            views.insert(id, self.view(heard.presence, state, Some(ago)));
        }
        for id in self.shared.presences.awaited() {
            let view = self.view(unheard(&id), "awaited", None);
            views.entry(id).or_insert(view);
        }
        views.into_values().collect()
    }

    pub(super) fn view(
        &self,
        presence: CellPresence,
        state: &str,
        heard_ms_ago: Option<u64>,
    ) -> CellView {
        let (mut lrps, mut tasks) = (0, 0);
        self.look_at_all(|records| {
            lrps += records.count_on(&presence.cell_id);
            let running = |task: &&Task| task.state == TaskState::Running;
            tasks += records.tasks_on(&presence.cell_id).filter(running).count();
        });
        let count = |count| u32::try_from(count).unwrap_or(u32::MAX);
        let (lrps, tasks) = (count(lrps), count(tasks));
        CellView { presence, state: state.to_owned(), heard_ms_ago, lrps, tasks }
    }

    /// Every record that a cell asks for or that names it.
    pub fn records(&self, cell_id: &CellId, wanted: &RecordsWanted) -> CellRecords {
        let mut lrps: [BTreeSet<&LrpKey>; SHARDS as usize] = Default::default();
        for key in &wanted.lrps {
            lrps[usize::from(shard_of(key.process_guid.as_str(), SHARDS))].insert(key);
        }
        let mut tasks: [BTreeSet<&TaskGuid>; SHARDS as usize] = Default::default();
        for guid in &wanted.tasks {
            tasks[usize::from(shard_of(guid.as_str(), SHARDS))].insert(guid);
        }
        let mut found = CellRecords { epoch: self.epoch(), ..CellRecords::default() };
        let elsewhere = |lrp: &&ActualLrp| lrp.cell_id.as_ref() != Some(cell_id);
        for ((shard, lrps), tasks) in (0..SHARDS).zip(lrps).zip(tasks) {
            let sheet = self.sheet(shard);
            let records = sheet.records();
            found.instances.extend(records.instances_on(cell_id).cloned());
            found.evacuating.extend(records.evacuating_on(cell_id).cloned());
            found.tasks.extend(records.tasks_on(cell_id).cloned());
            for key in lrps {
                found.instances.extend(records.instances.get(key).filter(elsewhere).cloned());
                found.evacuating.extend(records.evacuating.get(key).filter(elsewhere).cloned());
            }
            let others = tasks.into_iter().filter_map(|guid| records.tasks.get(guid));
            let others = others.filter(|task| task.cell_id.as_ref() != Some(cell_id));
            found.tasks.extend(others.cloned());
        }
        found
    }

    /// Tells a cell to evacuate.
    pub async fn evacuate(&self, cell_id: &CellId) -> Result<(), LinkError> {
        let Some(presence) = self.cell(cell_id) else {
            let message = format!("cell `{cell_id}` is not present: see the list of cells");
            let code = "not_found".to_owned();
            return Err(LinkError::Refused(Problem { code, message, details: ().into() }));
        };
        let told = self.shared.cells.evacuate(&presence, self.epoch());
        let told = tokio::time::timeout(EVACUATE_LIMIT, told).await.unwrap_or_else(|_| {
            let why = format!("cell `{cell_id}` did not answer within {EVACUATE_LIMIT:?}");
            Err(LinkError::NoAnswer(why))
        });
        if told.is_ok() {
            self.shared.presences.evacuating(cell_id);
        }
        told
    }

    /// How runs stand that are further than their records.
    pub fn sights(&self) -> &Arc<Sights> {
        &self.shared.sights
    }

    /// Tells of something that is not stored.
    pub(super) fn publish(&self, event: Event, weight: usize) {
        self.shared.hub.publish([(event, weight)]);
    }

    /// The id of the last event. Whoever reads it before looking has missed nothing after it.
    pub fn last_event(&self) -> EventId {
        self.shared.hub.last()
    }

    /// Everything after an event, or from now on.
    pub fn events(&self, after: Option<EventId>) -> Subscription {
        self.shared.hub.subscribe(after)
    }
}

/// What the board's own parts use.
impl Board {
    fn door(&self, request: &Request) -> &Door {
        &self.shared.doors[usize::from(shard_of(request.partition(), SHARDS))]
    }

    /// Asks without waiting for an answer. However much waits, it is not turned away.
    pub(crate) fn ask_itself(&self, request: Request) {
        // The seat is lost: the next leader finds it in convergence.
        drop(self.door(&request).ask_inside(Asked { request, answer: None, inside: true }));
    }

    /// Asks without being turned away.
    pub(crate) fn ask_inside(&self, request: Request) -> oneshot::Receiver<Answer> {
        let (answer, answered) = oneshot::channel();
        let door = self.door(&request);
        // The sender is dropped then, which is an answer too.
        drop(door.ask_inside(Asked { request, answer: Some(Asker::One(answer)), inside: true }));
        answered
    }

    /// Lets happen what follows from a commit.
    pub(super) fn perform(&self, effect: Effect) {
        match effect {
            Effect::Start { key } => self.shared.starts.add(Start::Lrp(key)),
            Effect::StartTask { task_guid } => self.shared.starts.add(Start::Task(task_guid)),
            Effect::Stop { key, instance } => self.order(Order::Stop { key, instance }),
            Effect::CancelTask { task_guid, instance } => {
                self.order(Order::Cancel { task_guid, instance });
            }
            Effect::Next(request) => self.ask_itself(request),
            Effect::CallBack { task } => {
                if self.shared.callbacks.try_send(task).is_err() {
                    Meters::add(&self.shared.meters.callbacks_failed, 1);
                }
            }
            Effect::Untold { task } => callback::untold(self, &task),
            Effect::Scheduler(news) => self.shared.scheduler.put(news),
        }
    }

    /// What finds no place is made up for by convergence and by the cell's own poll.
    fn order(&self, order: Order) {
        if self.shared.orders.try_send(order).is_err() {
            Meters::add(&self.shared.meters.orders_failed, 1);
        }
    }

    pub(super) fn sheet(&self, shard: u16) -> RwLockReadGuard<'_, Sheet> {
        let sheet = &self.shared.sheets[usize::from(shard)];
        sheet.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// For the keeper of the shard only.
    pub(super) fn sheet_to_change(&self, shard: u16) -> RwLockWriteGuard<'_, Sheet> {
        let sheet = &self.shared.sheets[usize::from(shard)];
        sheet.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tenure(&self) -> &Tenure {
        &self.shared.tenure
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        self.shared.clock.as_ref()
    }

    pub(crate) fn link(&self) -> &Arc<dyn CellLink> {
        &self.shared.cells
    }

    pub(super) fn presences(&self) -> &Presences {
        &self.shared.presences
    }

    /// The cells that may be given work.
    pub(crate) fn takers(&self) -> Vec<CellPresence> {
        let heard = self.shared.presences.heard();
        heard.into_iter().map(|heard| heard.presence).filter(|cell| !cell.evacuating).collect()
    }

    /// Whether cells may still come that were there before this leader.
    pub(crate) fn awaits_cells(&self) -> bool {
        self.shared.presences.in_grace(self.shared.clock.now())
    }

    pub(super) fn hub(&self) -> &Hub {
        &self.shared.hub
    }

    pub(super) fn alarm(&self) -> &Alarm {
        &self.shared.alarm
    }

    pub(crate) fn starts(&self) -> &Starts {
        &self.shared.starts
    }

    pub(crate) fn meters(&self) -> &Meters {
        &self.shared.meters
    }

    /// What the scheduler is told, from the beginning of this leader on. It is handed out once; later there is none.
    pub fn scheduler_news(&self) -> Option<mpsc::UnboundedReceiver<SchedulerNews>> {
        self.shared.scheduler.take()
    }

    pub(super) fn trouble(&self) -> &Trouble {
        &self.shared.trouble
    }

    /// How many requests wait: those of others, and the board's own.
    pub(super) fn waiting(&self) -> (usize, usize) {
        let waiting = self.shared.doors.iter().map(Door::waiting);
        waiting.fold((0, 0), |sum, door| (sum.0 + door.0, sum.1 + door.1))
    }
}

fn id_in_use(cell_id: &CellId) -> Problem {
    let message = format!(
        "another cell with the id `{cell_id}` is present: give this one another id with --id and a new \
         --dir, or stop the other one"
    );
    Problem { code: CELL_ID_IN_USE.to_owned(), message, details: ().into() }
}

/// What is known of a cell that has not been heard of.
pub(super) fn unheard(cell_id: &CellId) -> CellPresence {
    CellPresence {
        home: String::new(),
        cell_id: cell_id.clone(),
        url: String::new(),
        zone: String::new(),
        capacity: Resources::default(),
        rootfs_schemes: Vec::new(),
        placement_tags: Vec::new(),
        optional_placement_tags: Vec::new(),
        evacuating: false,
        version: String::new(),
    }
}
