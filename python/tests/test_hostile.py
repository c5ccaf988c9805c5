"""What no program should give, to everything that takes something: an exception of a class, and nothing lost."""

import array
import gc
import os
import stat
import subprocess
import sys
import threading

import pytest

import weirdb


@pytest.fixture
def db(tmp_path):
    with weirdb.open(tmp_path / "db", cache_bytes=8 << 20, log_bytes=4 << 20, durability="lazy") as db:
        yield db


NO_BYTES = ["text", 7, None, 1.5, object(), [1], array.array("i", [1, 2])]


def test_what_is_no_bytes_is_refused_everywhere(db):
    tree = db["t"]
    tree[b"k"] = b"v"
    txn, now = db.write(), db.read()
    for wrong in NO_BYTES:
        for call in (
            lambda: tree[wrong],
            lambda: tree.__setitem__(wrong, b"v"),
            lambda: tree.__setitem__(b"k", wrong),
            lambda: tree.__delitem__(wrong),
            lambda: wrong in tree,
            lambda: tree.get(wrong),
            lambda: tree.view(wrong),
            lambda: tree.insert(wrong, b"v"),
            lambda: tree.remove(wrong),
            lambda: tree.add(wrong),
            lambda: tree.setdefault(wrong, b"v"),
            lambda: tree.pop(wrong),
            lambda: tree.prefix(wrong),
            lambda: tree.bulk_load([(wrong, b"v")]),
            lambda: tree.bulk_load([(b"k", wrong)]),
            lambda: txn.put(tree, wrong, b"v"),
            lambda: txn.get(tree, wrong),
            lambda: txn.prepare(wrong),
            lambda: now.get(tree, wrong),
        ):
            # prepare takes the transaction first.
            with pytest.raises((TypeError, weirdb.TransactionOverError)):
                call()
            if not txn._inner.is_open:
                txn = db.write()
    assert dict(tree.items()) == {b"k": b"v"}


def test_all_that_holds_bytes_is_taken_and_copied(db):
    tree = db["t"]
    backing = bytearray(b"0123456789")
    tree[memoryview(backing)[2:4]] = memoryview(backing)[::-1]
    backing[:] = b"xxxxxxxxxx"
    assert dict(tree.items()) == {b"23": b"9876543210"}
    assert tree[bytearray(b"23")] == tree[memoryview(b"23")] == b"9876543210"
    tree.update({b"a": bytearray(b"1")})
    tree.update([(b"b", memoryview(b"2"))])
    assert tree.setdefault(b"a", b"9") == b"1" and tree.setdefault(b"c", bytearray(b"3")) == b"3"
    assert tree.popitem() == (b"c", b"3")
    tree.clear()
    with pytest.raises(KeyError):
        tree.popitem()


def test_views_stay_as_they_are_and_keep_what_they_show(db):
    tree = db["t"]
    assert tree.view(b"k") is None
    tree[b"k"] = b"v" * 100_000
    view = tree.view(b"k")
    with db.read() as now, db.write() as txn:
        same = [view, now.view(tree, b"k"), txn.view(tree, b"k")]
        txn.put(tree, b"k", b"w")
        assert txn.view(tree, b"k") == b"w"
    assert view.readonly and view.contiguous and view.format == "B"
    with pytest.raises(TypeError):
        view[0] = 1
    part = view[5:10]
    del view, now, txn
    db.drop_tree("t")
    gc.collect()
    assert all(bytes(view) == b"v" * 100_000 for view in same) and bytes(part) == b"v" * 5
    tree = db["u"]
    tree[b""] = b""
    assert len(tree.view(b"")) == 0 and tree.view(b"").tobytes() == b""


def test_rows_can_be_given_up(db):
    tree = db["t"]
    tree.bulk_load((b"%05d" % n, b"v") for n in range(1000))
    with tree.items() as rows:
        assert next(rows)[0] == b"00000"
    with pytest.raises(weirdb.TransactionOverError):
        next(rows)
    rows.close()
    with pytest.raises(ZeroDivisionError):
        with tree.prefix(b"0") as rows:
            1 / 0
    with db.write() as txn:
        rows = txn.items(tree)
        next(rows)
        rows.close()


