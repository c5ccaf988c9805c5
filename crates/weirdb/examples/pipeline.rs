//! Commits without waiting: a thread goes on while its commits become durable, and answers are sent
//! only then. Three ways to hear of it: a wait, a callback, a future.
use std::sync::mpsc;

use weirdb::{Commit, Db, Error, Tree};

fn write(db: &Db, orders: &Tree, number: u32) -> Result<Commit, Error> {
    let mut txn = db.write();
    txn.insert(orders, number.to_be_bytes(), format!("order {number}"))?;
    // Others see it now. It is durable some time later, after all that came before it.
    txn.commit_nowait()
}

pub(crate) fn main() -> Result<(), Error> {
    let dir = tempfile::tempdir().map_err(|source| Error::InvalidInput(source.to_string()))?;
    let db = Db::open(dir.path().join("store"))?;
    let orders = db.open_tree("orders")?;

    // A thousand commits, and one wait for the last.
    let mut last = None;
    for number in 0..1000 {
        last = Some(write(&db, &orders, number)?);
    }
    if let Some(last) = &last {
        last.wait()?;
        assert!(last.is_durable());
    }

    // Each is answered when it is durable, by a thread that does that for all.
    let (answer, answers) = mpsc::channel();
    for number in 1000..1100 {
        let answer = answer.clone();
        write(&db, &orders, number)?.when_durable(move |outcome| {
            let _ = answer.send((number, outcome.is_ok()));
        });
    }
    drop(answer);
    assert_eq!(answers.iter().filter(|(_, is_durable)| *is_durable).count(), 100);

    // Or awaited: `write(..)?.await?` in a function that is async.
    let durable = async { write(&db, &orders, 1100)?.await };
    block_on(durable)?;
    println!("{} orders, {} syncs of the log", orders.len()?, db.stats().log_syncs);
    db.close()
}

/// A runtime for one task; any other does as well.
fn block_on<T>(task: impl Future<Output = T>) -> T {
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake, Waker};
    use std::thread::{Thread, current, park};

    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(current())));
    let mut task = std::pin::pin!(task);
    loop {
        match task.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => park(),
        }
    }
}
