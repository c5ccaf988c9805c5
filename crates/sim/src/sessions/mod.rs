//! Several sessions that take turns on one database: transactions at every level of isolation,
//! their reads, conflicts, savepoints and ends all foretold by a model; and crashes.
mod changes;
mod coverage;
mod definitions;
mod draw;
mod ends;
mod ledger;
mod play;
mod prepared;
mod reads;
mod scenario;
mod turn;

pub use coverage::Coverage;
pub use draw::Draw;
pub use ledger::{Ledger, Refusal};
pub use play::SessionPlayer;
pub use scenario::SessionScenario;
pub use turn::{How, Row, Turn};
