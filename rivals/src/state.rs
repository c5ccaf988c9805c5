//! What has been measured so far, in a file beside the stores, so that a run can be stopped and
//! gone on with: the first line says with which settings, each other line is a cell.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::cell::Cell;
use crate::plan::Shape;

pub struct State {
    path: PathBuf,
    pub cells: Vec<Cell>,
}

const FILE: &str = "measured.jsonl";

impl State {
    /// Goes on in this directory, or begins there.
    ///
    /// # Errors
    /// When it holds something else, or what was measured with other settings; both unless `fresh`,
    /// which forgets what was measured by this program, and touches nothing else.
    pub fn open(dir: &Path, shape: &Shape, fresh: bool) -> Result<State> {
        let path = dir.join(FILE);
        if !path.exists() {
            let empty = !dir.exists() || std::fs::read_dir(dir)?.next().is_none();
            ensure!(empty, "{} holds something else; choose another --dir", dir.display());
        } else if fresh {
            for entry in std::fs::read_dir(dir)? {
                let entry = entry?;
                let name = entry.file_name();
                if crate::stores::find(&name.to_string_lossy()).is_ok() {
                    std::fs::remove_dir_all(entry.path())?;
                }
            }
            std::fs::remove_file(&path)?;
        }
        std::fs::create_dir_all(dir)?;
        let mut state = State { path, cells: Vec::new() };
        if state.path.exists() {
            state.read(shape)?;
        } else {
            state.append(&serde_json::to_string(shape)?)?;
        }
        Ok(state)
    }

    fn read(&mut self, shape: &Shape) -> Result<()> {
        let text = std::fs::read_to_string(&self.path)?;
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        let was: Shape = serde_json::from_str(first)
            .with_context(|| format!("{} is not ours", self.path.display()))?;
        if was != *shape {
            bail!(
                "{} was measured with other settings ({first}); --fresh begins anew",
                self.path.display()
            );
        }
        for line in lines {
            // A line that was being written when the process died is a cell to be measured again.
            if let Ok(cell) = serde_json::from_str(line) {
                self.cells.push(cell);
            }
        }
        Ok(())
    }

    fn append(&self, line: &str) -> Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
        file.write_all(format!("{line}\n").as_bytes())?;
        Ok(file.sync_data()?)
    }

    /// Keeps a cell.
    pub fn add(&mut self, cell: Cell) -> Result<()> {
        self.append(&serde_json::to_string(&cell)?)?;
        self.cells.push(cell);
        Ok(())
    }

    /// Whether this has been measured.
    pub fn has(&self, workload: &str, threads: usize, engine: &str, round: u64) -> bool {
        self.cells.iter().any(|c| c.round == round && c.is_same(workload, threads, engine))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Workload;

    #[test]
    fn it_goes_on_with_the_same_settings_and_with_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let shape = Shape {
            rows: 10,
            value_bytes: 16,
            seconds: 1.0,
            warmup_seconds: 0.0,
            cache_bytes: 1,
            kill_seconds: 1.0,
            limits: Default::default(),
        };
        let mut state = State::open(dir.path(), &shape, false).unwrap();
        state.add(Cell::new(Workload::Read, 2, "weir", 1)).unwrap();
        state.append("{\"workload\":\"re").unwrap();
        let again = State::open(dir.path(), &shape, false).unwrap();
        assert!(again.has("read", 2, "weir", 1) && !again.has("read", 2, "weir", 2));
        assert_eq!(again.cells.len(), 1);
        let other = Shape { rows: 11, ..shape };
        let refused = State::open(dir.path(), &other, false).err().unwrap().to_string();
        assert!(refused.contains("--fresh"), "{refused}");
        std::fs::write(dir.path().join("mine"), "x").unwrap();
        assert!(State::open(dir.path(), &other, true).unwrap().cells.is_empty());
        assert!(dir.path().join("mine").exists());
        std::fs::remove_file(dir.path().join(FILE)).unwrap();
        assert!(State::open(dir.path(), &shape, true).is_err(), "another's directory");
    }
}
