//! What types promise beside their signatures, which a program may rely on and the compiler can be
//! asked: see `docs/decisions/embedder.md` on semver.
use std::error::Error as StdError;
use std::fmt::{Debug, Display};
use std::iter::FusedIterator;

use weirdb::{
    Backup, Batch, Cause, CheckReport, Commit, Config, Conflict, Create, Db, Durability, Durable,
    Error, Isolation, LockWait, LockedRows, Malformed, Notice, OpenError, ReadTxn, Recovery,
    RecoveryProgress, Rows, Savepoint, Slice, Stats, Store, Swap, TornPages, Tree, TxnOptions,
    TypedRows, TypedTree, WriteTxn,
};

fn shared<T: Send + Sync>() {}
fn sent<T: Send>() {}
fn cloned<T: Clone>() {}
fn plain<T: Copy + Eq + Debug>() {}
fn shown<T: Debug>() {}
fn error<T: StdError + Display + Send + Sync + 'static>() {}
fn from_both_ends<T: DoubleEndedIterator + FusedIterator>() {}
fn in_order<T: FusedIterator>() {}
fn awaited<T: IntoFuture>() {}

#[test]
fn handles_may_go_where_programs_need_them() {
    shared::<Db>();
    shared::<Tree>();
    shared::<TypedTree<u64, String>>();
    shared::<ReadTxn>();
    shared::<WriteTxn>();
    shared::<Commit>();
    shared::<Batch>();
    shared::<Config>();
    shared::<Slice>();
    sent::<Rows<'static>>();
    sent::<Rows<'_>>();
    sent::<LockedRows<'_>>();
    sent::<Durable>();
    cloned::<Db>();
    cloned::<Tree>();
    cloned::<TypedTree<u64, String>>();
    cloned::<ReadTxn>();
    cloned::<Config>();
    cloned::<Slice>();
    awaited::<Commit>();
}

#[test]
fn iterators_go_both_ways_and_end() {
    from_both_ends::<Rows<'_>>();
    from_both_ends::<TypedRows<'_, u64, String>>();
    in_order::<LockedRows<'_>>();
}

#[test]
fn errors_are_errors_and_settings_are_plain() {
    error::<Error>();
    error::<OpenError>();
    error::<Conflict>();
    error::<Cause>();
    error::<Malformed>();
    plain::<Durability>();
    plain::<Isolation>();
    plain::<LockWait>();
    plain::<TxnOptions>();
    plain::<Create>();
    plain::<Store>();
    plain::<TornPages>();
    plain::<Savepoint>();
    shown::<Notice<'_>>();
    shown::<Swap>();
    shown::<Stats>();
    shown::<Recovery>();
    shown::<RecoveryProgress>();
    shown::<CheckReport>();
    shown::<Backup>();
    shown::<Rows<'_>>();
    shown::<TypedRows<'_, u64, String>>();
    shown::<TypedTree<u64, String>>();
    shown::<Durable>();
    shown::<Commit>();
}

#[test]
fn bytes_are_used_as_bytes() {
    fn bytes<T>()
    where
        T: std::ops::Deref<Target = [u8]> + AsRef<[u8]> + PartialEq<[u8]> + Ord + std::hash::Hash,
        T: From<Vec<u8>>,
    {
    }
    bytes::<Slice>();
}

#[test]
fn a_codec_is_asked_for_where_pages_are_packed_and_refused_elsewhere() {
    use weirdb::{Codec, Store};
    let dir = tempfile::tempdir().expect("a directory");
    for (store, packs) in [(Store::Log, true), (Store::InPlace, false)] {
        let config = weirdb::Config::new().store(store);
        let db = config.open(dir.path().join(packs.to_string())).expect("opened");
        for (name, codec) in [("a", Codec::None), ("b", Codec::Lz4), ("c", Codec::Zstd)] {
            let made = db.create_tree_with(name, codec).map(drop);
            let changed = db.set_codec(name, None);
            if packs {
                made.expect("a tree");
                assert!(changed.expect("asked"));
                assert!(!db.set_codec("none", Some(codec)).expect("asked"));
            } else {
                let told = made.expect_err("in place").to_string();
                assert!(told.contains("packs none"), "{told}");
                assert!(changed.is_err());
            }
        }
    }
}
