//! Full-text search: the words of a row's texts as entries of an index, and queries.
use std::ffi::{c_int, c_void};

use ::weir_table::{
    Direction, KeyRange, Lock, RawScan, RawTable, RowEntries, after_prefix, put_entry,
};
use weir_fulltext::{
    Failure as NotFound, Fit, Index, Mode, Positions, Posting, Ranked, Search, Words, search,
};

use crate::borrow::{alone, give, list, put, shared, taken, weir_bytes};
use crate::indexes::{goes_on, weir_go_on};
use crate::outcome::{Failure, found, run, weir_code, wrong};
use crate::scan::lock_of;
use crate::table::{place, weir_table};
use crate::txn::weir_txn;

/// The words of a text.
#[derive(Default)]
pub struct weir_words {
    words: Words,
    entries: Vec<u8>,
}

/// Whether a word is looked for in an index.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum weir_fit {
    /// It is in the index.
    WEIR_FIT_INDEXED = 0,
    /// It is too short for it.
    WEIR_FIT_SHORT = 1,
    /// It is too long for it.
    WEIR_FIT_LONG = 2,
    /// It is one of those that say nothing.
    WEIR_FIT_STOPWORD = 3,
}

/// Makes an empty list of words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_words_new(out: *mut *mut weir_words) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        unsafe { give(out, weir_words::default())? };
        Ok(weir_code::WEIR_OK)
    })
}

/// Gives a list of words back. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_words_close(words: *mut weir_words) {
    // SAFETY: the contract of `borrow`.
    run(|| Ok(unsafe { taken(words) }.map_or(weir_code::WEIR_NOTHING, |_| weir_code::WEIR_OK)));
}

/// Adds a word. `key`: bytes that equal words have in common, none of them the beginning of
/// another's; the first `beginning` of them begin the keys of all words that begin as this one
/// does. `place`: the number of the word in its document, times the number of columns of the index,
/// and the number of its column. `fit` is a weir_fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_words_add(
    words: *mut weir_words,
    key: weir_bytes,
    beginning: usize,
    place: u64,
    fit: u32,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (words, key) = unsafe { (alone(words)?, key.given()?) };
        let fit = match fit {
            f if f == weir_fit::WEIR_FIT_INDEXED as u32 => Fit::Indexed,
            f if f == weir_fit::WEIR_FIT_SHORT as u32 => Fit::Short,
            f if f == weir_fit::WEIR_FIT_LONG as u32 => Fit::Long,
            f if f == weir_fit::WEIR_FIT_STOPWORD as u32 => Fit::Stopword,
            other => return Err(wrong(format!("{other} is no weir_fit"))),
        };
        words.words.push(key, beginning, place, fit);
        Ok(weir_code::WEIR_OK)
    })
}

/// Turns the words that were added since the last call into the payload of a row's entry in an
/// index of several entries (weir_index), good until the next call, and forgets them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_words_entries(
    words: *mut weir_words,
    payload: *mut weir_bytes,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let weir_words { words, entries } = unsafe { alone(words)? };
        entries.clear();
        words.each_indexed(|key, places| put_entry(entries, key, places));
        words.clear();
        // SAFETY: the contract of `borrow`.
        unsafe { put(payload, weir_bytes::of(entries))? };
        Ok(weir_code::WEIR_OK)
    })
}

/// The entries of a row in an index that keeps several of each.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_row_entries {
    /// The row's primary key.
    pub key: weir_bytes,
    /// The entries, as weir_words_entries and weir_mbr_entries make them.
    pub entries: weir_bytes,
}

/// Adds the entries of rows that this transaction has inserted with none in this index, which keeps
/// several of each row, in the order in which they lie: all, or nothing. Until then the index lacks
/// the rows for this transaction, too, and they must be neither changed nor removed, nor committed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_add_entries(
    table: *const weir_table,
    txn: *const weir_txn,
    index: i32,
    rows: *const weir_row_entries,
    count: usize,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (table, inner) = unsafe { (shared(table)?, shared(txn)?.inner_to_wait()?) };
        let at = place(index)?.ok_or_else(|| wrong("rows are no index"))?;
        // SAFETY: the contract of `borrow`.
        let rows = unsafe { list(rows, count)? };
        let given = |row: &weir_row_entries| {
            // SAFETY: the contract of `borrow`.
            let (key, entries) = unsafe { (row.key.given()?, row.entries.given()?) };
            Ok(RowEntries { key, entries })
        };
        let rows = rows.iter().map(given).collect::<Result<Vec<_>, Failure>>()?;
        table.table.add_entries(&mut inner.txn, at, &rows)?;
        Ok(weir_code::WEIR_OK)
    })
}

