//! A table as a stream of bytes: what it is, and all entries of its trees, each part with a
//! checksum.
//!
//! A head of 20 bytes: [`MAGIC`], the format's number, a number of this stream alone. Then frames:
//! a header of [`FRAME_BYTES`] (kind, number, length, checksum of the body, checksum of the header)
//! and a body. The first is [`HEAD`]; then [`ENTRIES`] of one tree after another, rows first and
//! indexes in the order of the head, each tree's in the order of keys; then [`END`], which says how
//! many there were. A stream without that is none. Checksums begin with the stream's number, and a
//! frame's number is the next one after the one before: parts of other streams do not fit in.
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io::{self, Read, Write};

use weir_base::{checksum_more, unique_number, varint};

use crate::build::{GoOn, ask};
use crate::catalog::{IndexSpec, check_name};
use crate::descriptor::{number, text};
use crate::error::Error;
use crate::key::Malformed;
use crate::raw::RawTable;
use crate::row::{put_bytes, take_bytes};

const MAGIC: [u8; 8] = *b"WEIRTABL";
/// Rises when what an older version would read of it is wrong.
const FORMAT: u32 = 1;
const HEAD_BYTES: usize = 20;
const FRAME_BYTES: usize = 24;

const HEAD: u8 = 1;
const ENTRIES: u8 = 2;
const END: u8 = 3;

/// A body ends with the entry that makes it so long.
const BODY_BYTES: usize = 256 << 10;

/// What a stream says of its table, before its entries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExportHead {
    /// Bytes of the caller's that say what it was exported as.
    pub heading: Vec<u8>,
    /// The table's definition, the caller's bytes.
    pub definition: Vec<u8>,
    /// How its rows lie, the caller's bytes ([`crate::TableInfo::layouts`]).
    pub layouts: Vec<u8>,
    /// Its indexes.
    pub indexes: Vec<IndexSpec>,
    /// The next auto-increment number.
    pub(crate) next_number: u64,
    /// The next hidden row id.
    pub(crate) next_row_id: u64,
}

/// What a stream holds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Exported {
    /// Rows.
    pub rows: u64,
    /// Bytes of the stream.
    pub bytes: u64,
}

impl ExportHead {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for bytes in [&self.heading, &self.definition, &self.layouts] {
            put_bytes(&mut out, bytes);
        }
        varint::put(&mut out, self.next_number);
        varint::put(&mut out, self.next_row_id);
        varint::put(&mut out, self.indexes.len() as u64);
        for index in &self.indexes {
            put_bytes(&mut out, index.name.as_bytes());
            out.push(u8::from(index.unique) | u8::from(index.several) << 1);
            put_bytes(&mut out, &index.definition);
        }
        out
    }

    fn decode(mut rest: &[u8]) -> Result<ExportHead, Malformed> {
        let rest = &mut rest;
        let mut bytes = || take_bytes(rest).map(<[u8]>::to_vec);
        let (heading, definition, layouts) = (bytes()?, bytes()?, bytes()?);
        let (next_number, next_row_id) = (number(rest)?, number(rest)?);
        let mut indexes = Vec::new();
        for _ in 0..number(rest)? {
            let name = text(rest)?;
            let (&marks, behind) = rest.split_first().ok_or(Malformed("it ends too early"))?;
            *rest = behind;
            if marks > 2 || check_name(&name).is_err() {
                return Err(Malformed("an index is none"));
            }
            let definition = take_bytes(rest)?.to_vec();
            let (unique, several) = (marks & 1 != 0, marks & 2 != 0);
            indexes.push(IndexSpec { name, unique, several, definition });
        }
        if !rest.is_empty() {
            return Err(Malformed("it goes on behind its end"));
        }
        Ok(ExportHead { heading, definition, layouts, indexes, next_number, next_row_id })
    }
}

fn io_error(what: &str, cause: io::Error) -> Error {
    Error::Store(weir::Error::Io { what: what.into(), cause })
}

struct Writer<'w> {
    out: &'w mut dyn Write,
    seed: u32,
    number: u32,
    bytes: u64,
}

impl<'w> Writer<'w> {
    fn begin(out: &'w mut dyn Write, stream: u64) -> Result<Writer<'w>, Error> {
        let seed = checksum_more(0, &stream.to_le_bytes());
        let mut writer = Writer { out, seed, number: 0, bytes: 0 };
        writer.put(&MAGIC)?;
        writer.put(&FORMAT.to_le_bytes())?;
        writer.put(&stream.to_le_bytes())?;
        Ok(writer)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes).map_err(|e| io_error("writing a table that is exported", e))
    }

    fn frame(&mut self, kind: u8, body: &[u8]) -> Result<(), Error> {
        let mut header = [0; FRAME_BYTES];
        header[0] = kind;
        header[4..8].copy_from_slice(&self.number.to_le_bytes());
        header[8..16].copy_from_slice(&(body.len() as u64).to_le_bytes());
        header[16..20].copy_from_slice(&checksum_more(self.seed, body).to_le_bytes());
        let sum = checksum_more(self.seed, &header[..20]);
        header[20..].copy_from_slice(&sum.to_le_bytes());
        self.number += 1;
        self.put(&header)?;
        self.put(body)
    }
}

