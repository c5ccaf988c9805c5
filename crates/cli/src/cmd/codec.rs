//! `weir codec`: how pages of trees are to be packed, shown and changed, here or by the process
//! that has the database open.
use std::io::Write;

use anyhow::{Error, Result};
use weir::{CODEC, CodecAnswer, CodecRequest, Db, PageCodec, TxnOptions};

use super::entries::existing_tree;
use super::through::Through;
use crate::args_trees::{Asked, Codec};
use crate::exit::EXIT_OK;
use crate::opening::{bar, is_in_use, open_existing, open_to_read};
use crate::text::show_bytes;

const BY_HAND: &str = "the process that has the database open must do it: ALTER TABLE ... CODEC= \
                       on a MariaDB server, Db::set_codec in a program; or end it first";
const IN_PLACE: &str = "(pages of this database lie in place, and none are packed: what a tree \
                        asks for is kept for copies in segments)";

/// Changes what a tree asks for, if that is wanted, and prints what it, or each, asks for.
pub(crate) fn codec(args: &Codec) -> Result<u8> {
    let opened = match args.codec {
        Some(_) => open_existing(&args.dir),
        None => open_to_read(&args.dir),
    };
    let db = match opened {
        Err(e) if is_in_use(&e) => return codec_through(args, e),
        opened => opened?,
    };
    let names = match &args.tree {
        Some(name) => vec![name.clone()],
        None => db.tree_names()?,
    };
    for name in &names {
        existing_tree(&db, name)?;
    }
    if let (Some(name), Some(Asked(codec))) = (&args.tree, args.codec) {
        db.set_codec(name, codec)?;
    }
    let trees = names.into_iter().map(|name| asked(&db, name)).collect::<Result<Vec<_>>>()?;
    let packs = db.packs_pages();
    db.close()?;
    say(&trees, packs)
}

fn asked(db: &Db, name: String) -> Result<(String, Option<PageCodec>)> {
    let codec = db.begin(TxnOptions::default()).codec(&name)?.flatten();
    Ok((name, codec))
}

fn say(trees: &[(String, Option<PageCodec>)], packs: bool) -> Result<u8> {
    let mut out = std::io::stdout().lock();
    for (name, codec) in trees {
        let codec = codec.map_or("default", PageCodec::name);
        writeln!(out, "{}\t{codec}", show_bytes(name.as_bytes()))?;
    }
    if !packs {
        eprintln!("{IN_PLACE}");
    }
    Ok(EXIT_OK)
}

/// Has the process do it. `in_use`: why the database could not be opened here.
fn codec_through(args: &Codec, in_use: Error) -> Result<u8> {
    let through =
        Through { dir: &args.dir.path, question: CODEC, what: "question", by_hand: BY_HAND };
    let codec = args.codec.map(|Asked(codec)| codec);
    let request = CodecRequest { tree: args.tree.clone(), codec };
    let put = through.put(request.ask(&args.dir.path), in_use)?;
    let (text, in_use) = put.answer(&bar("asking"), &|| false)?;
    let answer = CodecAnswer::from_text(&text).unwrap_or_else(|| CodecAnswer {
        failed: Some("its answer cannot be read".into()),
        ..CodecAnswer::default()
    });
    match answer.failed {
        Some(why) => Err(in_use.context(format!("it could not ({why}): {BY_HAND}"))),
        None => say(&answer.trees, answer.packs),
    }
}