/// How a query is read.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum weir_search_mode {
    /// Words and phrases.
    WEIR_SEARCH_NATURAL = 0,
    /// With operators.
    WEIR_SEARCH_BOOLEAN = 1,
    /// Words, and all words of the documents that have them.
    WEIR_SEARCH_EXPANDED = 2,
}

/// Adds the words of a text of the query to `words`; returns 0, or something else to stop. It must
/// not unwind.
pub type weir_split = Option<
    unsafe extern "C" fn(context: *mut c_void, text: weir_bytes, words: *mut weir_words) -> c_int,
>;

/// Adds all words of a row to `words`, those that are not in the index included; returns 0, or
/// something else to stop. It must not unwind, nor use the transaction.
pub type weir_split_row = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        key: weir_bytes,
        row: weir_bytes,
        words: *mut weir_words,
    ) -> c_int,
>;

/// What is looked for in an index of words.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_search {
    /// The place of the index.
    pub index: usize,
    /// The query: any bytes whose operators are ASCII.
    pub query: weir_bytes,
    /// A weir_search_mode.
    pub mode: u32,
    /// A weir_lock, for the entries that are read.
    pub lock: u32,
    /// Passes over what others have locked.
    pub skip_locked: bool,
    /// About how many rows the table has.
    pub rows: u64,
    /// How many columns the index has.
    pub columns: u64,
    /// For the words of the query.
    pub split: weir_split,
    /// For the words of a row.
    pub split_row: weir_split_row,
    /// Is asked for each entry.
    pub go_on: weir_go_on,
    /// Theirs.
    pub context: *mut c_void,
}

/// Rows that fit a query, the one that fits best first.
pub struct weir_ranked {
    ranked: Ranked,
}

/// An index that is asked, by a transaction.
struct Asked<'a> {
    table: &'a RawTable,
    txn: &'a mut weir::Txn,
    what: &'a weir_search,
    lock: Lock,
    words: weir_words,
}

fn stopped() -> Failure {
    Failure { code: weir_code::WEIR_INTERRUPTED, message: "the search was stopped".into() }
}

impl Asked<'_> {
    /// Lets `ask` fill in words.
    fn fill(&mut self, words: &mut Words, ask: impl FnOnce(*mut weir_words) -> c_int) -> bool {
        std::mem::swap(words, &mut self.words.words);
        let done = ask(&raw mut self.words);
        std::mem::swap(words, &mut self.words.words);
        done == 0
    }

    fn scan(&mut self, key: &[u8]) -> Result<RawScan, Failure> {
        let keys = KeyRange { from: key.to_vec(), to: after_prefix(key) };
        let index = Some(self.what.index);
        let mut scan = self.table.scan_with(self.txn, index, keys, Direction::Up, self.lock)?;
        if self.what.skip_locked {
            scan.skip_locked();
        }
        Ok(scan)
    }
}

impl Index for Asked<'_> {
    type Error = Failure;

    fn split(&mut self, text: &[u8], words: &mut Words) -> Result<(), Failure> {
        let (split, context) = (self.what.split.ok_or_else(stopped)?, self.what.context);
        let text = weir_bytes::of(text);
        // SAFETY: the caller of the interface has given a function of this kind.
        let ask = |words| unsafe { split(context, text, words) };
        if self.fill(words, ask) { Ok(()) } else { Err(stopped()) }
    }

    fn postings(
        &mut self,
        key: &[u8],
        begins: bool,
        visit: &mut dyn FnMut(Posting<'_>),
    ) -> Result<(), Failure> {
        let mut scan = self.scan(key)?;
        while scan.next(self.txn)? {
            // SAFETY: the caller of the interface has given a function of this kind.
            if !unsafe { goes_on(self.what.go_on, self.what.context) } {
                return Err(stopped());
            }
            if begins || scan.index_key()? == key {
                let positions = Positions(scan.payload()?);
                visit(Posting { document: scan.primary_key()?, positions });
            }
        }
        Ok(())
    }

    fn document(&mut self, key: &[u8], words: &mut Words) -> Result<bool, Failure> {
        let mut row = Vec::new();
        let there = match self.lock {
            Lock::Plain => self.table.get(self.txn, key, &mut row)?,
            Lock::Share | Lock::Update => self.table.get_for_share(self.txn, key, &mut row)?,
        };
        if !there {
            return Ok(false);
        }
        let (split, context) = (self.what.split_row.ok_or_else(stopped)?, self.what.context);
        let (key, row) = (weir_bytes::of(key), weir_bytes::of(&row));
        // SAFETY: the caller of the interface has given a function of this kind.
        let ask = |words| unsafe { split(context, key, row, words) };
        if self.fill(words, ask) { Ok(true) } else { Err(stopped()) }
    }
}

