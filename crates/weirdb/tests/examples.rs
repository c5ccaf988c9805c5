//! Each example program runs, and what it asserts holds.
#[path = "../examples/backup.rs"]
mod backup;
#[path = "../examples/counters.rs"]
mod counters;
#[path = "../examples/http_service.rs"]
mod http_service;
#[path = "../examples/job_queue.rs"]
mod job_queue;
#[path = "../examples/key_value.rs"]
mod key_value;
#[path = "../examples/pipeline.rs"]
mod pipeline;
#[path = "../examples/secondary_index.rs"]
mod secondary_index;
#[path = "../examples/time_series.rs"]
mod time_series;
#[path = "../examples/two_phase.rs"]
mod two_phase;
#[path = "../examples/typed.rs"]
mod typed;

/// A test for each.
macro_rules! run {
    ($($name:ident)*) => {
        mod runs {$(
            #[test]
            fn $name() {
                super::$name::main().expect("it ran");
            }
        )*}

        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

run! {
    backup counters http_service job_queue key_value pipeline
    secondary_index time_series two_phase typed
}

#[test]
fn none_is_missing() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    let files = std::fs::read_dir(dir).expect("listed").map(|e| e.expect("listed").file_name());
    let mut files: Vec<_> = files.map(|name| name.to_string_lossy().replace(".rs", "")).collect();
    files.sort();
    assert_eq!(files, NAMES);
}
