use shuttle::rand::{Rng as _, thread_rng};

/// What the people and things around a conductor are going to do, drawn by the scheduler: a
/// schedule that is replayed replays its script too.
#[derive(Debug, Clone)]
pub(super) struct Script {
    pub(super) acquire: Acquire,
    pub(super) raise: Raise,
    pub(super) services: Vec<Act>,
    /// The seat is lost at some time after it was won.
    pub(super) loss: bool,
    /// The launch is dropped at some time.
    pub(super) dropped: bool,
    /// How many shut it down, each at some time.
    pub(super) callers: usize,
    /// The time for stopping may run out.
    pub(super) limit: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Acquire {
    Wins,
    Refused,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Raise {
    Done,
    /// An error or two, then done.
    Late,
    Fenced,
    Broken,
    /// Done, but the store was not filled to the end.
    Unfinished,
    Never,
}

/// What one service does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Act {
    pub(super) start: Start,
    pub(super) end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    Well,
    Fails,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// When it is told to.
    Told,
    /// Some time after it is told to.
    Slowly,
    /// By itself, as if it were done.
    Early,
    Fails,
    /// Not at all.
    Never,
}

impl Script {
    pub(super) fn draw() -> Self {
        let mut rng = thread_rng();
        let acquire = match rng.gen_range(0..10) {
            0 => Acquire::Refused,
            1 => Acquire::Never,
            _ => Acquire::Wins,
        };
        let raise = match rng.gen_range(0..12) {
            0 => Raise::Late,
            1 => Raise::Fenced,
            2 => Raise::Broken,
            3 => Raise::Never,
            4 => Raise::Unfinished,
            _ => Raise::Done,
        };
        let services = (0..rng.gen_range(0..4)).map(|_| Act::draw()).collect::<Vec<_>>();
        let stuck = services.iter().any(|act| act.end == End::Never);
        Self {
            acquire,
            raise,
            loss: rng.gen_range(0..2) == 0,
            dropped: rng.gen_range(0..4) == 0,
            callers: rng.gen_range(1..4),
            limit: stuck || rng.gen_range(0..8) == 0,
            services,
        }
    }
}

impl Act {
    fn draw() -> Self {
        let mut rng = thread_rng();
        let start = match rng.gen_range(0..10) {
            0 => Start::Fails,
            1 => Start::Never,
            _ => Start::Well,
        };
        let end = match rng.gen_range(0..16) {
            0 => End::Early,
            1 => End::Fails,
            2 => End::Never,
            3..=8 => End::Slowly,
            _ => End::Told,
        };
        Self { start, end }
    }
}

/// Some time goes by.
pub(super) async fn a_while() {
    for _ in 0..thread_rng().gen_range(0..6) {
        shuttle::future::yield_now().await;
    }
}
