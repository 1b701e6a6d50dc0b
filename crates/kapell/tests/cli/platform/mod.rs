//! `kapell up`, hosts and cells, each test with real processes.

mod browser;
mod fleet;
mod kills;
mod life;
mod page;
mod site;
mod tasks;

use site::Site;
