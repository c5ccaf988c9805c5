//! What the tests share.
use std::ops::ControlFlow;
use std::sync::Arc;
use weir_base::{DbId, Lsn};
use weir_device::Volume;
use weir_redo::{Log, LogConfig, RedoError, ScanEnd, ScanOptions, Span, scan};

pub(crate) const DB: DbId = DbId(0x5eed_5eed_0000_0001);

pub(crate) fn config(capacity_bytes: u64) -> LogConfig {
    LogConfig { db: DB, capacity_bytes, buffer_bytes: 64 << 10 }
}

/// A body that can be recognised: its number, then bytes that follow from it.
pub(crate) fn body(number: u64, len: usize) -> Vec<u8> {
    let mut body = number.to_le_bytes().to_vec();
    body.extend((8..len.max(8)).map(|i| (number as usize * 31 + i) as u8));
    body
}

pub(crate) fn number_of(body: &[u8]) -> u64 {
    u64::from_le_bytes(body[..8].try_into().expect("eight bytes"))
}

/// Places and bodies of groups.
pub(crate) type Groups = Vec<(Span, Vec<u8>)>;

/// All groups from `from` on.
pub(crate) fn read_all(volume: &dyn Volume, from: Lsn) -> Result<(Groups, ScanEnd), RedoError> {
    let mut groups = Vec::new();
    let end = scan(volume, DB, from, ScanOptions::default(), |span, body| {
        groups.push((span, body.to_vec()));
        ControlFlow::Continue(())
    })?;
    Ok((groups, end))
}

/// Scans and goes on.
pub(crate) fn reopen(volume: Arc<dyn Volume>, capacity: u64, from: Lsn) -> Result<Log, RedoError> {
    let (_, end) = read_all(&*volume, from)?;
    Log::resume(volume, config(capacity), end)
}
