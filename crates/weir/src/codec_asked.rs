//! Codecs of trees that another process asks for, to see or to change: `weir codec` of a database
//! that is open here (`docs/decisions/check-through.md`).
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use weir_base::{Clock, PageNo, TreeId};
use weir_btree::Tree as RawTree;
use weir_device::Volume;
use weir_pool::{PageCodec, Pool};
use weir_redo::{Durability, Log};
use weir_txn::{Background, Context, Intent, Isolation, Kind, Txn, TxnError, Wait};

use crate::asked::{Answer, Asked, CODEC, from_hex, requested, to_hex};
use crate::catalog_entries::{codec_in, encode, entry, for_each_entry, no_tree};
use crate::error::Error;

/// So long it waits for a transaction that has made, renamed or changed the tree: less than the
/// other process waits for an answer.
const LOCK_WAIT: Duration = Duration::from_secs(4);
/// Bytes of a line of an answer, besides the tree's name.
const LINE_BYTES: usize = 32;
/// Bytes of an answer besides.
const OTHER_BYTES: usize = 8 << 10;
/// How the codec of a tree is called that asks for none.
const DEFAULT: &str = "default";

/// What is asked for: what all trees ask for, or one, or to have one ask for another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodecRequest {
    /// This tree; `None`: all.
    pub tree: Option<String>,
    /// What it is to ask for from now on, if that is to change: as [`crate::Db::set_codec`].
    pub codec: Option<Option<PageCodec>>,
}

/// What trees ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodecAnswer {
    /// Trees and their codecs, in the order of their names.
    pub trees: Vec<(String, Option<PageCodec>)>,
    /// Whether pages are packed, so that a codec has an effect.
    pub packs: bool,
    /// Why there is nothing else, if it failed.
    pub failed: Option<String>,
}

fn name_of(codec: Option<PageCodec>) -> &'static str {
    codec.map_or(DEFAULT, PageCodec::name)
}

fn named(name: &str) -> Option<Option<PageCodec>> {
    match name {
        DEFAULT => Some(None),
        name => name.parse().ok().map(Some),
    }
}

impl CodecRequest {
    /// Asks the process that has the database in `dir` open.
    ///
    /// # Errors
    /// As [`Asked::ask`].
    pub fn ask(&self, dir: &Path) -> io::Result<Asked> {
        Asked::ask(dir, CODEC, &self.to_text())
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        if let Some(name) = &self.tree {
            text.push_str(&format!("tree {}\n", to_hex(name)));
        }
        if let Some(codec) = self.codec {
            text.push_str(&format!("codec {}\n", name_of(codec)));
        }
        text
    }

    /// `None`: that is no request.
    fn from_text(text: &str) -> Option<CodecRequest> {
        let mut request = CodecRequest::default();
        for line in text.lines() {
            match line.split_once(' ')? {
                ("tree", name) => request.tree = Some(from_hex(name)?),
                ("codec", name) => request.codec = Some(named(name)?),
                _ => return None,
            }
        }
        (request.tree.is_some() || request.codec.is_none()).then_some(request)
    }
}

impl CodecAnswer {
    fn to_text(&self) -> String {
        let mut text = String::new();
        for (name, codec) in &self.trees {
            text.push_str(&format!("tree {} {}\n", name_of(*codec), to_hex(name)));
        }
        if self.packs {
            text.push_str("packs\n");
        }
        match &self.failed {
            Some(why) => text.push_str(&format!("failed {}\n", why.replace('\n', " "))),
            None => text.push_str("done\n"),
        }
        text
    }

    /// Reads what the process said; `None`: it cannot be read.
    #[must_use]
    pub fn from_text(text: &str) -> Option<CodecAnswer> {
        let mut answer = CodecAnswer::default();
        let mut is_whole = false;
        for line in text.lines() {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("tree", rest) => {
                    let (codec, name) = rest.split_once(' ')?;
                    answer.trees.push((from_hex(name)?, named(codec)?));
                }
                ("packs", _) => answer.packs = true,
                ("failed", why) => answer.failed = Some(why.to_owned()),
                ("done", _) => is_whole = true,
                _ => return None,
            }
        }
        (is_whole || answer.failed.is_some()).then_some(answer)
    }
}

