//! `weir dump`: what is on disk in words, also of a database that does not open.
use crate::args::{Dump, DumpDir};
use crate::exit::{EXIT_FINDINGS, EXIT_OK};
use crate::opening::must_exist;
use anyhow::{Context, Result};
use std::io::Write;
use weir_base::{Lsn, PageNo, TxnId};
use weir_dump::{Files, LogQuery, PageQuery, Sound};

/// Prints pages, log, control file or catalog.
pub(crate) fn dump(args: &Dump) -> Result<u8> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let sound = match args {
        Dump::Page(args) => {
            let files = open(&args.dir)?;
            match args.page {
                Some(page) => {
                    let query = PageQuery { from: PageNo(page), count: args.count };
                    weir_dump::page(&files, query, &mut out)?
                }
                None => {
                    let all = PageQuery { from: PageNo(0), count: u32::MAX };
                    weir_dump::pages(&files, all, &mut out)?
                }
            }
        }
        Dump::Log(args) => {
            let query = LogQuery {
                from: args.from.map(Lsn),
                page: args.page.map(PageNo),
                txn: args.transaction.map(TxnId),
                limit: args.limit,
            };
            weir_dump::log(&open(&args.dir)?, query, &mut out)?
        }
        Dump::Control(args) => weir_dump::control(&open(args)?, &mut out)?,
        Dump::Catalog(args) => weir_dump::catalog(&open(args)?, &mut out)?,
    };
    out.flush()?;
    Ok(if sound == Sound::Yes { EXIT_OK } else { EXIT_FINDINGS })
}

fn open(dir: &DumpDir) -> Result<Files> {
    must_exist(&dir.path)?;
    let page_size = dir.page_size.map(|size| size as usize);
    Files::open_encrypted(&dir.path, page_size, crate::keys::given().as_ref())
        .with_context(|| format!("opening {}", dir.path.display()))
}
