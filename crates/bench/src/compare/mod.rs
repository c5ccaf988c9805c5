//! Engines of one server beside each other: what the cells of `make compare` left, as a report, as
//! JSON and as a picture.
mod cell;
mod pages;
mod picture;

use crate::report::replace_file;
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};

pub use cell::Cell;

/// Where to put what.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    /// The report.
    pub report: Option<PathBuf>,
    /// All figures and seconds.
    pub json: Option<PathBuf>,
    /// TPC-C's curves on the limited disk, as SVG.
    pub picture: Option<PathBuf>,
    /// Whether they may replace what is there.
    pub replace: bool,
}

/// Reads the cells below a directory and writes what is asked for. Returns the table as text, and
/// whether all that was checked was right.
///
/// # Errors
/// When there are no cells, one cannot be read, or a file cannot be written.
pub fn compare(directory: &Path, outputs: &Outputs, command: &str) -> Result<(String, bool)> {
    let cells = cell::read_all(&directory.join("cells"))?;
    ensure!(!cells.is_empty(), "there are no cells below {}", directory.display());
    let about = pages::read_about(directory)?;
    let page = pages::page(&cells, about, command);
    if let Some(path) = &outputs.report {
        page.write(path, outputs.replace)?;
    }
    if let Some(path) = &outputs.json {
        replace_file(path, &serde_json::to_vec_pretty(&cells)?, outputs.replace)?;
    }
    if let Some(path) = &outputs.picture {
        let curves = picture::curves(&cells);
        if !curves.is_empty() {
            replace_file(path, picture::svg(&curves).as_bytes(), outputs.replace)?;
        }
    }
    let well = cells.iter().all(|cell| cell.verified != Some(false));
    Ok((pages::plain(&page), well))
}