def test_keys_and_values_at_and_over_the_limit(db):
    tree = db["t"]
    longest = 3072
    for n in (0, 1, longest - 1, longest):
        tree[b"k" * n] = b"v"
        assert tree[b"k" * n] == b"v"
    for n in (longest + 1, 10_000, 1 << 24):
        for call in (
            lambda: tree.__setitem__(b"k" * n, b"v"),
            lambda: tree.insert(b"k" * n, b"v"),
            lambda: tree.add(b"k" * n),
            lambda: db["u"].bulk_load([(b"k" * n, b"v")]),
        ):
            with pytest.raises(weirdb.InvalidInputError):
                call()
        assert b"k" * n not in tree and list(tree.items(b"k" * n)) == []
    for n in (0, 1, 8191, 8192, 8193, 1 << 20):
        tree[b"v"] = bytes(n)
        assert tree[b"v"] == bytes(n)
    assert len(tree) == 5 and db.check() == []
    with pytest.raises(OverflowError):
        tree.add(b"n", 1 << 63)
    tree.add(b"n", (1 << 63) - 1)
    with pytest.raises(weirdb.InvalidInputError):
        tree.add(b"n", 1)


@pytest.mark.parametrize(
    "settings",
    [
        {"cache_bytes": -1},
        {"cache_bytes": 1 << 64},
        {"cache_bytes": "large"},
        {"page_bytes": -1},
        {"store": "somewhere"},
        {"read_only": "yes"},
        {"force_recovery": -1},
        {"force_recovery": 256},
        {"no_such_setting": 1},
    ],
)
def test_settings_that_are_none(tmp_path, settings):
    with pytest.raises((OverflowError, TypeError, ValueError)):
        weirdb.open(tmp_path / "db", **settings)
    assert not (tmp_path / "db").exists()


def test_options_that_are_none(db):
    for options in ({"isolation": "dirty"}, {"durability": ""}, {"lock_wait": -1}, {"lock_wait": float("nan")}):
        with pytest.raises(ValueError):
            db.write(**options)
    for name in ("", "x" * 256):
        with pytest.raises(weirdb.InvalidInputError):
            db[name]
    for name in (7, None, b"t"):
        with pytest.raises(TypeError):
            db[name]


def test_places_where_no_database_can_be(tmp_path):
    (tmp_path / "file").write_text("not a directory")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "letter").write_text("dear")
    for place in (tmp_path / "file", tmp_path / "foreign", tmp_path / "file" / "below", "/proc/weirdb", "a\0b", ""):
        with pytest.raises((weirdb.OpeningError, ValueError)):
            weirdb.open(place)
    with pytest.raises(weirdb.OpeningError):
        weirdb.open(tmp_path / "missing", create="never")
    assert not (tmp_path / "missing").exists()
    assert (tmp_path / "file").read_text() == "not a directory"
    assert [p.name for p in (tmp_path / "foreign").iterdir()] == ["letter"]


def test_without_permission(tmp_path):
    path = tmp_path / "db"
    weirdb.open(path).close()
    script = (
        "import os, sys, weirdb\n"
        "if os.getuid() == 0: os.setgid(65534); os.setuid(65534)\n"
        "try: weirdb.open(sys.argv[1])\n"
        "except weirdb.OpeningError as e: print('refused:', e)\n"
    )
    # Whatever is above it may be walked through, so that it is this directory that refuses.
    modes = [(folder, stat.S_IMODE(folder.stat().st_mode)) for folder in path.parents]
    before = [(folder, mode) for folder, mode in modes if mode & 0o011 != 0o011]
    try:
        for folder, mode in before:
            folder.chmod(mode | 0o111)
        path.chmod(0o500)
        done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True)
        assert "refused:" in done.stdout and "ermission" in done.stdout, done
    finally:
        path.chmod(0o700)
        for folder, mode in before:
            folder.chmod(mode)
    weirdb.open(path).close()


