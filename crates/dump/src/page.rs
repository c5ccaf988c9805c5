//! `weir dump page`: pages as they lie in the data file, in one line each or in full.
use std::io::{self, Write};

use weir::on_disk::ChainHead;
use weir_base::{DbId, PageNo};
use weir_change::map_bit;
use weir_page::{Bytes, HEADER_BYTES, Kind, Node, check, verify};

use crate::data_file::StoredPage;
use crate::files::{Files, Sound};
use crate::words::{brief, page_name, show_bytes};

/// Which pages.
#[derive(Clone, Copy, Debug)]
pub struct PageQuery {
    /// The first.
    pub from: PageNo,
    /// How many at most.
    pub count: u32,
}

/// Why the data file cannot be shown as pages.
fn no_pages(files: &Files, out: &mut dyn Write) -> io::Result<Sound> {
    match files.page_size {
        None => writeln!(
            out,
            "nothing says how large a page is, and no size fits the data file: name one"
        )?,
        Some(_) => writeln!(out, "there is no data file: no 'pages', no 'segments'")?,
    }
    Ok(Sound::No)
}

/// Prints a line for each page of the data file, in the query's range.
///
/// # Errors
/// Those of `out`, and what the device reports.
pub fn pages(files: &Files, query: PageQuery, out: &mut dyn Write) -> io::Result<Sound> {
    each(files, query, out, false)
}

/// Prints each page of the range in full: every row, separator, bit.
///
/// # Errors
/// Those of `out`, and what the device reports.
pub fn page(files: &Files, query: PageQuery, out: &mut dyn Write) -> io::Result<Sound> {
    each(files, query, out, true)
}

fn each(files: &Files, query: PageQuery, out: &mut dyn Write, full: bool) -> io::Result<Sound> {
    files.remark(out)?;
    let (Some(size), Some(file)) = (files.page_size, files.data_file()?) else {
        return no_pages(files, out);
    };
    let mut sound = Sound::Yes;
    let (there, name) = (file.pages(size), file.name());
    if let Some(len) = file.cut_at(size) {
        sound = Sound::No;
        writeln!(out, "'{name}' ends at byte {len}, in the middle of page {there}")?;
    }
    if u64::from(query.from.0) >= there {
        writeln!(out, "'{name}' has {there} pages: there is no page {}", query.from)?;
        return Ok(Sound::No);
    }
    let end = query.from.0.saturating_add(query.count);
    let mut zeros = Zeros::default();
    for page_no in (query.from.0..end).map(PageNo) {
        let page = match file.read(page_no, size)? {
            StoredPage::Page(page) => page,
            StoredPage::Damaged(why) => {
                zeros.print(out)?;
                sound = Sound::No;
                writeln!(out, "page {page_no}: DAMAGED: {why}")?;
                continue;
            }
            StoredPage::Beyond => break,
        };
        if zeros.takes(&page, page_no) {
            continue;
        }
        zeros.print(out)?;
        // Taken to be of the database that it names, where nothing else says of which.
        let fault = fault(&page, files.db, page_no);
        sound.and(fault.is_none());
        print_line(&page, page_no, fault.as_deref(), out)?;
        if full {
            writeln!(out, "  {}", file.place(page_no, size))?;
            in_full(&page, page_no, out)?;
        }
    }
    zeros.print(out)?;
    Ok(sound)
}

/// Pages of zeros that lie side by side: one line for all.
#[derive(Default)]
struct Zeros {
    range: Option<(PageNo, PageNo)>,
}

impl Zeros {
    fn takes(&mut self, page: &[u8], page_no: PageNo) -> bool {
        let is_zero = page.iter().all(|&byte| byte == 0);
        if is_zero {
            let first = self.range.map_or(page_no, |(first, _)| first);
            self.range = Some((first, page_no));
        }
        is_zero
    }

    fn print(&mut self, out: &mut dyn Write) -> io::Result<()> {
        match self.range.take() {
            None => Ok(()),
            Some((first, last)) if first == last => {
                writeln!(out, "page {first}: zeros, never written")
            }
            Some((first, last)) => writeln!(out, "pages {first} to {last}: zeros, never written"),
        }
    }
}

/// What is wrong with a page. One that was never written is no fault.
pub(crate) fn fault(page: &[u8], db: Option<DbId>, page_no: PageNo) -> Option<String> {
    if page.iter().all(|&byte| byte == 0) {
        return None;
    }
    let mark = page.u32_at(28);
    let db = db.unwrap_or(DbId(u64::from(mark)));
    let verified = verify(page, db, page_no).and_then(|()| check(page));
    verified.err().map(|damage| damage.to_string())
}

