//! A chain that is half freed: its pages lead to each other, so whatever names it has to name the
//! first that is left.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use weir_base::TreeId;
use weir_btree::{Change, Tree, TreeError, Value};
use weir_change::{Header, Op, decode};
use weir_page::Flags;
use weir_redo::Durability;
use weir_txn::{Background, Context, Isolation, PurgeTask, PurgeTasks, Txn, Wait};

use crate::support::{Rows, Site, rows, site};

const LOG_BYTES: u64 = 640 << 10;
/// A group is admitted when it has asked so often; meanwhile the log comes to hold nothing of the
/// group before it.
const ASKS: usize = 4;
/// So often it is asked before what is left to do is cut off, at the last of a group's.
const ASKS_ALL: usize = 5 * ASKS - 1;

fn fill_half_the_log(site: &Site, tree: &Tree) {
    for n in 0..LOG_BYTES / 2_000 {
        site.context.admit(2_000).expect("admitted");
        let value = Value { bytes: &[n as u8; 1_000], flags: Flags::NONE };
        let key = (n % 50).to_be_bytes();
        tree.put(&key, &Change::restoring(Header::default()), value).expect("put");
    }
}

/// What the log says that committed transactions have left, as an opening would find it.
fn said(site: &Site) -> Vec<PurgeTask> {
    site.log.flush(Durability::Synced).expect("flushed");
    let (from, to) = (site.log.checkpoint(), site.log.durable());
    let mut tasks = PurgeTasks::default();
    let mut take = |body: &[u8]| {
        let (_, ops) = decode(body).expect("a header");
        for op in ops {
            if let Op::Purge(purge) = op.expect("an operation") {
                tasks.add(&purge);
            }
        }
    };
    let all = |chunk: &mut weir_redo::Chunk| {
        chunk.bodies().for_each(|(_, body)| take(body));
        Ok(())
    };
    site.log.reader(None).chunks(from, to, all).expect("read");
    tasks.into_vec()
}

/// Drops a tree with a long value whose freeing is cut off in the middle, while others fill the
/// log between its groups. Gives what the log said then, and a tree of others.
fn cut_off(site: &Arc<Site>) -> (Vec<PurgeTask>, Tree) {
    let tree = site.tree(10);
    site.auto.put(&tree, b"long", &vec![7; 2 << 20]).expect("put");
    let mut txn = Txn::new(Isolation::ReadCommitted, Wait::No);
    let other = txn.make_tree(&site.context, TreeId(11)).expect("a tree");
    txn.drop_tree(&site.context, &tree).expect("dropped");
    site.commit(&mut txn).expect("committed");
    let committed = site.log.end();

    let (asks, found) = (AtomicUsize::new(0), Arc::new(Mutex::new(Vec::new())));
    let (at, others, finds) = (site.clone(), other.clone(), found.clone());
    let hook = move |_| {
        let asked = asks.fetch_add(1, Ordering::SeqCst);
        if asked == ASKS_ALL {
            assert!(at.log.checkpoint() > committed, "the log still has the commit");
            *finds.lock() = said(&at);
            return Err(TreeError::Stopped("cut off".into()));
        }
        fill_half_the_log(&at, &others);
        Ok(asked % ASKS == ASKS - 1)
    };
    let used = site.env.space.used();
    let context = Context::new(site.env.clone(), site.registry.clone(), Box::new(|_| Ok(())))
        .with_try_admission(Box::new(hook));
    let background = Background::new(Arc::new(context));
    // Others may be done with before it.
    while background.purge(1) > 0 {}
    let freed = used - site.env.space.used();
    assert!((64..512).contains(&freed), "{freed} pages of some 512 have been freed");
    let found = std::mem::take(&mut *found.lock());
    (found, other)
}

fn check(site: &Site, tree: &Tree) {
    while site.background.purge(1) > 0 {}
    let now: Rows = rows(tree);
    site.check(&[(tree, &now)]);
}

#[test]
fn what_is_said_once_more_of_a_half_freed_chain_leads_to_the_rest() {
    let site = Arc::new(site(1024, LOG_BYTES));
    let (said, other) = cut_off(&site);
    // What the next opening would do after a crash.
    let (header, mut admits) = (Header::default(), |_| Ok(()));
    for task in said {
        match task {
            PurgeTask::Chain { first, mark, .. } => {
                site.env.chains().free(first, mark, header, &mut admits).expect("freed");
            }
            PurgeTask::Tree { tree, root } => {
                Tree::at(site.env.clone(), tree, root).free_all(header, &mut admits).expect("freed")
            }
            other => panic!("nothing left {other:?}"),
        }
    }
    let pages = other.check(&mut |_| {}).expect("a sound tree").pages.len() as u64;
    assert_eq!(site.env.space.used(), pages + 1, "all others are free");
    check(&site, &other);
}

#[test]
fn a_half_freed_chain_is_gone_on_with() {
    let site = Arc::new(site(1024, LOG_BYTES));
    let (_, other) = cut_off(&site);
    check(&site, &other);
}
