//! Batches: changes of several rows that are applied together, without a transaction.
use weir::Batch;

use crate::borrow::{alone, give, shared, taken, weir_bytes};
use crate::db::{durability, weir_db};
use crate::outcome::{run, weir_code};
use crate::tree::weir_tree;

/// Changes to be applied together.
pub struct weir_batch {
    batch: Batch,
}

/// Makes an empty batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_batch_new(out: *mut *mut weir_batch) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        unsafe { give(out, weir_batch { batch: Batch::new() })? };
        Ok(weir_code::WEIR_OK)
    })
}

/// Gives a batch back. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_batch_free(batch: *mut weir_batch) {
    // SAFETY: the contract of `borrow`.
    run(|| Ok(unsafe { taken(batch) }.map_or(weir_code::WEIR_NOTHING, |_| weir_code::WEIR_OK)));
}

/// Adds: insert the row or replace its value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_batch_put(
    batch: *mut weir_batch,
    tree: *const weir_tree,
    key: weir_bytes,
    value: weir_bytes,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (batch, tree) = unsafe { (alone(batch)?, &shared(tree)?.tree) };
        // SAFETY: the contract of `borrow`.
        let (key, value) = unsafe { (key.given()?, value.given()?) };
        batch.batch.put(tree, key, value);
        Ok(weir_code::WEIR_OK)
    })
}

/// Adds: remove the row if it is there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_batch_delete(
    batch: *mut weir_batch,
    tree: *const weir_tree,
    key: weir_bytes,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (batch, tree) = unsafe { (alone(batch)?, &shared(tree)?.tree) };
        // SAFETY: the contract of `borrow`.
        batch.batch.delete(tree, unsafe { key.given()? });
        Ok(weir_code::WEIR_OK)
    })
}

/// Applies a batch: all of it or nothing, now and after a crash. It is empty afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_batch_write(
    db: *const weir_db,
    batch: *mut weir_batch,
    durability: u32,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, batch) = unsafe { (&shared(db)?.db, alone(batch)?) };
        db.write(&batch.batch, self::durability(durability)?)?;
        batch.batch.clear();
        Ok(weir_code::WEIR_OK)
    })
}