impl RawTable {
    /// Writes the table as it is committed now: its rows, the entries of all its indexes that are
    /// complete, and what it is, with `heading`. What no transaction has committed, be it prepared,
    /// is not in it. `go_on` is asked for each entry.
    ///
    /// # Errors
    /// [`Error::Changed`]: the handle is older than the definition; [`Error::Interrupted`],
    /// [`Error::Store`], what `out` says among it. What was written is no table then.
    pub fn export(
        &self,
        heading: &[u8],
        out: &mut dyn Write,
        go_on: &mut GoOn<'_>,
    ) -> Result<Exported, Error> {
        let db = &self.shared.db;
        let snapshot = db.snapshot();
        let mut txn = db.begin_at(&snapshot)?;
        let since = self.info.indexes.iter().filter(|index| !index.building);
        let since = since.map(|index| index.since).chain([self.info.since]).max();
        self.check_view(&mut txn, since.unwrap_or_default())?;
        let mut trees = vec![&self.primary];
        let mut indexes = Vec::new();
        for (index, tree) in self.info.indexes.iter().zip(&self.indexes) {
            if index.building {
                continue;
            }
            trees.push(tree);
            let (name, definition) = (index.name.clone(), index.definition.clone());
            let (unique, several) = (index.unique, index.several);
            indexes.push(IndexSpec { name, unique, several, definition });
        }
        let head = ExportHead {
            heading: heading.to_vec(),
            definition: self.info.definition.clone(),
            layouts: self.info.layouts.clone(),
            indexes,
            next_number: self.next_number()?,
            next_row_id: self.state.row_ids.peek(&self.shared.catalog)?,
        };
        let mut writer = Writer::begin(out, stream_number())?;
        writer.frame(HEAD, &head.encode())?;
        let (mut counts, mut body) = (Vec::new(), Vec::new());
        for (nth, tree) in trees.into_iter().enumerate() {
            let (mut count, mut cursor) = (0u64, txn.cursor(tree));
            let mut on = cursor.seek_first(&mut txn)?;
            while on {
                ask(go_on)?;
                if body.is_empty() {
                    varint::put(&mut body, nth as u64);
                }
                put_bytes(&mut body, cursor.key());
                put_bytes(&mut body, cursor.value());
                count += 1;
                on = cursor.next(&mut txn)?;
                if body.len() >= BODY_BYTES || !on {
                    writer.frame(ENTRIES, &body)?;
                    body.clear();
                }
            }
            counts.push(count);
        }
        counts.iter().for_each(|&count| varint::put(&mut body, count));
        writer.frame(END, &body)?;
        let bytes = writer.bytes;
        out.flush().map_err(|e| io_error("writing a table that is exported", e))?;
        Ok(Exported { rows: counts[0], bytes })
    }
}

/// A number for a stream that no other is likely to have.
fn stream_number() -> u64 {
    RandomState::new().hash_one(unique_number())
}

/// Reads a stream from its beginning on, each part verified before it is handed out.
pub(crate) struct Reader<'r> {
    source: &'r mut dyn Read,
    seed: u32,
    number: u32,
    at: u64,
    body: Vec<u8>,
    /// What is left of the body.
    from: usize,
    /// The tree of the last entry, and how many of each there were.
    tree: usize,
    counts: Vec<u64>,
    trees: usize,
    last: Vec<u8>,
    ended: bool,
}

/// The place of an entry's tree (0: the rows), its key, its value.
type Entry<'e> = (usize, &'e [u8], &'e [u8]);

fn damaged(at: u64, what: &str) -> Error {
    let words = format!("the exported table is damaged: at byte {at} {what}; copy the file again");
    Error::Damaged(words)
}

impl<'r> Reader<'r> {
    /// # Errors
    /// [`Error::Damaged`], [`Error::Input`] where it is no exported table or one of a later format,
    /// [`Error::Store`].
    pub(crate) fn begin(source: &'r mut dyn Read) -> Result<(Reader<'r>, ExportHead), Error> {
        let mut reader = Reader {
            source,
            seed: 0,
            number: 0,
            at: 0,
            body: Vec::new(),
            from: 0,
            tree: 0,
            counts: Vec::new(),
            trees: 0,
            last: Vec::new(),
            ended: false,
        };
        let mut head = [0; HEAD_BYTES];
        reader.take(&mut head)?;
        if head[..8] != MAGIC {
            let words = "this is no table that Weir has exported: it begins otherwise";
            return Err(Error::Input(words.into()));
        }
        let format = u32::from_le_bytes(std::array::from_fn(|i| head[8 + i]));
        if format != FORMAT {
            return Err(Error::Input(format!(
                "the exported table has format {format}, and this version of Weir reads format \
                 {FORMAT}: import it where it was exported by the same version or a later one is \
                 installed"
            )));
        }
        reader.seed = checksum_more(0, &head[12..]);
        if reader.frame()? != HEAD {
            return Err(damaged(reader.at, "something else begins than what it is"));
        }
        let head = ExportHead::decode(&reader.body).map_err(|e| damaged(reader.at, e.0))?;
        reader.trees = 1 + head.indexes.len();
        reader.counts = vec![0; reader.trees];
        reader.from = reader.body.len();
        Ok((reader, head))
    }

