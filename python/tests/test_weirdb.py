"""weirdb as Python code uses it: mapping, transactions, threads, kill -9, asyncio, errors."""

import asyncio
import os
import signal
import subprocess
import sys
import threading

import pytest

import weirdb


@pytest.fixture
def db(tmp_path):
    with weirdb.open(tmp_path / "db", cache_bytes=8 << 20, durability="lazy") as db:
        yield db


def test_a_tree_is_a_mapping(db):
    birds = db["birds"]
    assert not birds and len(birds) == 0 and "birds" in db and list(db) == ["birds"]
    birds[b"heron"] = b"grey"
    birds[b"egret"] = bytearray(b"white")
    assert birds[b"heron"] == b"grey" and birds.get(b"owl") is None and birds.get(b"owl", 1) == 1
    assert b"egret" in birds and list(birds) == [b"egret", b"heron"]
    assert list(birds.items(reverse=True)) == [(b"heron", b"grey"), (b"egret", b"white")]
    assert list(birds.items(b"f")) == [(b"heron", b"grey")] and list(birds.items(b"z", b"a")) == []
    assert list(birds.prefix(b"eg")) == [(b"egret", b"white")]
    assert list(birds.items(limit=1)) == [(b"egret", b"white")] and not list(birds.items(limit=0))
    assert list(birds.items(reverse=True, limit=1)) == [(b"heron", b"grey")]
    assert len(list(birds.prefix(b"", limit=9))) == 2
    with pytest.raises(OverflowError):
        birds.items(limit=-1)
    assert birds.pop(b"heron") == b"grey" and birds.pop(b"heron", None) is None
    with pytest.raises(KeyError):
        birds[b"heron"]
    with pytest.raises(KeyError):
        del birds[b"heron"]
    del birds[b"egret"]
    assert birds.add(b"n", 5) == 5 and birds.add(b"n", -7) == -2
    assert birds.compare_and_swap(b"x", None, b"1") and not birds.compare_and_swap(b"x", None, b"2")


def test_transactions_commit_or_roll_back(db):
    tree = db["t"]
    with db.write() as txn:
        txn.put(tree, b"a", b"1")
        assert tree.get(b"a") is None and txn.get(tree, b"a") == b"1"
        point = txn.savepoint()
        txn.put(tree, b"b", b"2")
        txn.rollback_to(point)
    assert dict(tree.items()) == {b"a": b"1"}
    with pytest.raises(ZeroDivisionError):
        with db.write() as txn:
            txn.remove(tree, b"a")
            1 / 0
    assert len(tree) == 1
    one, two = db.write(), db.write()
    with pytest.raises(weirdb.InvalidInputError):
        one.rollback_to(two.savepoint())
    one.rollback()
    for call in (one.commit, one.rollback, lambda: one.put(tree, b"k", b"v"), one.savepoint):
        with pytest.raises(weirdb.TransactionOverError):
            call()
    two.put(tree, b"a", b"2")
    with pytest.raises(weirdb.LockTimeoutError):
        db.write(lock_wait=0).put(tree, b"a", b"3")
    two.commit()
    with db.write() as txn:
        assert list(txn.items(tree, reverse=True)) == [(b"a", b"2")] and txn.count(tree) == 1


def test_a_transaction_reads_some_rows_and_those_of_a_prefix(db):
    tree = db["t"]
    tree.bulk_load((b"%05d" % n, b"v") for n in range(1000))
    edges = [b"\xfe\xff", b"\xff", b"\xff\xff", b"\xff\xff\x00"]
    with db.write() as txn:
        for key in edges:
            txn.put(tree, key, b"edge")
        some = list(txn.items(tree, b"00100", limit=300))
        assert len(some) == 300 and some[-1] == (b"00399", b"v")
        assert [key for key, _ in txn.items(tree, reverse=True, limit=2)] == edges[:1:-1]
        assert list(txn.items(tree, limit=0)) == []
        with pytest.raises(OverflowError):
            list(txn.items(tree, limit=-1))
        assert len(list(txn.prefix(tree, b"007"))) == 100
        assert [key for key, _ in txn.prefix(tree, b"0079", reverse=True, limit=1)] == [b"00799"]
        assert [key for key, _ in txn.prefix(tree, b"\xfe\xff")] == edges[:1]
        assert [key for key, _ in txn.prefix(tree, b"\xff")] == edges[1:]
        assert len(list(txn.prefix(tree, b""))) == 1004
        # What is changed meanwhile is seen, and the limit is one of all rows together.
        rows = txn.items(tree, limit=257)
        first = next(rows)
        txn.put(tree, b"00255", b"w")
        assert first == (b"00000", b"v") and len(list(rows)) == 256


