//! A volume whose operations fail by script, in front of another one.
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use weir_base::lock::Mutex;
use weir_base::rank;
use weir_base::{ALIGN, AlignedBuf, align_up};

use crate::device::{BlockFile, ReadOp, Volume, WriteOp, check_read, check_write};
use crate::layer::Layer;

/// What a caller asks of a volume or of a file, as far as it can fail by script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// Opening a file.
    Open,
    /// Creating a file.
    Create,
    /// Removing a file.
    Remove,
    /// A read; each operation of a batch is one.
    Read,
    /// A write that is not durable; each operation of a batch is one.
    Write,
    /// A durable write.
    DurableWrite,
    /// A sync of a file.
    Sync,
    /// A growth.
    Grow,
    /// A cut.
    Shrink,
    /// Giving space back.
    Punch,
    /// Reserving it again.
    Reserve,
    /// A sync of the directory, whose name is the empty one.
    SyncDirectory,
}

/// Which of the operations that a rule is about it applies to.
#[derive(Clone, Debug)]
pub enum When {
    /// The one of this number, counting from 1 when the rule was added.
    Nth(u64),
    /// This number and all after it.
    From(u64),
    /// All while the flag is set.
    While(Arc<AtomicBool>),
}

/// The error that the caller gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// EIO: the device is broken.
    Broken,
    /// ENOSPC: the disk is full (`ErrorKind::StorageFull`).
    Full,
    /// EOPNOTSUPP: the file system has no such thing. For [`OpKind::Punch`] that is no error:
    /// [`BlockFile::punch`] returns `false`.
    Unsupported,
}

impl Fault {
    fn error(self) -> io::Error {
        io::Error::from_raw_os_error(match self {
            Fault::Broken => libc::EIO,
            Fault::Full => libc::ENOSPC,
            Fault::Unsupported => libc::EOPNOTSUPP,
        })
    }
}

/// What happens instead of the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing, and an error.
    Error(Fault),
    /// Of a write, this many bytes reach the device, and then there is an error. For any other
    /// operation the same as [`Outcome::Error`].
    ShortWrite {
        /// How many of the operation's bytes are written, any number.
        bytes: usize,
        /// The error after that.
        then: Fault,
    },
}

/// One line of a script.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Applies to files whose names begin so; the empty text to all.
    pub name_prefix: String,
    /// Applies to operations of this kind.
    pub op: OpKind,
    /// Applies to these of them.
    pub when: When,
    /// What happens then.
    pub outcome: Outcome,
}

/// Names a rule that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleId(u64);

/// A volume that does what `inner` does, except where a [`Rule`] says otherwise. Where several
/// apply, the one that was added first decides. Clones are handles to the same script.
#[derive(Clone)]
pub struct FaultyVolume {
    inner: Arc<dyn Volume>,
    script: Arc<Script>,
}

#[derive(Default)]
struct Script {
    rules: Mutex<rank::FaultRules, Rules>,
    full: AtomicBool,
}

#[derive(Default)]
struct Rules {
    next_id: u64,
    list: Vec<ActiveRule>,
    /// The blocks of each file that were given back and not reserved again.
    holes: BTreeSet<(String, u64)>,
}

struct ActiveRule {
    id: RuleId,
    rule: Rule,
    /// Operations of the rule's kind and name so far.
    seen: u64,
    /// How many of them it decided.
    hits: u64,
}

impl FaultyVolume {
    /// A volume without any rule yet.
    #[must_use]
    pub fn new(inner: Arc<dyn Volume>) -> Self {
        FaultyVolume { inner, script: Arc::default() }
    }

    /// Adds a rule, in force from now on.
    pub fn add(&self, rule: Rule) -> RuleId {
        let mut rules = self.script.rules.lock();
        let id = RuleId(rules.next_id);
        rules.next_id += 1;
        rules.list.push(ActiveRule { id, rule, seen: 0, hits: 0 });
        id
    }