/// What codecs for other processes need of a database.
#[derive(Clone)]
pub(crate) struct CodecSite {
    pub(crate) context: Arc<Context>,
    pub(crate) catalog: RawTree,
    pub(crate) pool: Arc<Pool>,
    pub(crate) log: Arc<Log>,
    pub(crate) background: Arc<Background>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// Answers a request if there is one. What fails here is of no matter to the database unless it has
/// halted it: the process that asked gets it.
pub(crate) fn answer(site: &CodecSite, volume: &dyn Volume) {
    let Some(text) = requested(volume, CODEC) else { return };
    if let Some(request) = CodecRequest::from_text(&text) {
        let done = site.do_as(&request);
        let answer = done.unwrap_or_else(|e| CodecAnswer {
            failed: Some(e.to_string()),
            ..CodecAnswer::default()
        });
        let names = answer.trees.iter().map(|(name, _)| 2 * name.len() + LINE_BYTES);
        let bytes = names.sum::<usize>() + OTHER_BYTES;
        if let Ok(said) = Answer::begin(volume, CODEC, bytes, &*site.clock) {
            let _ = said.end(&answer.to_text());
        }
    }
    // Else the same would be tried again and again.
    let _ = volume.remove(CODEC.request);
}

impl CodecSite {
    fn do_as(&self, request: &CodecRequest) -> Result<CodecAnswer, Error> {
        if let CodecRequest { tree: Some(name), codec: Some(codec) } = request {
            self.set(name, *codec)?;
        }
        let mut trees = Vec::new();
        for_each_entry(&self.context, &self.catalog, |name, value| {
            trees.push((String::from_utf8_lossy(name).into_owned(), codec_in(value)));
        })?;
        if let Some(name) = &request.tree {
            let there = || trees.iter().map(|(name, _)| &name[..]);
            let found = trees.iter().find(|(tree, _)| tree == name).cloned();
            trees = vec![found.ok_or_else(|| no_tree(name, there()))?];
        }
        let packs = self.pool.store().room_pages().is_some();
        Ok(CodecAnswer { trees, packs, failed: None })
    }

    /// As [`crate::Db::set_codec`]; that there is no such tree is found later.
    fn set(&self, name: &str, codec: Option<PageCodec>) -> Result<(), Error> {
        let mut txn = Txn::new(Isolation::ReadCommitted, Wait::Until(LOCK_WAIT));
        let set = self.set_in(&mut txn, name, codec);
        if !txn.has_ended() {
            // What fails is gone on with in the background.
            let due = txn.rollback(&self.context);
            due.map(|due| self.background.after(due))?;
        }
        set
    }

    fn set_in(&self, txn: &mut Txn, name: &str, codec: Option<PageCodec>) -> Result<(), Error> {
        let Some((id, root, before)) = self.lock_entry(txn, name)? else { return Ok(()) };
        let value = encode(id, root, codec);
        let intent = Intent::Put(&value);
        txn.change(&self.context, &self.catalog, name.as_bytes(), intent)?;
        // Before the commit, while the entry is locked: of two changes the later one is the later
        // one here, too.
        self.pool.store().set_codec(id, codec);
        let ended = txn.commit(&self.context).inspect_err(|_: &TxnError| {
            self.pool.store().set_codec(id, before);
        })?;
        self.background.after(ended.due);
        ended.end.map_or(Ok(()), |end| Ok(self.log.wait(end, Durability::Synced)?))
    }

    /// Locks a tree's entry; its number, its root and what it asks for.
    fn lock_entry(
        &self,
        txn: &mut Txn,
        name: &str,
    ) -> Result<Option<(TreeId, PageNo, Option<PageCodec>)>, Error> {
        let (key, mut value) = (name.as_bytes(), Vec::new());
        let kind = Kind::Exclusive;
        let found = txn.get_locked(&self.context, &self.catalog, key, kind, &mut value)?;
        let entry = found.then(|| entry(&value)).transpose()?;
        Ok(entry.map(|(id, root)| (id, root, codec_in(&value))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_answers_are_read_as_they_were_made() {
        let codecs = [None, Some(None), Some(Some(PageCodec::None)), Some(Some(PageCodec::Zstd))];
        for codec in codecs {
            let tree = Some("line\nbreak \u{e4}".to_owned());
            let request = CodecRequest { tree, codec };
            assert_eq!(CodecRequest::from_text(&request.to_text()), Some(request));
        }
        assert_eq!(CodecRequest::from_text(""), Some(CodecRequest::default()));
        for text in ["codec lz4\n", "tree 0g\n", "tree 61\ncodec gzip\n", "else 1\n", "tree\n"] {
            assert_eq!(CodecRequest::from_text(text), None, "{text}");
        }
        let trees = vec![("a b".to_owned(), None), ("c".to_owned(), Some(PageCodec::Lz4))];
        for failed in [None, Some("page 3 is damaged".to_owned())] {
            let answer = CodecAnswer { trees: trees.clone(), packs: failed.is_none(), failed };
            assert_eq!(CodecAnswer::from_text(&answer.to_text()), Some(answer));
        }
        for text in ["", "packs\n", "tree lz4\ndone\n", "tree gzip 61\ndone\n", "what\n"] {
            assert_eq!(CodecAnswer::from_text(text), None, "{text}");
        }
    }
}
