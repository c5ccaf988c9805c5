//! A compaction that another process asks for: `weir compact` of a database that is open here
//! (`docs/decisions/compact.md`). The other process may withdraw its request, which ends it.
use std::io;
use std::path::Path;
use std::sync::Arc;

use weir_base::Clock;
use weir_btree::{Tree as RawTree, TreeError};
use weir_device::Volume;
use weir_txn::Background;

use crate::asked::{Answer, Asked, COMPACT, from_hex, is_requested, requested, to_hex};
use crate::catalog_entries::{names_and_trees, no_tree};
use crate::compactor::{CompactOptions, Compacted, Compactor};
use crate::error::Error;

/// It is looked so often whether the request is still there.
const LOOK_MICROS: u64 = 500_000;
/// Bytes of a line of an answer, besides the tree's name.
const LINE_BYTES: usize = 100;
/// Bytes of an answer besides.
const OTHER_BYTES: usize = 8 << 10;
/// So many transactions are completed at once before it begins, and so often: what is only marked
/// deleted goes first. Beside work there are ever more of them.
const PURGED: usize = 64;
const PURGES_MAX: usize = 1_000;

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactRequest {
    /// As [`CompactOptions::bytes_per_second`].
    pub bytes_per_second: Option<u64>,
    /// These trees; none: all.
    pub trees: Vec<String>,
}

/// What a compaction of several trees has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactAnswer {
    /// Each tree that it came to, and whether it was dropped meanwhile.
    pub trees: Vec<(String, Compacted, bool)>,
    /// Why it ended before all was done, if it failed.
    pub failed: Option<String>,
}

impl CompactRequest {
    /// Asks the process that has the database in `dir` open.
    ///
    /// # Errors
    /// As [`Asked::ask`].
    pub fn ask(&self, dir: &Path) -> io::Result<Asked> {
        Asked::ask(dir, COMPACT, &self.to_text())
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        if let Some(rate) = self.bytes_per_second {
            text.push_str(&format!("rate {rate}\n"));
        }
        for name in &self.trees {
            text.push_str(&format!("tree {}\n", to_hex(name)));
        }
        text
    }

    /// `None`: that is no request.
    fn from_text(text: &str) -> Option<CompactRequest> {
        let mut request = CompactRequest::default();
        for line in text.lines() {
            match line.split_once(' ')? {
                ("rate", rate) => request.bytes_per_second = Some(rate.parse().ok()?),
                ("tree", name) => request.trees.push(from_hex(name)?),
                _ => return None,
            }
        }
        Some(request)
    }
}

impl CompactAnswer {
    fn to_text(&self) -> String {
        let mut text = String::new();
        for (name, done, is_gone) in &self.trees {
            let Compacted { leaves, pages_freed, pages_moved, next } = done;
            let state = match (is_gone, next) {
                (true, _) => "gone",
                (false, Some(_)) => "ended",
                (false, None) => "whole",
            };
            let name = to_hex(name);
            text.push_str(&format!("tree {leaves} {pages_freed} {pages_moved} {state} {name}\n"));
        }
        match &self.failed {
            Some(why) => text.push_str(&format!("failed {}\n", why.replace('\n', " "))),
            None => text.push_str("done\n"),
        }
        text
    }

    /// Reads what the process said; `None`: it cannot be read.
    #[must_use]
    pub fn from_text(text: &str) -> Option<CompactAnswer> {
        let mut answer = CompactAnswer::default();
        let mut is_whole = false;
        for line in text.lines() {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("tree", rest) => answer.trees.push(tree_of(rest)?),
                ("failed", why) => answer.failed = Some(why.to_owned()),
                ("done", _) => is_whole = true,
                _ => return None,
            }
        }
        (is_whole || answer.failed.is_some()).then_some(answer)
    }
}

/// A tree's line in an answer.
fn tree_of(line: &str) -> Option<(String, Compacted, bool)> {
    let mut words = line.split(' ');
    let mut number = || words.next()?.parse().ok();
    let (leaves, pages_freed, pages_moved) = (number()?, number()?, number()?);
    let (state, name) = (words.next()?, from_hex(words.next()?)?);
    // Where it was ended is not said: it is begun anew.
    let next = (state == "ended").then(Vec::new);
    Some((name, Compacted { leaves, pages_freed, pages_moved, next }, state == "gone"))
}