    /// Adds the rule that the operation of this number fails, for all names that begin so.
    pub fn fail_nth(&self, name_prefix: &str, op: OpKind, number: u64, fault: Fault) -> RuleId {
        let (name_prefix, when) = (name_prefix.to_owned(), When::Nth(number));
        self.add(Rule { name_prefix, op, when, outcome: Outcome::Error(fault) })
    }

    /// Adds the rule that such operations fail from now on.
    pub fn fail_all(&self, name_prefix: &str, op: OpKind, fault: Fault) -> RuleId {
        let (name_prefix, when) = (name_prefix.to_owned(), When::From(1));
        self.add(Rule { name_prefix, op, when, outcome: Outcome::Error(fault) })
    }

    /// Takes a rule away; nothing happens when it is gone already.
    pub fn remove_rule(&self, id: RuleId) {
        self.script.rules.lock().list.retain(|active| active.id != id);
    }

    /// Takes all rules away, and makes room on the disk.
    pub fn clear(&self) {
        self.script.rules.lock().list.clear();
        self.full_disk(false);
    }

    /// How often a rule has decided an operation; 0 when it is gone.
    #[must_use]
    pub fn hits(&self, id: RuleId) -> u64 {
        let rules = self.script.rules.lock();
        rules.list.iter().find(|active| active.id == id).map_or(0, |active| active.hits)
    }

    /// Makes the disk full, or gives it space again: while it is full, creations and growths fail
    /// with `StorageFull`, and so does reserving what was given back. Writes go to space that is
    /// reserved already, and succeed.
    pub fn full_disk(&self, full: bool) {
        self.script.full.store(full, Relaxed);
    }
}

impl Script {
    /// Counts an operation, and says what happens instead of it.
    fn outcome(&self, name: &str, op: OpKind) -> Option<Outcome> {
        let mut decided = None;
        for active in &mut self.rules.lock().list {
            if active.rule.op != op || !name.starts_with(&active.rule.name_prefix) {
                continue;
            }
            active.seen += 1;
            let applies = match &active.rule.when {
                When::Nth(number) => active.seen == *number,
                When::From(number) => active.seen >= *number,
                When::While(flag) => flag.load(Relaxed),
            };
            if applies && decided.is_none() {
                active.hits += 1;
                decided = Some(active.rule.outcome);
            }
        }
        decided
    }

    /// For operations that cannot be done by half.
    fn check(&self, name: &str, op: OpKind) -> io::Result<()> {
        match self.outcome(name, op) {
            None => Ok(()),
            Some(Outcome::Error(fault) | Outcome::ShortWrite { then: fault, .. }) => {
                Err(fault.error())
            }
        }
    }

    fn check_space(&self) -> io::Result<()> {
        if self.full.load(Relaxed) { Err(Fault::Full.error()) } else { Ok(()) }
    }
}

impl Layer for FaultyVolume {
    fn below(&self) -> &dyn Volume {
        &*self.inner
    }

    fn wrap(&self, name: &str, file: Arc<dyn BlockFile>) -> Arc<dyn BlockFile> {
        let (name, script) = (name.to_owned(), Arc::clone(&self.script));
        Arc::new(FaultyFile { name, inner: file, script })
    }

    fn difference(&self) -> String {
        "failing by script".to_owned()
    }

    fn open_wrapped(&self, name: &str) -> io::Result<Arc<dyn BlockFile>> {
        self.script.check(name, OpKind::Open)?;
        Ok(self.wrap(name, self.inner.open(name)?))
    }

    fn create_wrapped(&self, name: &str, len: u64) -> io::Result<Arc<dyn BlockFile>> {
        self.script.check(name, OpKind::Create)?;
        self.script.check_space()?;
        Ok(self.wrap(name, self.inner.create(name, len)?))
    }

    fn remove_below(&self, name: &str) -> io::Result<()> {
        self.script.check(name, OpKind::Remove)?;
        self.inner.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.script.check("", OpKind::SyncDirectory)?;
        self.inner.sync_directory()
    }
}

