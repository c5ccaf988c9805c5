//! The store and its formats, from outside.
mod amplification;
mod crash;
mod damage;
mod formats;
mod odd_disk;
mod opening;
mod rebuild;
mod reserve;
mod shrink;
mod support;
mod threads;
mod work;