    fn take(&mut self, room: &mut [u8]) -> Result<(), Error> {
        let (at, len) = (self.at, room.len() as u64);
        match self.source.read_exact(room) {
            Ok(()) => self.at += len,
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(damaged(at, "it ends, and is not complete"));
            }
            Err(e) => return Err(io_error("reading an exported table", e)),
        }
        Ok(())
    }

    /// Reads the next frame; its kind.
    fn frame(&mut self) -> Result<u8, Error> {
        let (begin, mut header) = (self.at, [0; FRAME_BYTES]);
        self.take(&mut header)?;
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| header[at + i]));
        if word(20) != checksum_more(self.seed, &header[..20]) || header[1..4] != [0; 3] {
            return Err(damaged(begin, "a part's header has another checksum"));
        }
        if word(4) != self.number {
            return Err(damaged(begin, "a part is missing, or there twice"));
        }
        self.number += 1;
        let len = u64::from_le_bytes(std::array::from_fn(|i| header[8 + i]));
        self.body.clear();
        self.from = 0;
        // Takes memory as bytes come.
        let got = self.source.take(len).read_to_end(&mut self.body);
        let got = got.map_err(|e| io_error("reading an exported table", e))?;
        self.at += got as u64;
        if got as u64 != len {
            return Err(damaged(self.at, "it ends, and is not complete"));
        }
        if word(16) != checksum_more(self.seed, &self.body) {
            return Err(damaged(begin, "a part has another checksum"));
        }
        Ok(header[0])
    }

    /// The next entry. `None`: all were there, and nothing follows.
    pub(crate) fn next(&mut self) -> Result<Option<Entry<'_>>, Error> {
        if self.from == self.body.len() && !self.ended {
            match self.frame()? {
                ENTRIES => self.begin_entries()?,
                END => self.end()?,
                _ => return Err(damaged(self.at, "there is a part of an unknown kind")),
            }
        }
        if self.ended {
            return Ok(None);
        }
        let (mut rest, len) = (&self.body[self.from..], self.body.len());
        let malformed = |e: Malformed| damaged(self.at, e.0);
        let key = take_bytes(&mut rest).map_err(malformed)?;
        let value = take_bytes(&mut rest).map_err(malformed)?;
        if self.counts[self.tree] > 0 && *self.last >= *key {
            return Err(damaged(self.at, "entries are not in the order of their keys"));
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        self.counts[self.tree] += 1;
        self.from = len - rest.len();
        Ok(Some((self.tree, key, value)))
    }

    fn begin_entries(&mut self) -> Result<(), Error> {
        let mut rest = &self.body[..];
        let tree = number(&mut rest).map_err(|e| damaged(self.at, e.0))?;
        let tree = usize::try_from(tree).ok().filter(|&tree| tree < self.trees);
        let tree = tree.filter(|&tree| tree >= self.tree && !rest.is_empty());
        self.tree = tree.ok_or_else(|| damaged(self.at, "a part is of no tree that follows"))?;
        self.from = self.body.len() - rest.len();
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        let (mut said, mut rest) = (Vec::new(), &self.body[..]);
        while !rest.is_empty() {
            said.push(number(&mut rest).map_err(|e| damaged(self.at, e.0))?);
        }
        if said != self.counts {
            return Err(damaged(self.at, "its end counts other entries than there were"));
        }
        if self.source.read(&mut [0]).map_err(|e| io_error("reading an exported table", e))? > 0 {
            return Err(damaged(self.at, "it goes on behind its end"));
        }
        self.from = self.body.len();
        self.ended = true;
        Ok(())
    }

    /// What was read so far.
    pub(crate) fn exported(&self) -> Exported {
        Exported { rows: self.counts[0], bytes: self.at }
    }
}

/// Reads an exported table to its end, and verifies all of it. `go_on` is asked for each entry.
///
/// # Errors
/// [`Error::Damaged`] names the byte; [`Error::Input`]: it is none, or of a later version;
/// [`Error::Interrupted`], [`Error::Store`].
pub fn verify_export(
    source: &mut dyn Read,
    go_on: &mut GoOn<'_>,
) -> Result<(ExportHead, Exported), Error> {
    let (mut reader, head) = Reader::begin(source)?;
    while reader.next()?.is_some() {
        ask(go_on)?;
    }
    Ok((head, reader.exported()))
}
