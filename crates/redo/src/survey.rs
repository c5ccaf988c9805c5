//! What lies in the files of a log, file by file and block by block, damaged or not: for a person
//! that looks at a log which does not open. Decides nothing, and repairs nothing.
use crate::block::{BlockVerdict, Seed, judge};
use crate::chunk::Chunk;
use crate::error::{RedoError, Result};
use crate::position::{BLOCK, BLOCK_HEADER, PAGE};
use crate::segment::{SEGMENT_HEADER, parse_header, slot_name, slot_numbers};
use std::ops::ControlFlow;
use weir_base::{AlignedBuf, DbId, Lsn, align_down};
use weir_device::{BlockFile, Volume};

/// The size of a read.
const PART_BYTES: u64 = 1 << 20;

/// One file of a log as it was found.
#[derive(Clone, Debug)]
pub struct FileSurvey {
    /// The file's name.
    pub file: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// What its header says; `None` when it has none, or one that cannot be believed.
    pub header: Option<HeaderSurvey>,
    /// What is wrong with the header, or with the file beside it. Nothing, where there is no header
    /// either: the file was made ahead, and never used.
    pub problem: Option<String>,
    /// Its blocks, in the order of the file: empty without a header.
    pub runs: Vec<BlockRun>,
}

/// What a file's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderSurvey {
    /// The database that the file is of.
    pub db: DbId,
    /// The file's place in the order of use.
    pub sequence: u64,
    /// The first position of the log that it holds.
    pub start: Lsn,
    /// Bytes of log that it has room for.
    pub bytes: u64,
}

/// Blocks of one kind that lie side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRun {
    /// What they are.
    pub state: BlockState,
    /// Where the first one lies in the file.
    pub offset: u64,
    /// How many.
    pub blocks: u64,
    /// Just behind the last payload byte of those that are current; of others, behind the run.
    pub end: Lsn,
}

/// What a block of 512 bytes is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockState {
    /// The block that belongs there.
    Current,
    /// A whole block of an earlier pass over the file.
    Older,
    /// Never written.
    Zeros,
    /// Bytes whose checksum is wrong.
    Damaged,
}

/// Looks at every file of the log in a volume. `db`: whose log it must be; `None` believes each
/// header.
///
/// # Errors
/// What the device reports. What is wrong with the files themselves is in the answer.
pub fn survey(volume: &dyn Volume, db: Option<DbId>) -> Result<Vec<FileSurvey>> {
    let numbers = slot_numbers(volume)?;
    numbers.into_iter().map(|number| survey_file(volume, &slot_name(number), db)).collect()
}

fn survey_file(volume: &dyn Volume, name: &str, db: Option<DbId>) -> Result<FileSurvey> {
    let opened = volume.open(name);
    let file = opened.map_err(|error| RedoError::io("open", name, 0, error))?;
    let mut found = FileSurvey {
        file: name.to_owned(),
        bytes: file.len(),
        header: None,
        problem: None,
        runs: Vec::new(),
    };
    if found.bytes < PAGE {
        let what = "the file is shorter than a header";
        found.problem = (found.bytes > 0).then(|| what.to_owned());
        return Ok(found);
    }
    let mut page = AlignedBuf::zeroed(PAGE as usize);
    let read = file.read_at(0, &mut page);
    read.map_err(|error| RedoError::io("read", name, 0, error))?;
    let said = DbId(u64::from_le_bytes(page[16..24].try_into().expect("eight bytes")));
    let room = align_down(found.bytes).saturating_sub(SEGMENT_HEADER);
    // Once as the log itself would read it, for what is wrong; once believing whatever is sealed.
    match parse_header(&page, name, db.unwrap_or(said), room) {
        Ok(Some(_)) => {}
        // A header is durable before anything behind it is written.
        Ok(None) if is_blank(&*file, name)? => {}
        Ok(None) => {
            found.problem = Some("the header is zeros, and blocks are behind it".to_owned())
        }
        Err(error) => found.problem = Some(error.to_string()),
    }
    let Ok(Some(header)) = parse_header(&page, name, said, u64::MAX) else { return Ok(found) };
    found.header = Some(HeaderSurvey {
        db: said,
        sequence: header.seq,
        start: Lsn(header.start),
        bytes: header.payload,
    });
    found.runs = runs(&*file, name, Seed::of(said), header.start, header.payload.min(room))?;
    Ok(found)
}

/// Whether all of a file is zeros.
fn is_blank(file: &dyn BlockFile, name: &str) -> Result<bool> {
    let mut buf = AlignedBuf::zeroed(PART_BYTES as usize);
    let (mut at, bytes) = (0, align_down(file.len()));
    while at < bytes {
        let part = &mut buf[..PART_BYTES.min(bytes - at) as usize];
        file.read_at(at, part).map_err(|error| RedoError::io("read", name, at, error))?;
        if part.iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
        at += part.len() as u64;
    }
    Ok(true)
}

fn runs(
    file: &dyn BlockFile,
    name: &str,
    seed: Seed,
    start: u64,
    bytes: u64,
) -> Result<Vec<BlockRun>> {
    let mut runs: Vec<BlockRun> = Vec::new();
    let mut buf = AlignedBuf::zeroed(PART_BYTES as usize);
    let mut at = 0;
    while at < bytes {
        let part = &mut buf[..PART_BYTES.min(bytes - at) as usize];
        let offset = SEGMENT_HEADER + at;
        let read = file.read_at(offset, part);
        read.map_err(|error| RedoError::io("read", name, offset, error))?;
        for (i, block) in part.chunks_exact(BLOCK as usize).enumerate() {
            let into = at + i as u64 * BLOCK;
            let place = start + into;
            let (state, end) = match judge(block, seed, place / BLOCK) {
                BlockVerdict::Current(header) => {
                    (BlockState::Current, place + BLOCK_HEADER + u64::from(header.used))
                }
                BlockVerdict::Old => (BlockState::Older, place + BLOCK),
                BlockVerdict::Zeros => (BlockState::Zeros, place + BLOCK),
                BlockVerdict::Damaged => (BlockState::Damaged, place + BLOCK),
            };
            match runs.last_mut() {
                Some(last) if last.state == state => {
                    last.blocks += 1;
                    last.end = Lsn(end);
                }
                _ => runs.push(BlockRun {
                    state,
                    offset: SEGMENT_HEADER + into,
                    blocks: 1,
                    end: Lsn(end),
                }),
            }
        }
        at += part.len() as u64;
    }
    Ok(runs)
}

/// [`crate::scan()`] for a log that is damaged: says how far it came besides what stopped it.
pub fn scan_as_far_as_it_goes(
    volume: &dyn Volume,
    db: DbId,
    from: Lsn,
    mut visit: impl FnMut(crate::Span, &[u8]) -> ControlFlow<()>,
) -> (Lsn, Result<()>) {
    let mut end = from;
    let done = crate::scan(volume, db, from, crate::ScanOptions::default(), |span, body| {
        end = span.end;
        visit(span, body)
    });
    (end, done.map(|found| end = found.end))
}

/// [`crate::scan_chunks`] for a log that is damaged: hands out the groups before what stops it, and
/// says where the last of them ends besides.
pub fn chunks_as_far_as_they_go(
    volume: &dyn Volume,
    db: DbId,
    from: Lsn,
    mut visit: impl FnMut(Chunk),
) -> (Lsn, Result<()>) {
    let mut end = from;
    let done = crate::scan_chunks(volume, db, from, crate::ScanOptions::default(), |chunk| {
        end = chunk.end();
        visit(chunk);
        ControlFlow::Continue(())
    });
    (end, done.map(|found| end = found.end))
}
