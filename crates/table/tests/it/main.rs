//! Tables on simulated disks.
mod basics;
mod crash;
mod model;
mod online;
mod raw;
mod support;
