//! Tables on simulated disks.
mod again;
mod archive;
mod basics;
mod codecs;
mod columns;
mod copy;
mod crash;
mod export;
mod fixtures;
mod long;
mod model;
mod numbers;
mod online;
mod raw;
mod rewrite;
mod several;
mod support;