/// What compactions for other processes need of a database.
#[derive(Clone)]
pub(crate) struct CompactSite {
    pub(crate) compactor: Compactor,
    pub(crate) catalog: RawTree,
    pub(crate) background: Arc<Background>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// Answers a request if there is one; `go_on` is asked between steps.
///
/// # Errors
/// What kept a tree from being compacted; the other process has it, too. What fails otherwise is of
/// no matter to the database: there is no answer then.
pub(crate) fn answer(
    site: &CompactSite,
    volume: &dyn Volume,
    go_on: &dyn Fn() -> bool,
) -> Result<(), Error> {
    let Some(text) = requested(volume, COMPACT) else { return Ok(()) };
    let done = CompactRequest::from_text(&text)
        .map_or(Ok(()), |request| answer_to(site, volume, &request, go_on));
    // Else the same would be tried again and again.
    let _ = volume.remove(COMPACT.request);
    done
}

fn answer_to(
    site: &CompactSite,
    volume: &dyn Volume,
    request: &CompactRequest,
    go_on: &dyn Fn() -> bool,
) -> Result<(), Error> {
    let trees = trees_of(site, &request.trees);
    let names = trees.iter().flatten().map(|(name, _)| 2 * name.len() + LINE_BYTES);
    let bytes = names.sum::<usize>() + OTHER_BYTES;
    let Ok(mut said) = Answer::begin(volume, COMPACT, bytes, &*site.clock) else { return Ok(()) };
    let mut answer = CompactAnswer::default();
    let done = trees.and_then(|trees| {
        let options = CompactOptions {
            bytes_per_second: request.bytes_per_second,
            ..CompactOptions::default()
        };
        let purge = || go_on() && site.background.purge_some(PURGED, false) > 0;
        let _ = (0..PURGES_MAX).all(|_| purge());
        let of = trees.iter().map(|(_, tree)| leaves(tree)).sum::<u64>();
        let mut before = 0;
        let mut looked = site.clock.now_micros();
        for (name, tree) in trees {
            let mut progress = |done: &Compacted| {
                said.progress((before + done.leaves + done.pages_freed).min(of), of);
                let now = site.clock.now_micros();
                let is_due = now >= looked + LOOK_MICROS;
                looked = if is_due { now } else { looked };
                Ok::<bool, TreeError>(go_on() && (!is_due || is_requested(volume, COMPACT)))
            };
            let size = leaves(&tree);
            match site.compactor.run(&tree, &options, &mut progress) {
                Err(Error::NoTree(_)) => answer.trees.push((name, Compacted::default(), true)),
                done => answer.trees.push((name, done?, false)),
            }
            before += size;
            if answer.trees.last().is_some_and(|(_, done, _)| done.next.is_some()) {
                break;
            }
        }
        Ok(())
    });
    answer.failed = done.as_ref().err().map(ToString::to_string);
    let _ = said.end(&answer.to_text());
    done
}

/// About how many leaves a tree has; one that cannot be read says so when it is its turn.
fn leaves(tree: &RawTree) -> u64 {
    tree.size().map_or(0, |size| size.leaf_pages)
}

fn trees_of(site: &CompactSite, names: &[String]) -> Result<Vec<(String, RawTree)>, Error> {
    let all = names_and_trees(&site.compactor.context, &site.catalog)?;
    if names.is_empty() {
        return Ok(all);
    }
    let of = |name: &String| match all.iter().find(|(there, _)| there == name) {
        Some(found) => Ok(found.clone()),
        None => Err(no_tree(name, all.iter().map(|(name, _)| &name[..]))),
    };
    names.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_answers_are_read_as_they_were_made() {
        for request in [
            CompactRequest::default(),
            CompactRequest {
                bytes_per_second: Some(7),
                trees: vec!["a b".into(), "line\nbreak \u{e4}".into()],
            },
        ] {
            assert_eq!(CompactRequest::from_text(&request.to_text()), Some(request));
        }
        for text in ["rate\n", "rate x\n", "tree 0g\n", "tree ff\n", "else 1\n"] {
            assert_eq!(CompactRequest::from_text(text), None, "{text}");
        }
        let done = Compacted { leaves: 1, pages_freed: 2, pages_moved: 3, next: None };
        let ended = Compacted { next: Some(Vec::new()), ..done.clone() };
        let trees = vec![
            ("a b".to_owned(), done.clone(), false),
            ("c".to_owned(), ended, false),
            ("d".to_owned(), Compacted::default(), true),
        ];
        for failed in [None, Some("page 3 is damaged".to_owned())] {
            let answer = CompactAnswer { trees: trees.clone(), failed };
            assert_eq!(CompactAnswer::from_text(&answer.to_text()), Some(answer));
        }
        for text in ["", "tree 1 2 3 whole 61\n", "tree 1 2\ndone\n", "what\n"] {
            assert_eq!(CompactAnswer::from_text(text), None, "{text}");
        }
    }
}
