//! What was saved, and what was not.
use std::fmt;

/// What a salvage is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Reading the log: bytes of it so far.
    Log,
    /// Bringing pages up to date: pages so far.
    Redo,
    /// Looking at every page: pages so far, of all.
    Pages,
    /// Saving rows: rows so far.
    Rows,
}

/// A page that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedPage {
    /// Its number.
    pub page: u32,
    /// The file that it lies in.
    pub file: String,
    /// The byte at which it begins there.
    pub offset: u64,
    /// What is wrong with it.
    pub what: String,
}

/// A range of keys whose page is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingRange {
    /// The first key that it may hold; `None`: it begins with the tree, or that is not known.
    pub low: Option<Vec<u8>>,
    /// The first key that it may not hold any more; `None`: it ends with the tree, or that is not
    /// known.
    pub high: Option<Vec<u8>>,
    /// The page that would have it.
    pub page: u32,
    /// The file that it lies in.
    pub file: String,
    /// The byte at which it begins there.
    pub offset: u64,
    /// Whether it is a node above others: then rows of the range were looked for in all leaves.
    pub is_inner: bool,
    /// Rows of the range that were found elsewhere.
    pub found: u64,
}

/// What became of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedTree {
    /// Its name in the new database.
    pub name: String,
    /// Its number in the damaged one.
    pub number: u64,
    /// Whether its name was lost, so that it has got another.
    pub is_renamed: bool,
    /// Rows that were saved.
    pub rows: u64,
    /// Rows that may be older than they were last, or removed since: they are in the tree
    /// [`SavedTree::stray_name`].
    pub stray_rows: u64,
    /// Changes of losers that were rolled back.
    pub rolled_back: u64,
    /// Rows of older leaves that a newer one of the same range does not have: left out.
    pub superseded: u64,
    /// Rows whose long value is lost.
    pub values_lost: u64,
    /// The keys of the first of those.
    pub values_lost_keys: Vec<Vec<u8>>,
    /// Leaves that are lost.
    pub leaves_missing: u64,
    /// About how many rows they held, by what leaves of this database hold on average.
    pub rows_missing_about: u64,
    /// Nodes above leaves that are lost.
    pub inner_missing: u64,
    /// The first ranges that are lost, in the order of keys.
    pub missing: Vec<MissingRange>,
}

impl SavedTree {
    /// Where rows are that may be older than they were last.
    #[must_use]
    pub fn stray_name(&self) -> String {
        stray_name(&self.name)
    }

    /// Whether nothing is known to be missing.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.leaves_missing == 0
            && self.inner_missing == 0
            && self.values_lost == 0
            && self.stray_rows == 0
            && !self.is_renamed
    }
}

pub(crate) fn stray_name(name: &str) -> String {
    const MARK: &str = " (perhaps older)";
    let mut end = name.len().min(255 - MARK.len());
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{MARK}", &name[..end])
}

/// What a salvage came to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What was found of the database as a whole.
    pub remarks: Vec<String>,
    /// Whether all pages are as of the database's last moment: what transactions that have ended
    /// had done is there, what others had done is not, wherever a page could be read. Otherwise a
    /// row is one that it has been once, not necessarily the last.
    pub is_current: bool,
    /// Every tree that was saved.
    pub trees: Vec<SavedTree>,
    /// Trees that no name leads to: dropped ones, and those that transactions had not done with.
    pub trees_left_out: u64,
    /// Transactions that had not ended, whose changes were rolled back.
    pub losers: u64,
    /// The names of those that were prepared.
    pub prepared: Vec<Vec<u8>>,
    /// Pages looked at.
    pub pages: u64,
    /// Pages that the log had changes for.
    pub pages_forward: u64,
    /// Damaged pages put right from the doublewrite area or by the log.
    pub pages_repaired: u64,
    /// Pages that cannot be read.
    pub pages_damaged: u64,
    /// The first of those.
    pub damaged: Vec<DamagedPage>,
}

impl Report {
    /// Rows saved of all trees, without those that may be older.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.trees.iter().map(|tree| tree.rows).sum()
    }

    /// Whether nothing is known to be missing, older or doubtful.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.is_current && self.trees.iter().all(SavedTree::is_whole)
    }
}

