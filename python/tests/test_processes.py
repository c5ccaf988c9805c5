"""Processes: forks, the interpreter's end, signals. Whatever they do, the database is whole and the next opening gets in."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import copy
import multiprocessing

import pytest

import weirdb

SETTINGS = {"cache_bytes": 8 << 20, "log_bytes": 4 << 20}


def in_a_child(work):
    """Runs it in a fork of this process; what it says, or how it ended."""
    theirs, ours = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            said = repr(work())
        except BaseException as e:
            said = f"{type(e).__name__}: {e}"
        os.write(ours, said.encode())
        os._exit(0)
    os.close(ours)
    _, status = os.waitpid(child, 0)
    with os.fdopen(theirs, "rb") as file:
        return file.read().decode() if status == 0 else f"status {status}"


def test_a_fork_may_use_no_handle_and_harms_nothing(tmp_path):
    db = weirdb.open(tmp_path / "db", **SETTINGS)
    tree = db["t"]
    tree.bulk_load((b"%05d" % n, b"v" * 100) for n in range(2000))
    now, rows, txn, late = db.read(), tree.items(), db.write(), db.write()
    next(rows)
    txn.put(tree, b"parent", b"v")
    late.put(tree, b"late", b"v")
    commit = late.commit_nowait()
    for name, call in {
        "get": lambda: tree[b"00001"],
        "put": lambda: tree.put(b"child", b"v"),
        "scan": lambda: list(tree.items()),
        "rest of a scan": lambda: list(rows),
        "len": lambda: len(tree),
        "snapshot": lambda: now.get(tree, b"00001"),
        "in a transaction": lambda: txn.put(tree, b"child", b"v"),
        "commit": lambda: txn.commit(),
        "a commit's end": lambda: commit.wait(),
        "a transaction": lambda: db.transact(lambda txn: txn.put(tree, b"child", b"v")),
        "sync": lambda: db.sync(),
        "check": lambda: db.check(),
        "tree": lambda: db["u"],
        "bulk load": lambda: tree.bulk_load([(b"a", b"b")]),
        "backup": lambda: db.write_backup(tmp_path / "backup"),
        "copy": lambda: now.backup(tmp_path / "copy"),
        "compact": lambda: tree.compact(),
        "close": lambda: db.close(),
    }.items():
        said = in_a_child(call)
        # Rows that were taken before the fork are there.
        assert said.startswith("ForkedError: the database was opened before this process was forked"), (name, said)
    assert in_a_child(lambda: weirdb.open(tmp_path / "db")).startswith("DatabaseLockedError")
    # A child of its own database is a process like any other.
    assert in_a_child(lambda: weirdb.open(tmp_path / "other", **SETTINGS)["t"].insert(b"k", b"v")) == "None"
    # One that ends in order drops all handles.
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        del tree, rows, now, txn, late, commit, db
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    txn.commit()
    assert tree[b"parent"] == b"v" and b"child" not in tree and db.check() == []
    db.close()
    with weirdb.open(tmp_path / "db", **SETTINGS) as db:
        assert len(db["t"]) == 2002 and b"child" not in db["t"] and db.check() == []


def _open_and_put(path, key):
    try:
        with weirdb.open(path, **SETTINGS) as db:
            db["t"][key] = b"v"
    except weirdb.DatabaseLockedError:
        os._exit(7)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_open_it_when_the_parent_has_closed_it(tmp_path, method):
    path, start = tmp_path / "db", multiprocessing.get_context(method)

    def worker(key):
        process = start.Process(target=_open_and_put, args=(path, key))
        process.start()
        process.join(60)
        return process.exitcode

    with weirdb.open(path, **SETTINGS) as db:
        db["t"][b"parent"] = b"v"
        assert worker(b"refused") == 7
    assert worker(b"worker") == 0
    with weirdb.open(path, **SETTINGS) as db:
        assert list(db["t"].keys()) == [b"parent", b"worker"]


def test_a_fork_that_lives_on_keeps_nothing_from_opening(tmp_path):
    for how in ("closed", "dropped"):
        db = weirdb.open(tmp_path / "db", **SETTINGS)
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            signal.pause()
        try:
            if how == "closed":
                db.close()
            del db
            weirdb.open(tmp_path / "db", **SETTINGS).close()
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def run(script, *arguments):
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


BEGIN = "import asyncio, os, signal, sys, threading, time, weirdb\ndb = weirdb.open(sys.argv[1]); tree = db['t']\n"


@pytest.mark.parametrize(
    "script",
    [
        "threads = [threading.Thread(target=lambda: [tree.put(b'%d' % n, b'v') for n in range(10**9)], daemon=True) for _ in range(3)]\n"
        "[thread.start() for thread in threads]; time.sleep(0.3)\n",
        "for n in range(300):\n"
        "    txn = db.write(); txn.put(tree, b'%d' % n, b'v'); txn.commit_nowait().when_durable(lambda e: time.sleep(0.01))\n",
        "tree.bulk_load((b'%05d' % n, b'v') for n in range(2000))\n"
        "class Node: pass\n"
        "node = Node(); node.self = node; node.rows = tree.items(); next(node.rows); node.db = db\n"
        "node.txn = db.write(); node.txn.put(tree, b'k', b'v'); node.view = tree.view(b'00001'); node.now = db.read()\n"
        "del db, tree\n",
        "txn = db.write(); txn.put(tree, b'k', b'v'); rows = txn.items(tree); next(rows)\n",
    ],
    ids=["threads", "callbacks", "cycles", "generator"],
)
def test_the_interpreter_ends_in_the_middle(tmp_path, script):
    done = run(BEGIN + script, tmp_path / "db")
    assert done.returncode == 0 and done.stderr == "", done
    with weirdb.open(tmp_path / "db") as db:
        assert db.check() == []


def test_handles_are_not_copied(tmp_path):
    with weirdb.open(tmp_path / "db", **SETTINGS) as db:
        tree = db["t"]
        for handle in (db, tree, db.read(), db.write(), tree.items()):
            for act in (pickle.dumps, copy.deepcopy):
                with pytest.raises(TypeError):
                    act(handle)


def test_ctrl_c_ends_what_takes_long(tmp_path):
    db = weirdb.open(tmp_path / "db", durability="lazy", cache_bytes=64 << 20, log_bytes=64 << 20)
    tree = db["t"]
    tree.bulk_load((b"%06d" % n, os.urandom(400)) for n in range(50_000))
    for n in range(0, 50_000, 3):
        tree.remove(b"%06d" % n)
    db.sync()

    def interrupted(call):
        timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                call()
                # What ends before it is not what this is about, and would have the signal hit another test.
                timer.join()
                pytest.fail("it took less than the signal")
        finally:
            timer.join()

    def endless():
        key = b"k", b"v"
        while True:
            yield key

    # At a rate at which none of them ends by itself.
    interrupted(lambda: db.write_backup(tmp_path / "backup", bytes_per_second=1 << 20))
    assert os.path.getsize(tmp_path / "backup") < 10 << 20
    interrupted(lambda: tree.compact(bytes_per_second=1 << 18))
    interrupted(lambda: db["u"].bulk_load(endless()))
    assert len(db["u"]) == 0 and db.check() == []
    assert db.resume_backup(tmp_path / "backup") is not None
    db.close()
    assert weirdb.restore(tmp_path / "restored", [tmp_path / "backup"])
    with weirdb.open(tmp_path / "restored") as db:
        assert db.check() == []


def test_paths_of_every_kind(tmp_path):
    class Place:
        def __fspath__(self):
            return str(tmp_path / "place")

    names = [Place(), os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"), str(tmp_path / ("n" * 200)), tmp_path / "a b\n"]
    for name in names:
        with weirdb.open(name) as db:
            db["t"][b"k"] = b"v"
        with weirdb.open(name, create="never") as db:
            assert db["t"][b"k"] == b"v"
