//! Tables on simulated disks.
mod again;
mod basics;
mod copy;
mod crash;
mod long;
mod model;
mod numbers;
mod online;
mod raw;
mod support;
