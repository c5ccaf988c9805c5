//! What each thread has done, in a file beside the database that outlives a killed process: a
//! transaction is written down before it commits, and that it is safe when it is.
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Keys from here on are of rows that all threads count up.
pub(super) const HOT: u64 = 1 << 40;
pub(super) const HOT_ROWS: u64 = 6;

const TRANSACTION: u64 = 1;
const SAFE: u64 = 2;
const WITHDRAWN: u64 = 3;

/// Which version each row of a thread has (0: it is not there), and how often it has counted up
/// each hot one.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) rows: BTreeMap<u64, u64>,
    pub(super) hot: BTreeMap<u64, u64>,
}

impl State {
    pub(super) fn apply(&mut self, changes: &[(u64, u64)]) {
        for &(key, version) in changes {
            match key {
                HOT.. => *self.hot.entry(key).or_default() += version,
                _ if version == 0 => drop(self.rows.remove(&key)),
                _ => drop(self.rows.insert(key, version)),
            }
        }
    }
}

pub(super) struct Journal {
    file: File,
}

impl Journal {
    pub(super) fn path(dir: &Path, thread: u32) -> PathBuf {
        dir.join(format!("journal-{thread}"))
    }

    pub(super) fn append_to(dir: &Path, thread: u32) -> Journal {
        let path = Journal::path(dir, thread);
        let file = OpenOptions::new().create(true).append(true).open(path).expect("opened");
        Journal { file }
    }

    fn write(&mut self, words: impl Iterator<Item = u64>) {
        // With one write, which a kill comes before or after.
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        self.file.write_all(&bytes).expect("written down");
    }

    /// Transaction `number` is about to commit.
    pub(super) fn begins(&mut self, number: u64, changes: &[(u64, u64)]) {
        let head = [TRANSACTION, number, changes.len() as u64].into_iter();
        self.write(head.chain(changes.iter().flat_map(|&(key, version)| [key, version])));
    }

    /// It, and all before it, outlive the process.
    pub(super) fn is_safe(&mut self, number: u64) {
        self.write([SAFE, number].into_iter());
    }

    /// It was refused.
    pub(super) fn is_withdrawn(&mut self, number: u64) {
        self.write([WITHDRAWN, number].into_iter());
    }

    /// What a thread's rows are after transaction `last`, which is what the database has; the
    /// journal goes on behind it.
    pub(super) fn replay(dir: &Path, thread: u32, last: u64) -> Result<State, String> {
        let bytes = std::fs::read(Journal::path(dir, thread)).unwrap_or_default();
        let words: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")))
            .collect();
        let (mut at, mut safe, mut known) = (0, 0, 0);
        let mut done: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
        while at < words.len() {
            let number = words[at + 1];
            match words[at] {
                TRANSACTION => {
                    let count = words[at + 2] as usize;
                    let pairs = words[at + 3..][..2 * count].chunks_exact(2);
                    done.insert(number, pairs.map(|pair| (pair[0], pair[1])).collect());
                    known = number;
                    at += 3 + 2 * count;
                }
                word => {
                    at += 2;
                    if word == WITHDRAWN {
                        done.remove(&number);
                    } else {
                        safe = number;
                    }
                }
            }
        }
        if !(safe..=known).contains(&last) {
            return Err(format!(
                "thread {thread}: the database has transaction {last}, {safe} was safe, {known} \
                 the last"
            ));
        }
        let mut state = State::default();
        let file = File::create(Journal::path(dir, thread)).map_err(|e| e.to_string())?;
        let mut journal = Journal { file };
        for (number, changes) in done.range(..=last) {
            state.apply(changes);
            journal.begins(*number, changes);
        }
        journal.is_safe(last);
        Ok(state)
    }
}