fn print_line(
    page: &[u8],
    page_no: PageNo,
    fault: Option<&str>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let node = Node::new(page);
    let what = match node.kind() {
        Some(Kind::Free) => "free".to_owned(),
        Some(Kind::Leaf) => format!(
            "leaf of tree {}, {} rows, {} marked deleted, {} bytes free",
            node.tree(),
            node.count(),
            node.marks(),
            node.free_bytes()
        ),
        Some(Kind::Inner) => format!(
            "inner node of tree {}, level {}, {} children, {} bytes free",
            node.tree(),
            node.level(),
            node.count() + 1,
            node.free_bytes()
        ),
        Some(Kind::Overflow) => {
            format!("overflow, {} bytes, next {}", node.data_len(), page_name(node.link()))
        }
        Some(Kind::SpaceMap) => "space map".to_owned(),
        Some(Kind::Meta) => "era".to_owned(),
        None => format!("of no known kind ({})", page.u8_at(16)),
    };
    write!(out, "page {page_no}: {what}, LSN {}", node.lsn())?;
    match fault {
        None => writeln!(out),
        Some(fault) => writeln!(out, "; DAMAGED: {fault}"),
    }
}

/// Everything that the page holds. Total on any bytes, since `Node` is (PAGE-5).
fn in_full(page: &[u8], page_no: PageNo, out: &mut dyn Write) -> io::Result<()> {
    let node = Node::new(page);
    match node.kind() {
        Some(Kind::Leaf) => rows(node, out),
        Some(Kind::Inner) => children(node, out),
        Some(Kind::Overflow) => {
            // The chain's number comes first (`weir_btree`, MARK_BYTES).
            writeln!(out, "  chain {:016x}", page.u64_at(HEADER_BYTES))?;
            writeln!(out, "  data {}", brief(node.data().get(8..).unwrap_or_default()))
        }
        Some(Kind::SpaceMap) => taken(page, page_no, out),
        Some(Kind::Meta) => {
            let (number, mark) = (page.u64_at(HEADER_BYTES), page.u64_at(HEADER_BYTES + 8));
            writeln!(out, "  era {number} (mark {mark:016x})")
        }
        Some(Kind::Free) | None => Ok(()),
    }
}

fn rows(node: Node<&[u8]>, out: &mut dyn Write) -> io::Result<()> {
    if node.prefix_len() > 0 {
        writeln!(out, "  prefix {}", brief(node.prefix()))?;
    }
    for slot in 0..node.count() {
        let (stamp, flags) = (node.stamp(slot), node.flags(slot));
        write!(out, "  row {slot}: {}", brief(&node.key(slot)))?;
        if flags.deleted {
            write!(out, " deleted")?;
        }
        let value = node.value(slot);
        let chain = if flags.overflow { ChainHead::split(value) } else { None };
        match chain {
            Some((head, front)) => {
                let (len, first, mark) = (head.len, head.first, head.mark);
                write!(out, " = {} and {len} bytes from page {first}", brief(front))?;
                write!(out, " (chain {mark:016x})")?;
            }
            None if flags.overflow => write!(out, " = a reference that cannot be read")?,
            None => write!(out, " = {}", brief(value))?,
        }
        writeln!(out, "; transaction {}, change {}", stamp.writer, stamp.seq)?;
    }
    Ok(())
}

fn children(node: Node<&[u8]>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "  below all: page {}", page_name(node.child(0)))?;
    for slot in 0..node.count() {
        let child = page_name(node.child(slot + 1));
        writeln!(out, "  from {} on: page {child}", show_bytes(&node.key(slot)))?;
    }
    Ok(())
}

/// The pages that a space map says are taken, as ranges.
fn taken(page: &[u8], page_no: PageNo, out: &mut dyn Write) -> io::Result<()> {
    let bits = (page.len() - HEADER_BYTES) as u32 * 8;
    let is_set = |bit: u32| bit < bits && map_bit(page, bit) == Some(true);
    let mut bit = 0;
    let mut total = 0;
    while bit < bits {
        if !is_set(bit) {
            bit += 1;
            continue;
        }
        let first = bit;
        while is_set(bit) {
            bit += 1;
        }
        total += bit - first;
        let (from, to) = (u64::from(page_no.0) + u64::from(first), u64::from(page_no.0 + bit) - 1);
        writeln!(out, "  taken: pages {from} to {to}")?;
    }
    writeln!(out, "  {total} of {bits} pages taken")
}
