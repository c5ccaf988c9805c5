//! Trees: ordered maps of bytes.
use std::cell::RefCell;
use std::ffi::c_void;

use weir::{Durability, Error, PageCodec, Tree};

use crate::borrow::{give, place, put, shared, show, taken, weir_bytes, weir_visit};
use crate::db::{durability, weir_db};
use crate::outcome::{Failure, found, run, weir_code, wrong};
use crate::txn::{weir_lock, weir_txn};

/// An ordered map of bytes. All threads may use it.
pub struct weir_tree {
    pub(crate) tree: Tree,
}

thread_local! {
    /// What the last read without a transaction has found.
    static VALUE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Opens a tree by its name, and makes it if need be and `make` says so. WEIR_NOTHING: there is
/// none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tree_open(
    db: *const weir_db,
    name: weir_bytes,
    make: bool,
    out: *mut *mut weir_tree,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, name) = unsafe { (&shared(db)?.db, name.text()?) };
        let tree = if make { Some(db.open_tree(name)?) } else { db.tree(name)? };
        let Some(tree) = tree else { return Ok(weir_code::WEIR_NOTHING) };
        // SAFETY: the contract of `borrow`.
        unsafe { give(out, weir_tree { tree })? };
        Ok(weir_code::WEIR_OK)
    })
}

/// Has pages of a tree packed by another codec from their next write on: "none", "lz4", "zstd", or
/// "" as the store chooses. Where pages are kept in place (`weir_packs_pages`) it is kept, for a
/// copy that packs, and has no effect. Durable when it returns. WEIR_NOTHING: there is no such
/// tree.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tree_set_codec(
    db: *const weir_db,
    name: weir_bytes,
    codec: weir_bytes,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, name, codec) = unsafe { (&shared(db)?.db, name.text()?, codec.text()?) };
        Ok(found(db.set_codec(name, codec_named(codec)?)?))
    })
}

/// Whether pages are packed, so that a codec has an effect: in segments they are, in place not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_packs_pages(db: *const weir_db, out: *mut bool) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        unsafe { put(out, shared(db)?.db.packs_pages())? };
        Ok(weir_code::WEIR_OK)
    })
}

/// The codec of this name; none: as the store chooses.
pub(crate) fn codec_named(name: &str) -> Result<Option<PageCodec>, Failure> {
    let named = (!name.is_empty()).then(|| name.parse().map_err(Error::Config)).transpose();
    Ok(named?)
}

/// Gives a tree's handle back. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tree_close(tree: *mut weir_tree) {
    // SAFETY: the contract of `borrow`.
    run(|| Ok(unsafe { taken(tree) }.map_or(weir_code::WEIR_NOTHING, |_| weir_code::WEIR_OK)));
}

/// Drops a tree; no caller may use it any more. WEIR_NOTHING: there was none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tree_drop(db: *const weir_db, name: weir_bytes) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, name) = unsafe { (&shared(db)?.db, name.text()?) };
        Ok(found(db.drop_tree(name)?))
    })
}

/// Shows the names of all trees, in order, those of tables included.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tree_names(
    db: *const weir_db,
    visit: weir_visit,
    context: *mut c_void,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        for name in unsafe { &shared(db)?.db }.tree_names()? {
            // SAFETY: the contract of `borrow`.
            unsafe { show(visit, context, name.as_bytes()) };
        }
        Ok(weir_code::WEIR_OK)
    })
}

