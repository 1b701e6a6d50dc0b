//! What parties say to each other.

use std::fmt;

use kapell_api::v1::{
    Cancel, CellRecords, Problem, RecordsWanted, ReportAnswer, Stop, Welcome, Work, WorkAnswer,
};
use kapell_core::board::request::Report;
use kapell_core::board::{CellId, CellPresence, CellState, Reply, Request};
use kapell_core::job::JobRequest;
use kapell_core::seat::Epoch;
use kapell_node::board::Declined;
use kapell_node::link::LinkError;
use tokio::sync::oneshot;

use super::jobs::yard::YardAsk;

use crate::parts::link::Letter;

/// Whoever sends and receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Party {
    Host(usize),
    Cell(usize),
    /// Everybody who wants something of the platform.
    Client,
    /// Whoever takes completion callbacks.
    Receiver,
    Store,
    /// The machine of a host, for that host alone.
    Yard(usize),
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(at) => write!(f, "host{at}"),
            Self::Cell(at) => write!(f, "cell{at}"),
            Self::Client => f.write_str("client"),
            Self::Receiver => f.write_str("receiver"),
            Self::Store => f.write_str("store"),
            Self::Yard(at) => write!(f, "machine{at}"),
        }
    }
}

/// What is asked of another.
#[derive(Debug, Clone)]
pub(super) enum Ask {
    // Of hosts.
    Present(Box<CellPresence>),
    Leave(CellId),
    Reports(CellId, Vec<Report>),
    Records(CellId, RecordsWanted),
    Request(Box<Request>),
    Evacuate(CellId),
    // Of cells.
    State(Epoch),
    Work(Epoch, Box<Work>),
    Stop(Epoch, Stop),
    Cancel(Epoch, Cancel),
    EvacuateNow(Epoch),
    // Of the receiver.
    Call(Vec<u8>),
    // Of the host's own machine.
    Yard(YardAsk),
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Present(presence) => write!(f, "present evacuating={}", presence.evacuating),
            Self::Leave(_) => f.write_str("leave"),
            Self::Reports(_, reports) => {
                f.write_str("reports")?;
                reports.iter().try_for_each(|report| write!(f, " {report:?}"))
            }
            Self::Records(..) => f.write_str("records"),
            Self::Request(request) => write!(f, "{}", Brief(request)),
            Self::Evacuate(cell) => write!(f, "evacuate {cell}"),
            Self::State(epoch) => write!(f, "state e{epoch}"),
            Self::Work(epoch, work) => {
                write!(f, "work e{epoch}")?;
                for lrp in &work.lrps {
                    write!(f, " {}/{}", lrp.desired.process_guid, lrp.index)?;
                }
                work.tasks.iter().try_for_each(|task| {
                    write!(f, " {} as {}", task.definition.task_guid, task.instance_guid)
                })
            }
            Self::Stop(epoch, stop) => {
                write!(f, "stop e{epoch} {} {}", stop.key, stop.instance_guid)
            }
            Self::Cancel(epoch, cancel) => {
                write!(f, "cancel e{epoch} {} {}", cancel.task_guid, cancel.instance_guid)
            }
            Self::EvacuateNow(epoch) => write!(f, "evacuate e{epoch}"),
            Self::Call(_) => f.write_str("call"),
            Self::Yard(ask) => write!(f, "{ask:?}"),
        }
    }
}

/// A request without what says nothing in a trace.
pub(super) struct Brief<'a>(pub(super) &'a Request);

impl fmt::Display for Brief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Request::Desire(lrp) = self.0 {
            return write!(f, "desire {} x{} in {}", lrp.process_guid, lrp.instances, lrp.domain);
        }
        if let Request::CreateTask { definition, .. } = self.0 {
            let calls = !definition.completion_callback_url.is_empty();
            return write!(f, "create {} callback={calls}", definition.task_guid);
        }
        if let Request::Job(JobRequest::Apply { definition: it }) = self.0 {
            let (id, schedule, overlap) = (&it.job_id, &it.schedule, it.overlap.name());
            return write!(f, "apply {id} {schedule:?} {overlap} suspend={}", it.suspend);
        }
        write!(f, "{:?}", self.0)
    }
}

#[derive(Debug, Clone)]
pub(super) enum Answer {
    Nothing,
    Welcome(Welcome),
    Reports(Vec<ReportAnswer>),
    Records(CellRecords),
    Reply(Reply),
    State(Box<CellState>),
    Work(WorkAnswer),
    Status(u16),
}

/// Why there is no answer.
#[derive(Debug, Clone)]
pub(super) enum Failed {
    /// Nothing was done: that host leads nothing.
    NotLeading,
    /// Nothing was done: nobody listens there.
    Unreachable,
    Refused(Problem),
    Declined(Declined),
    /// Nobody knows what became of it.
    Broken,
}

impl From<LinkError> for Failed {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::Refused(problem) => Self::Refused(problem),
            LinkError::NoAnswer(_) => Self::Broken,
        }
    }
}

impl From<Failed> for LinkError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Refused(problem) => Self::Refused(problem),
            Failed::NotLeading => Self::NoAnswer("it does not lead".to_owned()),
            Failed::Unreachable => Self::NoAnswer("nobody listens there".to_owned()),
            Failed::Declined(why) => Self::NoAnswer(why.to_string()),
            Failed::Broken => Self::NoAnswer("the connection broke".to_owned()),
        }
    }
}

pub(super) type Answered = Result<Answer, Failed>;
pub(super) type ReplyTo = oneshot::Sender<Answered>;

/// What a process puts into its outbox.
#[derive(Debug)]
pub(super) enum Mail {
    Store(Letter),
    Ask {
        to: Party,
        ask: Ask,
        reply: ReplyTo,
    },
    /// The answer to a call that came in, if anybody waits for this one.
    Answer {
        call: Option<u64>,
        answer: Answered,
    },
}
