//! The protocol of segments, chunks, map checkpoints and cleaning as a model without bytes, run at
//! random and crashed at random, also in recovery. Same seed, same run. With a rule broken it must
//! fail; as it is it must not. `WEIR_MODEL_RUNS=1000000` runs as many of the sound protocol (and
//! names the seed that fails); the tests of a change run some thousands.
mod append;
mod background;
mod disk;
mod engine;
mod recover;
mod rules;

use engine::Engine;
use rules::{FLAWS, Flaw};

/// Runs of the sound protocol in the tests of a change.
const RUNS: u64 = 3_000;
/// Runs within which a broken rule must fail.
const RUNS_TO_FAIL: u64 = 4_000;
const STEPS: usize = 1_000;

/// One run; returns how many crashes it had.
fn run(seed: u64, flaw: Flaw) -> Result<u64, String> {
    let mut engine = Engine::new(seed, flaw);
    let crashes_from = 100 - engine.habits.crash_of_100;
    for _ in 0..STEPS {
        match engine.dice.usize(..100) {
            step if step >= crashes_from => engine.crash()?,
            0..38 => engine.change_page(),
            38..55 => engine.flush(),
            55..59 => engine.write_free_records(),
            59..66 => engine.clean_pick(),
            66..72 => engine.clean_write(),
            72..78 => engine.sync(),
            78..83 => engine.publish(false),
            83..85 => engine.publish(true),
            85..87 => engine.advance_log(),
            87..89 => engine.free_segments(),
            _ => engine.step_checkpoint()?,
        }
    }
    engine.crash()?;
    Ok(engine.crashes)
}

#[test]
fn the_protocol_survives_every_crash() {
    let wanted = std::env::var("WEIR_MODEL_RUNS").ok().and_then(|runs| runs.parse().ok());
    let runs: u64 = wanted.unwrap_or(RUNS);
    let mut crashes = 0;
    for seed in 0..runs {
        crashes += run(seed, Flaw::None).unwrap_or_else(|lost| panic!("seed {seed}: {lost}"));
    }
    assert!(crashes > runs * 10, "{crashes} crashes in {runs} runs");
}

#[test]
fn every_broken_rule_loses_pages() {
    for flaw in FLAWS {
        let is_found = |seed: &u64| {
            // Some flaws break an assertion of the model before they lose a page.
            std::panic::catch_unwind(|| run(*seed, flaw)).map_or(true, |found| found.is_err())
        };
        assert!((0..RUNS_TO_FAIL).any(|seed| is_found(&seed)), "{flaw:?} fails nothing");
    }
}
