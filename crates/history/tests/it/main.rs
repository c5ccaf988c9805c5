//! Tests of the whole: planted anomalies are found and named, clean histories pass, scripts and
//! random histories run on toy stores that keep their promises and on some that do not.
mod exact;
mod page;
mod planted;
mod random;
mod scripts;
mod serial;
mod toy;
