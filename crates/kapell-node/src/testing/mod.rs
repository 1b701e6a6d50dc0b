//! What it takes to test elections over a store, and those who build on elections.

mod cases;
mod clock;
mod faulty;
mod killer;
mod mock;
mod steps;
mod suite;
mod wait;
mod world;

pub use clock::{Stoppable, TokioClock};
pub use faulty::{Call, Fault, Faulty};
pub use killer::KillerLog;
pub use mock::TtlStorageMock;
pub use steps::Steps;
pub use suite::{Speed, Stores, elections_test_suite};
pub use wait::{eventually, for_as_long, within};
pub use world::{Member, World};
