//! A file of what was acknowledged, for tests that kill the process: it lives in the kernel's page
//! cache, so it survives `kill -9` (not a power cut), and it is written after the acknowledgement,
//! so it never claims too much (BENCH-2).
//!
//! Records of 16 bytes: key (8, big-endian), version (4, little-endian), tree (1), checksum (3).
use crate::options::WorkloadKind;
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const RECORD_BYTES: usize = 16;
const TREE_ROWS: u8 = 1;
const TREE_INSERTS: u8 = 2;
const TREE_ORDERS: u8 = 3;

/// Appends acknowledgements, from many threads.
pub struct AckFile {
    file: File,
    path: PathBuf,
}

impl AckFile {
    /// Whether [`AckFile::open`] would take what is there, if anything is. Makes nothing.
    ///
    /// # Errors
    /// When a file is there that cannot be read, or is foreign.
    pub fn look(path: &Path) -> Result<()> {
        match File::open(path) {
            Ok(file) => must_be_ours(&file, path),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(e) => {
                Err(e).with_context(|| format!("cannot open the ack file {}", path.display()))
            }
        }
    }

    /// Opens the file at its end, making it if need be: a second run adds to what the first said.
    ///
    /// # Errors
    /// When the file cannot be opened for appending, or is foreign.
    pub fn open(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().create(true).read(true).append(true).open(path);
        let file = file.with_context(|| format!("cannot open the ack file {}", path.display()))?;
        must_be_ours(&file, path)?;
        Ok(AckFile { file, path: path.to_owned() })
    }

    /// Notes one acknowledged change. One `write` in append mode: the kernel keeps records whole
    /// and apart, whatever the number of threads.
    pub(crate) fn note(&self, workload: WorkloadKind, key: u64, version: u32) -> Result<()> {
        let tree = match workload {
            WorkloadKind::Insert => TREE_INSERTS,
            WorkloadKind::Tpcc => TREE_ORDERS,
            _ => TREE_ROWS,
        };
        let written = (&self.file).write(&encode(key, version, tree));
        match written.with_context(|| format!("cannot write {}", self.path.display()))? {
            RECORD_BYTES => Ok(()),
            n => bail!("{}: only {n} bytes of a record could be written", self.path.display()),
        }
    }
}

fn must_be_ours(file: &File, path: &Path) -> Result<()> {
    ensure!(
        is_ours(file).with_context(|| format!("cannot read {}", path.display()))?,
        "{} is there and is no ack file; choose another name",
        path.display()
    );
    Ok(())
}

/// Whether there is nothing in the file yet, or it begins with a record.
fn is_ours(file: &File) -> std::io::Result<bool> {
    let mut first = [0; RECORD_BYTES];
    let len = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX).min(RECORD_BYTES);
    file.read_exact_at(&mut first[..len], 0)?;
    Ok(len == 0 || len == RECORD_BYTES && decode(&first).is_some())
}

/// Key, version and tree; `None` when it is no record.
fn decode(record: &[u8; RECORD_BYTES]) -> Option<(u64, u32, u8)> {
    let key = u64::from_be_bytes(record[..8].try_into().ok()?);
    let version = u32::from_le_bytes(record[8..12].try_into().ok()?);
    (encode(key, version, record[12]) == *record).then_some((key, version, record[12]))
}

fn encode(key: u64, version: u32, tree: u8) -> [u8; RECORD_BYTES] {
    let mut record = [0; RECORD_BYTES];
    record[..8].copy_from_slice(&key.to_be_bytes());
    record[8..12].copy_from_slice(&version.to_le_bytes());
    record[12] = tree;
    let sum = weir_base::checksum(&record[..13]).to_le_bytes();
    record[13..].copy_from_slice(&sum[..3]);
    record
}

/// What an ack file says: the last acknowledged version of each key.
#[derive(Debug, Default, PartialEq)]
pub struct Acknowledged {
    /// Keys of the tree of rows.
    pub rows: HashMap<u64, u32>,
    /// Keys of the tree of inserts.
    pub inserts: HashMap<u64, u32>,
    /// Orders of TPC-C: warehouse, district (one byte) and number (four) as one.
    pub orders: HashMap<u64, u32>,
    /// How many records there were.
    pub records: u64,
}

impl Acknowledged {
    /// Reads an ack file. A record cut off at the end (killed within the write) is no claim.
    ///
    /// # Errors
    /// When the file cannot be read or holds something else.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path)
            .with_context(|| format!("cannot read the ack file {}", path.display()))?;
        let mut all = Acknowledged::default();
        for (i, record) in bytes.as_chunks::<RECORD_BYTES>().0.iter().enumerate() {
            let wrong =
                || anyhow!("{}: byte {} begins no record", path.display(), i * RECORD_BYTES);
            let (key, version, tree) = decode(record).ok_or_else(wrong)?;
            let tree = match tree {
                TREE_ROWS => &mut all.rows,
                TREE_INSERTS => &mut all.inserts,
                TREE_ORDERS => &mut all.orders,
                _ => return Err(wrong()),
            };
            let last = tree.entry(key).or_default();
            *last = version.max(*last);
            all.records += 1;
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_many_threads_note_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("acks");
        let file = AckFile::open(&path).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let file = &file;
                scope.spawn(move || {
                    for version in 1..=100 {
                        file.note(WorkloadKind::Update, thread, version).unwrap();
                    }
                });
            }
        });
        file.note(WorkloadKind::Tpcc, 77, 0).unwrap();
        AckFile::open(&path).unwrap().note(WorkloadKind::Insert, u64::MAX, 0).unwrap();
        let all = Acknowledged::read(&path).unwrap();
        assert_eq!(all.records, 402);
        assert_eq!(all.rows, (0..4).map(|row| (row, 100)).collect());
        assert_eq!(all.inserts, HashMap::from([(u64::MAX, 0)]));
        assert_eq!(all.orders, HashMap::from([(77, 0)]));

        let mut bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert_eq!(Acknowledged::read(&path).unwrap().records, 401, "a cut record is no claim");
        bytes[3] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let error = Acknowledged::read(&path).unwrap_err().to_string();
        assert!(error.contains("byte 0 begins no record"), "{error}");
    }

    #[test]
    fn nothing_is_added_to_what_is_no_ack_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("diary");
        for text in ["dear diary,", "dear diary, it was a quiet day"] {
            std::fs::write(&path, text).unwrap();
            for refused in [AckFile::look(&path), AckFile::open(&path).map(drop)] {
                let error = refused.unwrap_err().to_string();
                assert!(error.contains("diary is there and is no ack file"), "{error}");
            }
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
}