/// Looks for rows by an index whose entries are words (weir_words_entries). WEIR_INPUT: the query
/// cannot be read; the message says why. WEIR_TOO_LARGE: a phrase has too many words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_search(
    table: *const weir_table,
    txn: *const weir_txn,
    what: *const weir_search,
    out: *mut *mut weir_ranked,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (table, txn, what) = unsafe { (shared(table)?, shared(txn)?, shared(what)?) };
        // SAFETY: the contract of `borrow`.
        let query = unsafe { what.query.given()? };
        let lock = lock_of(what.lock)?;
        let (mode, expands) = match what.mode {
            m if m == weir_search_mode::WEIR_SEARCH_NATURAL as u32 => (Mode::Natural, false),
            m if m == weir_search_mode::WEIR_SEARCH_BOOLEAN as u32 => (Mode::Boolean, false),
            m if m == weir_search_mode::WEIR_SEARCH_EXPANDED as u32 => (Mode::Natural, true),
            other => return Err(wrong(format!("{other} is no weir_search_mode"))),
        };
        // SAFETY: the contract of `borrow`.
        let inner = unsafe {
            if lock == Lock::Plain { txn.inner_to_read()? } else { txn.inner_to_wait()? }
        };
        let (table, txn, words) = (&table.table, &mut inner.txn, weir_words::default());
        let mut asked = Asked { table, txn, what, lock, words };
        let (documents, columns) = (what.rows, what.columns);
        let wanted = Search { query, mode, expands, documents, columns };
        let ranked = search(&mut asked, &wanted).map_err(failure_of)?;
        // SAFETY: the contract of `borrow`.
        unsafe { give(out, weir_ranked { ranked })? };
        Ok(weir_code::WEIR_OK)
    })
}

fn failure_of(failure: NotFound<Failure>) -> Failure {
    match failure {
        NotFound::Syntax(error) => wrong(error.to_string()),
        NotFound::LongPhrase => Failure {
            code: weir_code::WEIR_TOO_LARGE,
            message: "a phrase has too many words".into(),
        },
        NotFound::Index(failure) => failure,
    }
}

/// Gives the rows that were found back. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_ranked_close(ranked: *mut weir_ranked) {
    // SAFETY: the contract of `borrow`.
    run(|| Ok(unsafe { taken(ranked) }.map_or(weir_code::WEIR_NOTHING, |_| weir_code::WEIR_OK)));
}

/// The primary key of the row that fits best but for `nth` others, and how well it does.
/// WEIR_NOTHING: no more were found. The key is good as long as what it comes from.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_ranked_at(
    ranked: *const weir_ranked,
    nth: usize,
    primary_key: *mut weir_bytes,
    rank: *mut f32,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let ranked = &unsafe { shared(ranked)? }.ranked;
        let Some((key, fits)) = ranked.get(nth) else { return Ok(weir_code::WEIR_NOTHING) };
        // SAFETY: the contract of `borrow`.
        unsafe {
            put(primary_key, weir_bytes::of(key))?;
            put(rank, fits)?;
        }
        Ok(weir_code::WEIR_OK)
    })
}

/// How well the row of a primary key fits. WEIR_NOTHING, and 0: it does not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_ranked_find(
    ranked: *const weir_ranked,
    primary_key: weir_bytes,
    rank: *mut f32,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (ranked, key) = unsafe { (shared(ranked)?, primary_key.given()?) };
        let fits = ranked.ranked.rank_of(key);
        // SAFETY: the contract of `borrow`.
        unsafe { put(rank, fits.unwrap_or_default())? };
        Ok(found(fits.is_some()))
    })
}
