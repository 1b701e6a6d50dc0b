mod conformance;
mod logs;
mod rig;
mod stops;