/// Bytes as a person reads them, shortened.
fn brief(bytes: &[u8]) -> String {
    const SHOWN: usize = 40;
    let is_text = |text: &&str| !text.chars().any(char::is_control);
    match std::str::from_utf8(bytes).ok().filter(is_text) {
        Some(text) if text.chars().count() <= SHOWN => format!("'{text}'"),
        Some(text) => format!("'{}...'", text.chars().take(SHOWN).collect::<String>()),
        None => {
            let shown: String =
                bytes.iter().take(SHOWN / 2).map(|byte| format!("{byte:02x}")).collect();
            format!("0x{shown}{}", if bytes.len() > SHOWN / 2 { "..." } else { "" })
        }
    }
}

impl fmt::Display for MissingRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let low = self.low.as_deref().map_or("the beginning".to_owned(), brief);
        let high = self
            .high
            .as_deref()
            .map_or("the end".to_owned(), |high| format!("below {}", brief(high)));
        write!(f, "from {low} to {high}: page {} in '{}' at byte {}", self.page, self.file, {
            self.offset
        })?;
        if self.is_inner {
            write!(f, ", a node above others")?;
        }
        match self.found {
            0 => Ok(()),
            found => write!(f, "; {found} rows of the range found elsewhere"),
        }
    }
}

impl fmt::Display for SavedTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tree {}: {} rows saved", self.name, self.rows)?;
        if self.is_renamed {
            write!(f, " (its name is lost; it was number {})", self.number)?;
        }
        if self.leaves_missing > 0 {
            let (leaves, about) = (self.leaves_missing, self.rows_missing_about);
            write!(f, ", {leaves} leaves lost, of about {about} rows")?;
        }
        let others = [
            (self.values_lost, "rows lost because their long values are"),
            (self.rolled_back, "rows rolled back to before transactions that had not ended"),
            (self.superseded, "older rows left out"),
        ];
        for (count, what) in others.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, ", {count} {what}")?;
        }
        if self.stray_rows > 0 {
            let (rows, name) = (self.stray_rows, self.stray_name());
            write!(f, "; {rows} rows that may be older or removed since in tree {name}")?;
        }
        for range in &self.missing {
            write!(f, "\n  missing {range}")?;
        }
        let unnamed = (self.leaves_missing + self.inner_missing) - self.missing.len() as u64;
        if unnamed > 0 {
            write!(f, "\n  and {unnamed} more ranges")?;
        }
        for key in &self.values_lost_keys {
            write!(f, "\n  the long value of row {} is lost", brief(key))?;
        }
        let more = self.values_lost - self.values_lost_keys.len() as u64;
        if more > 0 {
            write!(f, "\n  and {more} more rows")?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for remark in &self.remarks {
            writeln!(f, "{remark}")?;
        }
        for tree in &self.trees {
            writeln!(f, "{tree}")?;
        }
        if self.trees_left_out > 0 {
            let trees = self.trees_left_out;
            writeln!(f, "{trees} trees left out: they had been dropped, or were not finished")?;
        }
        if self.losers > 0 {
            let transactions = self.losers;
            writeln!(f, "{transactions} transactions that had not ended were rolled back")?;
        }
        for xid in &self.prepared {
            writeln!(f, "  of those prepared as {}", brief(xid))?;
        }
        let (pages, forward, repaired) = (self.pages, self.pages_forward, self.pages_repaired);
        writeln!(
            f,
            "{pages} pages read; {forward} brought up to date by the log, {repaired} repaired, {} \
             cannot be read",
            self.pages_damaged
        )?;
        for page in &self.damaged {
            let DamagedPage { page, file, offset, what } = page;
            writeln!(f, "  page {page} in '{file}' at byte {offset}: {what}")?;
        }
        let unnamed = self.pages_damaged - self.damaged.len() as u64;
        if unnamed > 0 {
            writeln!(f, "  and {unnamed} more")?;
        }
        match (self.is_whole(), self.is_current) {
            (true, _) => writeln!(f, "nothing is known to be missing"),
            (false, true) => {
                writeln!(f, "what was saved is as it was last; what is missing is named above")
            }
            (false, false) => writeln!(
                f,
                "NOT of one moment: without all of the log a row may be older than it was last, \
                 of a transaction that had not ended, or removed since"
            ),
        }
    }
}
