//! `weir key`: makes key files, and has a database take a new version of its key.
use crate::args::Key;
use crate::exit::EXIT_OK;
use crate::opening::{is_in_use, open_existing};
use anyhow::{Context, Result, bail};
use weir::KeyFile;

/// Makes, adds or rotates a key.
pub(crate) fn key(args: &Key) -> Result<u8> {
    match args {
        Key::New(args) => {
            let path = args.file.display();
            match KeyFile::generate(&args.file, false) {
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                    bail!("{path} is there already; 'weir key add' adds a version to it")
                }
                made => made.with_context(|| format!("making {path}"))?,
            };
            println!("{path}: key 1, version 1 (keep a copy elsewhere: without it data are lost)");
        }
        Key::Add(args) => {
            let path = args.file.display();
            if !args.file.exists() {
                bail!("there is no {path}; 'weir key new' makes it");
            }
            let added = KeyFile::generate(&args.file, true);
            let version = added.with_context(|| format!("adding to {path}"))?;
            println!(
                "{path}: key 1, version {version} (databases that are open take it within a minute)"
            );
        }
        Key::Rotate(args) => {
            let db = match open_existing(&args.dir) {
                Err(e) if is_in_use(&e) => {
                    return Err(e.context(
                        "the process that has the database open takes a new version by itself, \
                         within a minute of 'weir key add'",
                    ));
                }
                db => db?,
            };
            let name = db.rotate_key()?;
            db.close()?;
            println!("{}: {name}", args.dir.path.display());
        }
    }
    Ok(EXIT_OK)
}