def test_rows_are_of_one_moment(db):
    tree = db["t"]
    tree.bulk_load((b"%05d" % n, b"v") for n in range(5000))
    with db.read() as now:
        rows = now.items(tree)
        first = next(rows)
        for n in range(5000):
            tree[b"%05d" % n] = b"w"
        tree[b"x"] = b"new"
        assert first == (b"00000", b"v") and all(value == b"v" for _, value in rows)
        assert now.count(tree) == 5000 and now.get(tree, b"x") is None
        some = list(now.items(tree, b"00100", limit=300))
        assert len(some) == 300 and some[-1] == (b"00399", b"v")
        assert len(list(now.prefix(tree, b"00", limit=700))) == 700
    with pytest.raises(weirdb.TransactionOverError):
        now.count(tree)
    with pytest.raises(ZeroDivisionError):
        db["u"].bulk_load((b"%d" % n, b"%d" % (1 // (5 - n))) for n in range(9))
    with pytest.raises(TypeError):
        db["u"].bulk_load([(b"a", 7)])
    assert db["u"].bulk_load([(b"a", b"7")]) == 1


def test_many_keys_at_once(db):
    tree = db["t"]
    for n in range(100):
        tree[b"%03d" % n] = b"v%d" % n
    with db.read() as now:
        tree[b"050"] = b"new"
        keys = [b"099", bytearray(b"050"), b"none", memoryview(b"000"), b"099"]
        assert tree.get_many(keys) == [b"v99", b"new", None, b"v0", b"v99"]
        assert now.get_many(tree, keys)[1] == b"v50"
    assert tree.get_many([]) == []
    with pytest.raises(TypeError):
        tree.get_many([b"a", 1])
    with pytest.raises(TypeError):
        tree.get_many("text")


def test_threads_count_and_lose_nothing(db):
    tree = db["t"]

    def count():
        for _ in range(100):
            tree.add(b"added")

            def body(txn):
                old = txn.get(tree, b"swapped") or b"0"
                txn.put(tree, b"swapped", b"%d" % (int(old) + 1))

            db.transact(body, attempts=10_000)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tree.add(b"added", 0) == 400 and tree[b"swapped"] == b"400"


def test_a_transaction_that_waits_holds_no_other_thread_up(db):
    tree = db["t"]
    holder = db.write()
    holder.put(tree, b"k", b"1")
    waiter = db.write(lock_wait=30)
    waits = threading.Thread(target=lambda: waiter.put(tree, b"k", b"2"))
    waits.start()
    # Of the same transaction: this one waits for the other, and lets all else go on.
    asks = threading.Thread(target=waiter.savepoint)
    asks.start()
    for n in range(100):
        tree[b"%d" % n] = b"v"
    assert waits.is_alive()
    holder.rollback()
    waits.join(20)
    asks.join(20)
    assert not waits.is_alive() and not asks.is_alive()
    waiter.commit()
    assert tree[b"k"] == b"2"


def test_jobs_are_taken_once(db):
    jobs = db["jobs"]
    jobs.bulk_load((bytes([n]), b"job") for n in range(50))
    taken = []

    def work():
        while True:
            with db.write(isolation="read committed") as txn:
                job = txn.first_unlocked(jobs)
                if job is None:
                    return
                txn.remove(jobs, job[0])
                taken.append(job[0])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [bytes([n]) for n in range(50)]


def test_commits_are_awaited(tmp_path):
    async def write(db, tree, n):
        txn = db.write()
        txn.put(tree, b"%d" % n, b"v")
        await txn.commit_async()
        return n

    async def run():
        with weirdb.open(tmp_path / "db") as db:
            tree = db["t"]
            done = await asyncio.gather(*(write(db, tree, n) for n in range(50)))
            assert done == list(range(50)) and len(tree) == 50
            txn = db.write()
            txn.put(tree, b"last", b"v")
            commit = txn.commit_nowait()
            commit.wait()
            assert commit.is_durable

    asyncio.run(run())


def test_a_callback_that_raises_stops_nothing(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", seen.append)
    with weirdb.open(tmp_path / "db") as db:
        tree, answers = db["t"], []
        for n in range(40):
            txn = db.write()
            txn.put(tree, b"%d" % n, b"v")

            def then(error, n=n):
                answers.append(error)
                if n % 4 == 0:
                    raise ValueError(n)

            txn.commit_nowait().when_durable(then)
        db.sync()
    assert answers == [None] * 40 and len(seen) == 10


def test_errors_have_their_classes(tmp_path):
    path = tmp_path / "db"
    db = weirdb.open(path)
    tree = db["t"]
    with pytest.raises(weirdb.DatabaseLockedError, match="by this process"):
        weirdb.open(path)
    with pytest.raises(weirdb.InvalidInputError):
        tree[b"x" * 10_000] = b""
    with pytest.raises(TypeError):
        tree["text"] = b""
    tree.insert(b"k", b"v")
    with pytest.raises(weirdb.ExistsError):
        tree.insert(b"k", b"v")
    db.drop_tree("t")
    with pytest.raises(weirdb.NoTreeError):
        tree[b"k"] = b"v"
    db.close()
    with pytest.raises(weirdb.ClosedError):
        db["t"]
    for settings in ({"cache_bytes": 1}, {"log_bytes": 0}, {"page_bytes": 7}):
        with pytest.raises(weirdb.InvalidInputError):
            weirdb.open(path, **settings)
    for settings in ({"durability": "maybe"}, {"create": "perhaps"}):
        with pytest.raises(ValueError):
            weirdb.open(path, **settings)
    (tmp_path / "file").write_text("no directory")
    with pytest.raises(weirdb.OpeningError):
        weirdb.open(tmp_path / "file")
    with weirdb.open(path, read_only=True) as db:
        with pytest.raises(weirdb.ReadOnlyError):
            db["new"]
    assert issubclass(weirdb.DeadlockError, weirdb.ConflictError)
    assert issubclass(weirdb.ConflictError, weirdb.Error)


def test_a_backup_opens(db, tmp_path):
    db["t"][b"k"] = b"v"
    with db.read() as now:
        assert now.backup(tmp_path / "copy") == 1
    with weirdb.open(tmp_path / "copy", create="never") as copy:
        assert dict(copy["t"].items()) == {b"k": b"v"} and copy.check() == []
    seen = []
    assert db.check(lambda done, of: seen.append((done, of))) == [] and seen
    with pytest.raises(ZeroDivisionError):
        db.check(lambda done, of: 1 / 0)


def test_pages_are_backed_up_resumed_and_restored(tmp_path):
    with weirdb.open(tmp_path / "store") as db:
        db["t"].bulk_load((n.to_bytes(4, "big"), bytes(500)) for n in range(3000))
    # All pages are on disk now.
    db = weirdb.open(tmp_path / "store")
    tree = db["t"]
    full, next_, copy = tmp_path / "full", tmp_path / "next", tmp_path / "copy"
    fast = {"bytes_per_second": 1 << 40}
    assert db.write_backup(full, progress=lambda pages, of, size: pages < 64, **fast) is None
    tree[b"late"] = b"v"
    with pytest.raises(FileExistsError):
        db.write_backup(full)
    with pytest.raises(ZeroDivisionError):
        db.resume_backup(full, progress=lambda pages, of, size: 1 / 0)
    made = db.resume_backup(full, **fast)
    assert made.bytes == full.stat().st_size and made.pages > 100
    assert db.resume_backup(full) == made
    tree[b"later"] = b"v"
    since = db.write_backup(next_, since=full, progress=lambda pages, of, size: None, **fast)
    assert since.bytes < made.bytes / 4 and since.position > made.position
    with pytest.raises(weirdb.InvalidInputError):
        weirdb.restore(copy, [next_])
    assert not weirdb.restore(copy, [full, next_], progress=lambda size: False)
    assert weirdb.restore(copy, [full, next_])
    with weirdb.open(copy, create="never") as again:
        assert dict(again["t"].items()) == dict(tree.items()) and again.check() == []
        (tmp_path / "cut").write_bytes(full.read_bytes()[: made.bytes // 2])
        with pytest.raises(weirdb.InvalidInputError):
            again.resume_backup(tmp_path / "cut")
    db.close()


def test_a_tree_is_made_dense(db):
    tree = db["t"]
    with db.write() as txn:
        for n in range(4000):
            txn.put(tree, (n * 7919 % 100003).to_bytes(4, "big"), bytes(200))
    with db.write() as txn:
        for n in range(4000):
            if n % 10:
                txn.remove(tree, (n * 7919 % 100003).to_bytes(4, "big"))
    rows = dict(tree.items())
    part = tree.compact(bytes_per_second=2**64 - 1, progress=lambda leaves, freed, moved: leaves < 2)
    assert part.leaves == 2 and part.next is not None
    rest = tree.compact(start=part.next, bytes_per_second=2**64 - 1)
    assert rest.next is None and rest.leaves > 2 and rest.pages_freed > 5
    assert tree.compact()[:2] == (part.leaves + rest.leaves, 0)
    with pytest.raises(ZeroDivisionError):
        tree.compact(progress=lambda leaves, freed, moved: 1 / 0)
    assert dict(tree.items()) == rows and db.check() == []


def test_two_phase_commit(tmp_path):
    with weirdb.open(tmp_path / "db") as db:
        txn = db.write()
        txn.put(db["t"], b"k", b"v")
        txn.prepare(b"one")
    with weirdb.open(tmp_path / "db") as db:
        assert db.prepared() == [b"one"]
        assert db.commit_prepared(b"one") and not db.rollback_prepared(b"one")
        assert db["t"][b"k"] == b"v"


WRITER = """
import sys, weirdb
db = weirdb.open(sys.argv[1])
tree = db["t"]
n = len(tree)
while True:
    with db.write() as txn:
        txn.put(tree, b"%08d" % n, b"v" * 50)
        txn.put(tree, b"x%08d" % n, b"v" * 50)
    n += 2
    print(n, flush=True)
"""


def test_what_was_acknowledged_survives_kill_9(tmp_path):
    path = str(tmp_path / "db")
    acknowledged = 0
    for _ in range(4):
        child = subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE)
        for _ in range(50):
            line = child.stdout.readline()
            assert line, "the writer has ended"
            acknowledged = int(line)
        os.kill(child.pid, signal.SIGKILL)
        rest = child.stdout.read().split(b"\n")[:-1]
        acknowledged = max([acknowledged] + [int(line) for line in rest])
        child.wait()
        with weirdb.open(path) as db:
            there = len(db["t"])
            assert there >= acknowledged and there % 2 == 0 and db.check() == []


def test_an_encrypted_database_needs_its_keys(tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("1 " + "5a" * 32 + "\n")
    with weirdb.open(tmp_path / "db", key_file=keys) as db:
        db["t"][b"k"] = b"known plaintext"
    for file in (tmp_path / "db").iterdir():
        assert b"known plaintext" not in file.read_bytes()
    with pytest.raises(weirdb.KeyMissingError, match="key 1, version 1"):
        weirdb.open(tmp_path / "db")
    with weirdb.open(tmp_path / "db", key_file=str(keys)) as db:
        assert db["t"][b"k"] == b"known plaintext"
