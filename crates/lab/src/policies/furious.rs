//! InnoDB of MySQL 4.0: hardly anything is written until the log is nearly full. Then the user
//! threads write whatever it takes.
use super::master::{Due, MasterState, rest, ten_seconds, too_many_dirty, users};
use super::{Knobs, Limits};
use weir::lab::{Look, Orders};

/// User threads first, then the master thread.
pub fn furious(knobs: &Knobs, state: &mut MasterState, look: &Look<'_>) -> Orders {
    let limits = Limits::classic(look.log_bytes, look.seen.page_bytes, knobs.threads);
    if let Some(orders) = users(knobs, &limits, look) {
        return orders;
    }
    match state.due(look.seen.now_micros) {
        Due::Nothing => rest(knobs, &limits),
        Due::Second => {
            let rest = rest(knobs, &limits);
            too_many_dirty(knobs, &limits, state, look).unwrap_or(rest)
        }
        Due::TenSeconds => ten_seconds(knobs, &limits, look),
    }
}
