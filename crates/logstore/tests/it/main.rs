//! The store and its formats, from outside.
mod amplification;
mod crash;
mod damage;
mod formats;
mod support;
mod threads;
mod work;
