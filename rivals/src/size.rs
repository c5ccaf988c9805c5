//! What a store's files occupy, and copies of them.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result};

use crate::cell::Size;
use crate::stores::Known;

/// Bytes of a block in `st_blocks`.
const BLOCK_BYTES: u64 = 512;

/// The blocks of all files in `dir` and below. A file that is gone meanwhile occupies nothing.
pub fn of(known: &Known, dir: &Path) -> Size {
    let mut size = Size::default();
    add(known, dir, &mut size);
    size.greatest = size.data + size.log;
    size
}

fn add(known: &Known, dir: &Path, size: &mut Size) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let Ok(about) = entry.metadata() else { continue };
        if about.is_dir() {
            add(known, &entry.path(), size);
            continue;
        }
        let bytes = about.blocks() * BLOCK_BYTES;
        match (known.is_log)(&entry.file_name().to_string_lossy()) {
            true => size.log += bytes,
            false => size.data += bytes,
        }
    }
}

/// Copies a closed store; holes stay holes.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    // `cp` keeps holes and makes clones where it can. It must make no holes of its own: zeros that
    // a store wrote beforehand, as Weir its log, would be allocated anew while it is measured.
    let done = std::process::Command::new("cp")
        .args(["-r", "--reflink=auto"])
        .args([from, to])
        .status()
        .context("running cp")?;
    anyhow::ensure!(done.success(), "cp {} {}: {done}", from.display(), to.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores;

    #[test]
    fn logs_count_apart_from_data_and_holes_take_nothing() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("deep")).unwrap();
        std::fs::write(dir.path().join("deep/1.log"), vec![1; 8192]).unwrap();
        std::fs::write(dir.path().join("1.sst"), vec![1; 4096]).unwrap();
        std::fs::File::create(dir.path().join("hole")).unwrap().set_len(1 << 20).unwrap();
        let known = stores::find("rocksdb").unwrap();
        assert_eq!(of(known, dir.path()), Size { data: 4096, log: 8192, greatest: 12288 });
        let other = dir.path().with_extension("copy");
        copy(dir.path(), &other).unwrap();
        assert_eq!(of(known, &other).log, 8192);
        std::fs::remove_dir_all(&other).unwrap();
    }
}
