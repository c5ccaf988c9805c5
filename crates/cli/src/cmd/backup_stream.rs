//! Standard output as the place of a backup: written by a thread of its own, so that the disk is
//! read while a pipe is written to.
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Writes that wait for the thread, at most; the backup makes writes of 1 MiB.
const AHEAD: usize = 2;

enum Order {
    Write(Vec<u8>),
    /// Answered when all before it is written.
    Flush(SyncSender<()>),
}

/// What is written is written by the thread, in order. Its first error ends it, and is that of the
/// next call here.
pub(super) struct Stream {
    /// `None`: the thread has ended.
    orders: Option<SyncSender<Order>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Stream {
    /// Standard output. Not by [`io::Stdout`], which looks for the ends of lines in the pages.
    ///
    /// # Errors
    /// It is closed, or no thread can be had.
    pub(super) fn stdout() -> io::Result<Stream> {
        Stream::to(File::from(io::stdout().as_fd().try_clone_to_owned()?))
    }

    fn to(out: impl Write + Send + 'static) -> io::Result<Stream> {
        let (orders, ordered) = sync_channel(AHEAD);
        let thread = std::thread::Builder::new().name("weir-stream".into());
        let thread = thread.spawn(move || write_all(out, &ordered))?;
        Ok(Stream { orders: Some(orders), thread: Some(thread) })
    }

    fn order(&mut self, order: Order) -> io::Result<()> {
        match &self.orders {
            Some(orders) if orders.send(order).is_ok() => Ok(()),
            _ => Err(self.ended()),
        }
    }

    /// Why the thread has ended; the second time that has been said already.
    fn ended(&mut self) -> io::Error {
        self.orders = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(Err(e))) => e,
            _ => io::Error::other("nothing can be written there any more"),
        }
    }
}

fn write_all(mut out: impl Write, orders: &Receiver<Order>) -> io::Result<()> {
    for order in orders {
        match order {
            Order::Write(bytes) => out.write_all(&bytes)?,
            Order::Flush(done) => {
                out.flush()?;
                // If it is not waited for any more, that is no error of the stream's.
                let _ = done.send(());
            }
        }
    }
    Ok(())
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.order(Order::Write(bytes.to_vec()))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let (done, is_done) = sync_channel(1);
        self.order(Order::Flush(done))?;
        // The thread has met an error before, or with it.
        is_done.recv().map_err(|_| self.ended())
    }
}

impl Drop for Stream {
    /// Waits until what was handed to the thread is written.
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use super::*;

    /// Takes so many bytes, and fails then.
    struct Narrow {
        taken: Arc<Mutex<Vec<u8>>>,
        room: usize,
    }

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            std::thread::sleep(Duration::from_millis(1));
            let mut taken = self.taken.lock().expect("no thread has panicked");
            let len = bytes.len().min(7).min(self.room - taken.len());
            if len == 0 && !bytes.is_empty() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            taken.extend_from_slice(&bytes[..len]);
            Ok(len)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn stream(room: usize) -> (Stream, Arc<Mutex<Vec<u8>>>) {
        let taken = Arc::new(Mutex::new(Vec::new()));
        let stream = Stream::to(Narrow { taken: taken.clone(), room }).expect("a thread");
        (stream, taken)
    }

    #[test]
    fn what_is_flushed_or_dropped_is_written_in_order() {
        let (mut stream, taken) = stream(1 << 20);
        let lines: Vec<String> = (0..40).map(|n| format!("line {n}\n")).collect();
        for line in &lines[..30] {
            stream.write_all(line.as_bytes()).expect("taken");
        }
        stream.flush().expect("written");
        assert_eq!(taken.lock().expect("taken").as_slice(), lines[..30].concat().as_bytes());
        for line in &lines[30..] {
            stream.write_all(line.as_bytes()).expect("taken");
        }
        drop(stream);
        assert_eq!(taken.lock().expect("taken").as_slice(), lines.concat().as_bytes());
    }

    #[test]
    fn an_error_comes_with_the_next_call_and_again_with_each_behind_it() {
        let (mut stream, taken) = stream(100);
        let failed = (0..100).find_map(|_| stream.write_all(&[1; 10]).err());
        assert_eq!(failed.expect("there is no room").kind(), io::ErrorKind::BrokenPipe);
        assert!(stream.write_all(&[1]).is_err() && stream.flush().is_err());
        assert_eq!(taken.lock().expect("taken").len(), 100);
        // A flush waits, and so has the error of what it waits for.
        let (mut stream, _) = self::stream(3);
        stream.write_all(&[1; 10]).expect("taken");
        assert_eq!(stream.flush().expect_err("no room").kind(), io::ErrorKind::BrokenPipe);
    }
}
