//! The whole engine on a simulated disk: seeded workloads, crashes at any write, and a model that
//! says what must be found again. One thread, one clock, one seed: what fails once fails again.
#![forbid(unsafe_code)]
mod backups;
mod lie;
mod model;
mod op;
mod play;
mod scenario;
mod sessions;
mod setup;
mod shrink;
mod verify;

pub use lie::{Lie, LyingVolume};
pub use model::{Contents, Digest, Model};
pub use op::{Generator, Op, Value, key_bytes};
pub use play::{Ending, Player};
pub use scenario::{Crash, Scenario, Tally, Tried};
pub use sessions::{
    Coverage, Draw, How, Ledger, Refusal, Row, SessionPlayer, SessionScenario, Turn,
};
pub use setup::{Planted, Setup};
pub use shrink::{Shorten, shrink};
pub use verify::{audit, contents, recover, window};
