mod conformance;
mod ends;
mod logs;
mod rig;
mod stops;