def test_closed_handles_say_so(tmp_path):
    db = weirdb.open(tmp_path / "db")
    tree, now, txn = db["t"], db.read(), db.write()
    tree[b"k"] = b"v"
    rows, point = tree.items(), txn.savepoint()
    db.close()
    for call in (
        lambda: tree[b"k"],
        lambda: tree.view(b"k"),
        lambda: tree.__setitem__(b"k", b"v"),
        lambda: len(tree),
        lambda: next(rows),
        lambda: now.get(tree, b"k"),
        lambda: now.backup(tmp_path / "copy"),
        lambda: txn.put(tree, b"k", b"v"),
        lambda: txn.rollback_to(point),
        lambda: txn.commit(),
        lambda: db.tree_names(),
        lambda: db.sync(),
        lambda: db.check(),
        lambda: db.transact(lambda txn: txn.put(tree, b"k", b"v")),
    ):
        with pytest.raises(weirdb.ClosedError):
            call()
    db.close()
    assert db.metrics()["weir_checkpoint_age_bytes"] >= 0


def test_a_closure_that_raises_takes_everything_back(db):
    tree = db["t"]

    def body(txn):
        txn.put(tree, b"k", b"v")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        db.transact(body)
    assert len(tree) == 0
    attempts = []

    def meets(txn):
        attempts.append(1)
        raise weirdb.ConflictError("met")

    with pytest.raises(weirdb.ConflictError):
        db.transact(meets, attempts=3)
    assert len(attempts) == 3


def test_recovery_reports_progress(tmp_path):
    script = (
        "import os, sys, weirdb\n"
        "db = weirdb.open(sys.argv[1]); tree = db['t']\n"
        "for n in range(2000): tree[b'%d' % n] = b'v' * 100\n"
        "db.sync(); os.kill(os.getpid(), 9)\n"
    )
    path = tmp_path / "db"
    settings = {"durability": "lazy"}
    subprocess.run([sys.executable, "-c", script.replace("sys.argv[1])", f"sys.argv[1], **{settings!r})"), str(path)])
    seen = []
    with weirdb.open(path, on_recovery=lambda *at: seen.append(at)) as db:
        assert len(db["t"]) == 2000
    assert seen and all(phase in ("scan", "redo", "undo") and done >= 0 for phase, done, _ in seen)


def test_threads_share_what_they_may(db):
    tree = db["t"]
    tree.bulk_load((b"%05d" % n, b"v") for n in range(3000))
    now, rows, failed, taken = db.read(), tree.items(), [], []

    def work():
        try:
            for row in rows:
                taken.append(row[0])
            assert now.count(tree) == 3000
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and sorted(taken) == [b"%05d" % n for n in range(3000)]


def test_a_damaged_database_is_read_as_far_as_it_can_be(tmp_path):
    path = tmp_path / "db"
    rows = {b"%05d" % n: bytes(100) for n in range(5000)}
    with weirdb.open(path, page_bytes=4096) as db:
        db["t"].bulk_load(sorted(rows.items()))
        assert db.recovery_remarks() == []
    with open(path / "pages", "r+b") as file:
        for page in range(12, os.path.getsize(path / "pages") // 4096, 4):
            file.seek(page * 4096 + 2000)
            file.write(b"\xa5" * 64)
    for copy in path.glob("doublewrite-*"):
        copy.write_bytes(bytes(copy.stat().st_size))
    files = {file: file.read_bytes() for file in path.iterdir()}
    with weirdb.open(path, force_recovery=1) as db:
        read = dict(db["t"].items())
        assert 1000 < len(read) < 4950 and read.items() <= rows.items()
        assert db.metrics()["weir_pool_passed_over_places"] > 5
        assert db.recovery_remarks() == []
        with pytest.raises(weirdb.ReadOnlyError):
            db["t"][b"k"] = b"v"
    with weirdb.open(path, force_recovery=4) as db:
        assert "the log is not applied" in db.recovery_remarks()[0]
    assert {file: file.read_bytes() for file in path.iterdir()} == files
    with weirdb.open(path, read_only=True) as db:
        with pytest.raises(weirdb.DamagedError):
            dict(db["t"].items())
    with pytest.raises(weirdb.InvalidInputError, match="the last is 4"):
        weirdb.open(path, force_recovery=5)
