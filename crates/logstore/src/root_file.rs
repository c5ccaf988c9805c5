//! The file of roots: two slots, each with two copies of one root, so that neither a torn write nor
//! one damaged place leaves the store with an older root than the newest that was durable.
use std::sync::Arc;

use weir_base::{AlignedBuf, DbId};
use weir_device::{BlockFile, Volume, WriteOp};

use crate::error::StoreError;
use crate::format::{ROOT_SLOT_BYTES, Root, RootSlot};

/// The file's name.
pub const ROOT_FILE: &str = "segments.root";
const COPIES: usize = 2;
const SLOTS: usize = 2;

/// The file, and the root that is durable in it.
pub(crate) struct RootFile {
    db: DbId,
    file: Arc<dyn BlockFile>,
    pub(crate) durable: Root,
}

impl RootFile {
    /// Makes the file, with `first` in it.
    pub(crate) fn create(
        volume: &Arc<dyn Volume>,
        db: DbId,
        first: Root,
    ) -> Result<RootFile, StoreError> {
        let failed = |e| StoreError::device(format!("creating '{ROOT_FILE}'"), e);
        let bytes = (SLOTS * COPIES * ROOT_SLOT_BYTES) as u64;
        let file = volume.create(ROOT_FILE, bytes).map_err(failed)?;
        file.sync().map_err(failed)?;
        let mut made = RootFile { db, file, durable: first.clone() };
        made.write(first)?;
        Ok(made)
    }

    /// Opens the file. What is found is made durable: it may be what a process wrote that ended
    /// before its sync.
    pub(crate) fn open(volume: &Arc<dyn Volume>, db: DbId) -> Result<RootFile, StoreError> {
        let failed = |e| StoreError::device(format!("reading '{ROOT_FILE}'"), e);
        let file = volume.open(ROOT_FILE).map_err(failed)?;
        file.sync().map_err(failed)?;
        let mut buf = AlignedBuf::zeroed(ROOT_SLOT_BYTES);
        let (mut newest, mut other): (Option<Root>, _) = (None, None);
        for copy in 0..SLOTS * COPIES {
            let offset = (copy * ROOT_SLOT_BYTES) as u64;
            if offset + ROOT_SLOT_BYTES as u64 > file.len() {
                break;
            }
            // A place that cannot be read is one that is damaged: the other copy may be whole.
            if file.read_at(offset, &mut buf).is_err() {
                continue;
            }
            match Root::parse(db, &buf) {
                RootSlot::Good(root) => {
                    if newest.as_ref().is_none_or(|n| n.generation < root.generation) {
                        newest = Some(root);
                    }
                }
                RootSlot::OtherStore(found) => {
                    other = Some(StoreError::OtherStore { expected: db, found });
                }
                RootSlot::OtherFormat(found) => other = Some(StoreError::OtherFormat(found)),
                RootSlot::None => {}
            }
        }
        match (newest, other) {
            (_, Some(other)) => Err(other),
            (Some(durable), None) => Ok(RootFile { db, file, durable }),
            (None, None) => Err(StoreError::Damaged {
                what: "every copy of the root".to_owned(),
                file: ROOT_FILE,
                offset: 0,
                cause: "none is a root as it was written",
            }),
        }
    }

    /// Writes the next root, of the generation after the durable one, and makes it durable.
    pub(crate) fn write(&mut self, mut root: Root) -> Result<(), StoreError> {
        root.generation = self.durable.generation + 1;
        let len = Root::bytes(root.index.len(), root.scan.len());
        if len > ROOT_SLOT_BYTES {
            return Err(StoreError::Config("the root has no room for more"));
        }
        let mut bytes = AlignedBuf::zeroed(len);
        root.encode(self.db, &mut bytes);
        let slot = (root.generation % SLOTS as u64) as usize * COPIES;
        let op = |copy: usize| {
            let offset = ((slot + copy) * ROOT_SLOT_BYTES) as u64;
            WriteOp { offset, buf: &bytes }
        };
        let ops: Vec<WriteOp<'_>> = (0..COPIES).map(op).collect();
        let failed = |e| StoreError::device(format!("writing '{ROOT_FILE}'"), e);
        self.file.write_many(&ops).map_err(failed)?;
        self.file.sync().map_err(failed)?;
        self.durable = root;
        Ok(())
    }
}