/// Reads the value at a key; `lock` is a weir_lock. Without a transaction (NULL) it reads what is
/// committed and locks nothing; the bytes are good until this thread's next such read. With one:
/// until its next read through a tree.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tree_get(
    tree: *const weir_tree,
    txn: *const weir_txn,
    key: weir_bytes,
    lock: u32,
    value: *mut weir_bytes,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (tree, key) = unsafe { (&shared(tree)?.tree, key.given()?) };
        if txn.is_null() {
            return VALUE.with(|buffer| {
                let mut buffer = buffer.borrow_mut();
                let there = tree.get_into(key, &mut buffer)?;
                // SAFETY: the contract of `borrow`.
                unsafe { put(value, weir_bytes::of(&buffer))? };
                Ok(found(there))
            });
        }
        // SAFETY: the contract of `borrow`.
        let inner = unsafe { shared(txn)?.inner_to_wait()? };
        let (txn, buffer) = (&mut inner.txn, &mut inner.value);
        let there = match lock {
            l if l == weir_lock::WEIR_LOCK_NONE as u32 => txn.get_into(tree, key, buffer)?,
            l if l == weir_lock::WEIR_LOCK_SHARE as u32 => txn.get_for_share(tree, key, buffer)?,
            l if l == weir_lock::WEIR_LOCK_UPDATE as u32 => {
                txn.get_for_update(tree, key, buffer)?
            }
            other => return Err(wrong(format!("{other} is no weir_lock"))),
        };
        // SAFETY: the contract of `borrow`.
        unsafe { put(value, weir_bytes::of(buffer))? };
        Ok(found(there))
    })
}

/// Inserts a row or replaces its value, by a transaction.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tree_put(
    tree: *const weir_tree,
    txn: *const weir_txn,
    key: weir_bytes,
    value: weir_bytes,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (tree, txn) = unsafe { (&shared(tree)?.tree, shared(txn)?.inner_to_wait()?) };
        // SAFETY: the contract of `borrow`.
        let (key, value) = unsafe { (key.given()?, value.given()?) };
        txn.txn.put(tree, key, value)?;
        Ok(weir_code::WEIR_OK)
    })
}

/// Inserts a row, by a transaction. WEIR_DUPLICATE: there is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tree_insert(
    tree: *const weir_tree,
    txn: *const weir_txn,
    key: weir_bytes,
    value: weir_bytes,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (tree, txn) = unsafe { (&shared(tree)?.tree, shared(txn)?.inner_to_wait()?) };
        // SAFETY: the contract of `borrow`.
        let (key, value) = unsafe { (key.given()?, value.given()?) };
        txn.txn.insert(tree, key, value)?;
        Ok(weir_code::WEIR_OK)
    })
}

/// Removes a row, by a transaction. WEIR_NOTHING: there was none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tree_delete(
    tree: *const weir_tree,
    txn: *const weir_txn,
    key: weir_bytes,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (tree, txn) = unsafe { (&shared(tree)?.tree, shared(txn)?.inner_to_wait()?) };
        // SAFETY: the contract of `borrow`.
        Ok(found(txn.txn.delete(tree, unsafe { key.given()? })?))
    })
}

/// Is given the next entry, in ascending key order: fills both and returns true, or returns false
/// at the end. What it names must stay until its next call.
pub type weir_next_entry = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        key: *mut weir_bytes,
        value: *mut weir_bytes,
    ) -> bool,
>;

/// Fills an empty tree from sorted entries: all or nothing, durable when it returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tree_bulk_load(
    tree: *const weir_tree,
    next: weir_next_entry,
    context: *mut c_void,
    count: *mut u64,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let tree = unsafe { &shared(tree)?.tree };
        let next = next.ok_or_else(|| wrong("there is no function to ask for entries"))?;
        place(count)?;
        // Dropped before it is finished, it leaves the tree empty.
        let mut load = tree.load()?;
        loop {
            let none = weir_bytes::of(&[]);
            let (mut key, mut value) = (none, none);
            // SAFETY: the caller of the interface has given a function of this kind.
            if !unsafe { next(context, &raw mut key, &raw mut value) } {
                break;
            }
            // SAFETY: the caller vouches for what that has filled in, until its next call.
            unsafe { load.push(key.given()?, value.given()?)? };
        }
        let loaded = load.finish(Durability::Synced)?;
        // SAFETY: the contract of `borrow`.
        unsafe { put(count, loaded)? };
        Ok(weir_code::WEIR_OK)
    })
}

/// Puts one row and makes it durable, without a transaction.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tree_put_now(
    tree: *const weir_tree,
    key: weir_bytes,
    value: weir_bytes,
    durability: u32,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (tree, key, value) = unsafe { (&shared(tree)?.tree, key.given()?, value.given()?) };
        tree.put(key, value, self::durability(durability)?)?;
        Ok::<_, Failure>(weir_code::WEIR_OK)
    })
}