struct FaultyFile {
    name: String,
    inner: Arc<dyn BlockFile>,
    script: Arc<Script>,
}

impl FaultyFile {
    /// Lets the first `bytes` of a write reach the device.
    fn write_part(&self, offset: u64, buf: &[u8], bytes: usize) -> io::Result<()> {
        let bytes = bytes.min(buf.len());
        // The device takes whole blocks, so the last one is completed with what it holds already.
        let mut part = AlignedBuf::zeroed(align_up(bytes as u64) as usize);
        let last = bytes - bytes % ALIGN;
        if last < bytes {
            self.inner.read_at(offset + last as u64, &mut part[last..])?;
        }
        part[..bytes].copy_from_slice(&buf[..bytes]);
        self.inner.write_at(offset, &part)
    }
}

impl BlockFile for FaultyFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        check_read(offset, buf, self.len())?;
        self.script.check(&self.name, OpKind::Read)?;
        self.inner.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.write_many(&[WriteOp { offset, buf }])
    }

    fn write_durable_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        check_write(offset, buf, self.len())?;
        match self.script.outcome(&self.name, OpKind::DurableWrite) {
            None => self.inner.write_durable_at(offset, buf),
            Some(Outcome::Error(fault)) => Err(fault.error()),
            Some(Outcome::ShortWrite { bytes, then }) => {
                self.write_part(offset, buf, bytes)?;
                Err(then.error())
            }
        }
    }

    fn read_many(&self, reads: &mut [ReadOp<'_>]) -> io::Result<()> {
        let len = self.len();
        reads.iter().try_for_each(|op| check_read(op.offset, op.buf, len))?;
        reads.iter().try_for_each(|_| self.script.check(&self.name, OpKind::Read))?;
        self.inner.read_many(reads)
    }

    fn write_many(&self, writes: &[WriteOp<'_>]) -> io::Result<()> {
        let len = self.len();
        writes.iter().try_for_each(|op| check_write(op.offset, op.buf, len))?;
        for (number, op) in writes.iter().enumerate() {
            let Some(outcome) = self.script.outcome(&self.name, OpKind::Write) else { continue };
            self.inner.write_many(&writes[..number])?;
            let fault = match outcome {
                Outcome::Error(fault) => fault,
                Outcome::ShortWrite { bytes, then } => {
                    self.write_part(op.offset, op.buf, bytes)?;
                    then
                }
            };
            return Err(fault.error());
        }
        self.inner.write_many(writes)
    }

    fn has_atomic_writes(&self, len: usize) -> bool {
        self.inner.has_atomic_writes(len)
    }

    /// A write that fails is not there at all.
    fn write_many_atomically(&self, writes: &[WriteOp<'_>]) -> io::Result<bool> {
        let len = self.len();
        writes.iter().try_for_each(|op| check_write(op.offset, op.buf, len))?;
        for number in 0..writes.len() {
            let checked = self.script.check(&self.name, OpKind::Write);
            if checked.is_err() {
                self.inner.write_many_atomically(&writes[..number])?;
            }
            checked?;
        }
        self.inner.write_many_atomically(writes)
    }

    fn sync(&self) -> io::Result<()> {
        self.script.check(&self.name, OpKind::Sync)?;
        self.inner.sync()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn grow(&self, len: u64) -> io::Result<()> {
        if len < self.len() {
            return Err(ErrorKind::InvalidInput.into());
        }
        self.script.check(&self.name, OpKind::Grow)?;
        if len > self.len() {
            self.script.check_space()?;
        }
        self.inner.grow(len)
    }

    fn shrink(&self, len: u64) -> io::Result<()> {
        self.script.check(&self.name, OpKind::Shrink)?;
        self.inner.shrink(len)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<bool> {
        match self.script.check(&self.name, OpKind::Punch) {
            Err(e) if e.kind() == io::ErrorKind::Unsupported => return Ok(false),
            checked => checked?,
        }
        let is_done = self.inner.punch(offset, len)?;
        if is_done {
            let blocks = (offset..offset + len).step_by(ALIGN);
            let mut rules = self.script.rules.lock();
            rules.holes.extend(blocks.map(|block| (self.name.clone(), block)));
        }
        Ok(is_done)
    }

    fn reserve(&self, offset: u64, len: u64) -> io::Result<()> {
        self.script.check(&self.name, OpKind::Reserve)?;
        let range = (self.name.clone(), offset)..(self.name.clone(), offset + len);
        if self.script.rules.lock().holes.range(range).next().is_some() {
            self.script.check_space()?;
        }
        self.inner.reserve(offset, len)?;
        let mut rules = self.script.rules.lock();
        rules.holes.retain(|(name, at)| *name != self.name || *at < offset || *at >= offset + len);
        Ok(())
    }

    fn allocated_bytes(&self) -> Option<u64> {
        self.inner.allocated_bytes()
    }

    fn lock_alone(&self) -> io::Result<bool> {
        self.inner.lock_alone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::SimVolume;

    const PAGE: u64 = ALIGN as u64;

    fn filled(byte: u8) -> AlignedBuf {
        let mut page = AlignedBuf::zeroed(ALIGN);
        page.fill(byte);
        page
    }

    fn faulty() -> (SimVolume, FaultyVolume, Arc<dyn BlockFile>) {
        let sim = SimVolume::new(0);
        let volume = FaultyVolume::new(Arc::new(sim.clone()));
        let file = volume.create("data.1", 8 * PAGE).unwrap();
        (sim, volume, file)
    }

    fn kind<T>(result: io::Result<T>) -> ErrorKind {
        result.map(|_| ()).unwrap_err().kind()
    }

    #[test]
    fn without_rules_all_passes() {
        let (sim, volume, file) = faulty();
        file.write_at(0, &filled(1)).unwrap();
        file.write_durable_at(PAGE, &filled(2)).unwrap();
        file.grow(9 * PAGE).unwrap();
        file.sync().unwrap();
        volume.sync_directory().unwrap();
        let found = sim.snapshot().read_raw("data.1").unwrap();
        assert_eq!((found.len(), found[0], found[ALIGN]), (9 * ALIGN, 1, 2));
        assert_eq!(volume.list().unwrap(), ["data.1"]);
    }

    #[test]
    fn the_nth_write_and_no_other() {
        let (sim, volume, file) = faulty();
        let rule = volume.fail_nth("data", OpKind::Write, 3, Fault::Broken);
        file.write_at(0, &filled(1)).unwrap();
        let page = filled(2);
        let ops = [1, 2, 3].map(|number| WriteOp { offset: number * PAGE, buf: &page });
        let error = file.write_many(&ops).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EIO));
        assert_eq!(volume.hits(rule), 1);
        let written: Vec<u8> =
            sim.read_raw("data.1").unwrap().chunks(ALIGN).map(|p| p[0]).collect();
        assert_eq!(written, [1, 2, 0, 0, 0, 0, 0, 0], "what came before it is written");
        file.write_many(&ops).unwrap();
    }

    #[test]
    fn from_the_nth_on_until_removed() {
        let (_, volume, file) = faulty();
        let (name_prefix, when) = (String::new(), When::From(2));
        let outcome = Outcome::Error(Fault::Broken);
        let rule = volume.add(Rule { name_prefix, op: OpKind::Sync, when, outcome });
        file.sync().unwrap();
        assert!(file.sync().is_err() && file.sync().is_err());
        volume.remove_rule(rule);
        file.sync().unwrap();
        assert_eq!(volume.hits(rule), 0);
    }

    #[test]
    fn while_a_flag_is_set() {
        let (_, volume, file) = faulty();
        let flag = Arc::new(AtomicBool::new(false));
        let (name_prefix, when) = ("data".to_owned(), When::While(Arc::clone(&flag)));
        let outcome = Outcome::Error(Fault::Broken);
        volume.add(Rule { name_prefix, op: OpKind::Read, when, outcome });
        let mut page = filled(0);
        for set in [false, true, false] {
            flag.store(set, Relaxed);
            assert_eq!(file.read_at(0, &mut page).is_err(), set);
            let ops = &mut [ReadOp { offset: 0, buf: &mut page }];
            assert_eq!(file.read_many(ops).is_err(), set);
        }
    }

    #[test]
    fn operations_differ_by_name_and_kind() {
        let (_, volume, file) = faulty();
        let other = volume.create("log.1", PAGE).unwrap();
        for op in [OpKind::DurableWrite, OpKind::Grow, OpKind::Remove, OpKind::Open] {
            volume.fail_all("data", op, Fault::Broken);
        }
        volume.fail_all("", OpKind::SyncDirectory, Fault::Broken);
        assert!(file.write_durable_at(0, &filled(1)).is_err());
        assert!(file.grow(9 * PAGE).is_err());
        assert!(volume.open("data.1").is_err());
        assert!(volume.remove("data.1").is_err());
        assert!(volume.sync_directory().is_err());
        file.write_at(0, &filled(1)).unwrap();
        other.write_durable_at(0, &filled(1)).unwrap();
        other.grow(2 * PAGE).unwrap();
        volume.open("log.1").unwrap();
        volume.remove("log.1").unwrap();
        volume.clear();
        volume.sync_directory().unwrap();
        volume.remove("data.1").unwrap();
    }

    #[test]
    fn short_writes() {
        for op in [OpKind::Write, OpKind::DurableWrite] {
            for bytes in [0, 100, ALIGN, ALIGN + 512, 2 * ALIGN, usize::MAX] {
                let (sim, volume, file) = faulty();
                let mut before = AlignedBuf::zeroed(2 * ALIGN);
                before.fill(1);
                file.write_at(PAGE, &before).unwrap();
                let (name_prefix, when) = ("data.1".to_owned(), When::Nth(1));
                let outcome = Outcome::ShortWrite { bytes, then: Fault::Full };
                volume.add(Rule { name_prefix, op, when, outcome });
                let mut after = AlignedBuf::zeroed(2 * ALIGN);
                after.fill(2);
                let result = match op {
                    OpKind::Write => file.write_at(PAGE, &after),
                    _ => file.write_durable_at(PAGE, &after),
                };
                assert_eq!(kind(result), ErrorKind::StorageFull);
                let found = sim.read_raw("data.1").unwrap();
                let written = bytes.min(2 * ALIGN);
                let expected = [vec![2; written], vec![1; 2 * ALIGN - written]].concat();
                assert_eq!(found[ALIGN..3 * ALIGN], expected, "{op:?} {bytes}");
            }
        }
    }

    #[test]
    fn a_full_disk_refuses_space_but_not_writes() {
        let (_, volume, file) = faulty();
        volume.full_disk(true);
        assert_eq!(kind(volume.create("more", PAGE)), ErrorKind::StorageFull);
        assert_eq!(kind(file.grow(9 * PAGE)), ErrorKind::StorageFull);
        file.grow(8 * PAGE).unwrap();
        file.write_at(0, &filled(1)).unwrap();
        file.sync().unwrap();
        volume.full_disk(false);
        file.grow(9 * PAGE).unwrap();
        volume.create("more", PAGE).unwrap();
        // What was given back must be reserved; what was not is there.
        assert!(file.punch(4 * PAGE, 2 * PAGE).unwrap());
        volume.full_disk(true);
        file.reserve(0, 4 * PAGE).unwrap();
        assert_eq!(kind(file.reserve(0, 5 * PAGE)), ErrorKind::StorageFull);
        volume.full_disk(false);
        file.reserve(0, 5 * PAGE).unwrap();
        volume.full_disk(true);
        file.reserve(0, 5 * PAGE).unwrap();
        let rule = volume.fail_nth("data", OpKind::Punch, 1, Fault::Broken);
        assert!(file.punch(0, PAGE).is_err());
        assert_eq!(volume.hits(rule), 1);
    }
}
