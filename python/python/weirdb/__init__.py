"""An embedded transactional key-value store: ordered maps of bytes, in a directory."""

from __future__ import annotations

import asyncio
import os
import time
import random
import sys
from typing import (
    NamedTuple,
    Sequence,
    Any,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Optional,
    Tuple,
    TypeVar,
    Union,
    overload,
)

from . import _weirdb
from ._weirdb import (
    ClosedError,
    Commit,
    ConflictError,
    DamagedError,
    DatabaseLockedError,
    KeyMissingError,
    DeadlockError,
    DiskFullError,
    Error,
    ExistsError,
    ForkedError,
    HaltedError,
    InvalidInputError,
    LockTimeoutError,
    NoTreeError,
    OpeningError,
    ReadOnlyError,
    Rows,
    Savepoint,
    TransactionOverError,
)

__all__ = [
    "open",
    "restore",
    "PageBackup",
    "Compacted",
    "Database",
    "Tree",
    "Snapshot",
    "Transaction",
    "Rows",
    "Commit",
    "Savepoint",
    "Error",
    "ConflictError",
    "DeadlockError",
    "LockTimeoutError",
    "ExistsError",
    "NoTreeError",
    "InvalidInputError",
    "TransactionOverError",
    "DiskFullError",
    "DamagedError",
    "HaltedError",
    "ClosedError",
    "ForkedError",
    "ReadOnlyError",
    "OpeningError",
    "DatabaseLockedError",
    "KeyMissingError",
]

T = TypeVar("T")
# What is taken as a key or a value; what is shown is always bytes, or a memoryview where asked for.
Bytes = Union[bytes, bytearray, memoryview]
Row = Tuple[bytes, bytes]
_MISSING = object()


def _shown(value: "Optional[_weirdb.Value]") -> "Optional[memoryview]":
    return None if value is None else memoryview(value)


class PageBackup(NamedTuple):
    """What a backup of pages and log holds."""

    pages: int
    log_bytes: int
    bytes: int
    position: int


class Compacted(NamedTuple):
    """What a compaction has done; next: where another one starts, None: the tree is dense."""

    leaves: int
    pages_freed: int
    pages_moved: int
    next: "Optional[bytes]"


def restore(
    path: "str | os.PathLike[str]",
    backups: "Sequence[str | os.PathLike[str]]",
    *,
    key_file: "Optional[str | os.PathLike[str]]" = None,
    progress: "Optional[Callable[[int], object]]" = None,
) -> bool:
    """Makes a database in an empty directory of a full backup and those since it, in their order.

    progress gets the bytes read. False: it returned False, and nothing is left in the directory.
    """
    return _weirdb.restore(path, backups, key_file=key_file, progress=progress)


def open(path: "str | os.PathLike[str]", **settings: Any) -> "Database":
    """Opens the database in a directory, and makes it if need be; recovers after a crash.

    cache_bytes, log_bytes, page_bytes: sizes; left out, they are the usual ones.
    durability: what commits promise: "synced", "written" or "lazy".
    create: "if_missing", "never" or "always". read_only: nothing is changed.
    force_recovery: 1 to 4, for a damaged database: what can be read is read, and nothing is changed; each step leaves out
        more (see `crates/weirdb`). Rows that cannot be read are passed over, as metrics() count.
    store: "in_place" or "log", where a new database keeps its pages.
    key_file: the keys of an encrypted database (`weir key new` makes such a file); a new one is encrypted with them.
    on_recovery: called with (phase, done, of) while it recovers after a crash; of may be None.
    """
    return Database(_weirdb.open(path, **settings))


class Database:
    """An open database; all threads may use it. As a context manager it is closed at the end."""

    def __init__(self, inner: "_weirdb.Database") -> None:
        self._inner = inner

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes it in order. Other handles raise ClosedError from then on."""
        self._inner.close()

    def tree(self, name: str) -> "Tree":
        """The tree of this name, made if there is none."""
        return Tree(self._inner.tree(name))

    __getitem__ = tree

    def get_tree(self, name: str) -> "Optional[Tree]":
        """The tree of this name, None when there is none."""
        inner = self._inner.get_tree(name)
        return None if inner is None else Tree(inner)

    def __contains__(self, name: str) -> bool:
        return self._inner.get_tree(name) is not None

    def __iter__(self) -> "Iterator[str]":
        return iter(self.tree_names())

    def tree_names(self) -> "list[str]":
        """The names of all trees, in order."""
        return self._inner.tree_names()

    def drop_tree(self, name: str) -> bool:
        """Drops a tree. False: there was none."""
        return self._inner.drop_tree(name)

    def rename_tree(self, old: str, new: str) -> bool:
        """Gives a tree another name. False: there was none of the old one."""
        return self._inner.rename_tree(old, new)

    def read(self) -> "Snapshot":
        """What is committed now, for as long as one likes."""
        return Snapshot(self._inner.read())

    def write(self, **options: Any) -> "Transaction":
        """Begins a transaction.

        isolation: "snapshot", "read committed", "repeatable read" or "serializable".
        durability: as for open. lock_wait: seconds; 0 never waits.
        """
        return Transaction(self._inner.write(**options))

    def transact(
        self, body: "Callable[[Transaction], T]", *, attempts: int = 100, **options: Any
    ) -> T:
        """Runs body(txn) in a transaction, again when it meets another one, and commits."""
        pause = 50e-6
        for attempt in range(1, max(attempts, 1) + 1):
            try:
                with self.write(**options) as txn:
                    return body(txn)
            except ConflictError:
                if attempt >= attempts:
                    raise
            time.sleep(random.uniform(0, pause))
            pause = min(2 * pause, 10e-3)
        raise AssertionError("unreachable")

    def sync(self) -> None:
        """Waits until all that was committed so far is on stable storage."""
        self._inner.sync()

    def check(self, progress: "Optional[Callable[[int, int], object]]" = None) -> "list[str]":
        """Checks everything; returns what is wrong. progress gets pages done, and of how many."""
        return self._inner.check(progress)

    def write_backup(
        self,
        path: "str | os.PathLike[str]",
        *,
        since: "Optional[str | os.PathLike[str]]" = None,
        key_file: "Optional[str | os.PathLike[str]]" = None,
        bytes_per_second: "Optional[int]" = None,
        progress: "Optional[Callable[[int, int, int], object]]" = None,
    ) -> "Optional[PageBackup]":
        """Writes pages and log to a new file while all goes on: what was committed when this returns.

        since: another backup; only what was changed since is written, and both are needed to
        restore. key_file opens that one if it is of an encrypted database. progress gets pages
        done, of how many, and bytes written; where it returns False the backup ends, and None is
        returned: resume_backup goes on with it, also after a crash.
        """
        done = self._inner.write_backup(
            path, since=since, key_file=key_file, bytes_per_second=bytes_per_second, progress=progress
        )
        return None if done is None else PageBackup(*done)

    def resume_backup(
        self,
        path: "str | os.PathLike[str]",
        *,
        bytes_per_second: "Optional[int]" = None,
        progress: "Optional[Callable[[int, int, int], object]]" = None,
    ) -> "Optional[PageBackup]":
        """Goes on with a backup in a file that was cut off; as write_backup."""
        done = self._inner.resume_backup(path, bytes_per_second=bytes_per_second, progress=progress)
        return None if done is None else PageBackup(*done)

    def recovery_remarks(self) -> "list[str]":
        """What opening with force_recovery has found damaged or left out, in words."""
        return self._inner.recovery_remarks()

    def metrics(self) -> "dict[str, float]":
        """All numbers about the database, by the names that a monitoring system wants."""
        return dict(self._inner.metrics())

    def prepared(self) -> "list[bytes]":
        """The names of prepared transactions."""
        return self._inner.prepared()

    def commit_prepared(self, name: Bytes) -> bool:
        """Commits a prepared transaction. False: there is none."""
        return self._inner.commit_prepared(name)

    def rollback_prepared(self, name: Bytes) -> bool:
        """Takes a prepared transaction back. False: there is none."""
        return self._inner.rollback_prepared(name)


class Tree:
    """An ordered map of bytes. What is done with it is a transaction of its own each time."""

    def __init__(self, inner: "_weirdb.Tree") -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        return self._inner.name

    def __repr__(self) -> str:
        return f"Tree({self.name!r})"

    def __getitem__(self, key: Bytes) -> bytes:
        return self._inner[key]

    def __setitem__(self, key: Bytes, value: Bytes) -> None:
        self._inner[key] = value

    def __delitem__(self, key: Bytes) -> None:
        del self._inner[key]

    def __contains__(self, key: Bytes) -> bool:
        return key in self._inner

    def __len__(self) -> int:
        return len(self._inner)

    def __bool__(self) -> bool:
        return next(self.items(), None) is not None

    def __iter__(self) -> "Iterator[bytes]":
        return self.keys()

    @overload
    def get(self, key: Bytes) -> "Optional[bytes]": ...
    @overload
    def get(self, key: Bytes, default: T) -> "Union[bytes, T]": ...
    def get(self, key: Bytes, default: Any = None) -> Any:
        """The value at a key."""
        found = self._inner.get(key)
        return default if found is None else found

    def get_many(self, keys: "Iterable[Bytes]") -> "list[Optional[bytes]]":
        """The values at many keys at one moment, in the order of these; None: there is no row.

        Faster than get of each where they are not in memory: the disk is asked for many at a time.
        """
        return self._inner.get_many(list(keys))

    def view(self, key: Bytes) -> "Optional[memoryview]":
        """The value at a key as it was read, without a further copy; None: there is no row.

        It is read-only, and stays as it is whatever becomes of the row.
        """
        return _shown(self._inner.view(key))

    def put(self, key: Bytes, value: Bytes) -> None:
        """Inserts a row, or replaces its value."""
        self._inner[key] = value

    def insert(self, key: Bytes, value: Bytes) -> None:
        """Inserts a row; ExistsError when there is one."""
        self._inner.insert(key, value)

    def remove(self, key: Bytes) -> bool:
        """Removes a row. False: there was none."""
        return self._inner.remove(key)

    @overload
    def pop(self, key: Bytes) -> bytes: ...
    @overload
    def pop(self, key: Bytes, default: T) -> "Union[bytes, T]": ...
    def pop(self, key: Bytes, default: Any = _MISSING) -> Any:
        """Removes a row and returns its value; in a race with another thread, each gets it once."""
        while True:
            found = self._inner.get(key)
            if found is None:
                if default is _MISSING:
                    raise KeyError(key)
                return default
            if self._inner.compare_and_swap(key, found, None):
                return found

    def add(self, key: Bytes, by: int = 1) -> int:
        """Adds to a counter of eight bytes, the least first; returns what it is then."""
        return self._inner.add(key, by)

    def compare_and_swap(
        self, key: Bytes, expected: "Optional[Bytes]", new: "Optional[Bytes]"
    ) -> bool:
        """Makes a value new if it is expected; None stands for no row."""
        return self._inner.compare_and_swap(key, expected, new)

    def items(
        self,
        start: "Optional[Bytes]" = None,
        stop: "Optional[Bytes]" = None,
        *,
        reverse: bool = False,
        limit: "Optional[int]" = None,
    ) -> Rows:
        """The rows of this moment from start on and below stop, limit of them at most."""
        return self._inner.range(start, stop, reverse=reverse, limit=limit)

    def prefix(
        self, prefix: Bytes, *, reverse: bool = False, limit: "Optional[int]" = None
    ) -> Rows:
        """The rows of this moment whose keys begin so, limit of them at most."""
        return self._inner.prefix(prefix, reverse=reverse, limit=limit)

    def keys(self) -> "Iterator[bytes]":
        return (key for key, _ in self.items())

    def values(self) -> "Iterator[bytes]":
        return (value for _, value in self.items())

    def setdefault(self, key: Bytes, default: Bytes) -> bytes:
        """The value at a key; inserts this one where there is no row."""
        while True:
            found = self._inner.get(key)
            if found is not None:
                return found
            if self._inner.compare_and_swap(key, None, default):
                return bytes(default)

    def popitem(self) -> Row:
        """Removes the last row and returns it; in a race with another thread, each gets it once."""
        while True:
            with self.items(reverse=True) as rows:
                row = next(rows, None)
            if row is None:
                raise KeyError("popitem(): the tree is empty")
            if self._inner.compare_and_swap(row[0], row[1], None):
                return row

    def update(self, rows: "Union[Mapping[bytes, Bytes], Tree, Iterable[Tuple[Bytes, Bytes]]]") -> None:
        """Puts rows, each in a transaction of its own; several as one: Database.write."""
        pairs = rows.items() if isinstance(rows, (Mapping, Tree)) else rows
        for key, value in pairs:
            self._inner[key] = value

    def clear(self) -> None:
        """Removes all rows of this moment, each in a transaction of its own."""
        with self.items() as rows:
            for key, _ in rows:
                self._inner.remove(key)

    def approximate_len(self) -> int:
        """About how many rows there are, quickly."""
        return self._inner.approximate_len()

    def bulk_load(self, rows: "Iterable[Tuple[Bytes, Bytes]]") -> int:
        """Fills the tree, which must be empty, with rows in ascending order: all or none."""
        return self._inner.bulk_load(rows)

    def compact(
        self,
        *,
        start: "Optional[Bytes]" = None,
        bytes_per_second: "Optional[int]" = None,
        progress: "Optional[Callable[[int, int, int], object]]" = None,
    ) -> "Compacted":
        """Makes the tree dense after many removals, while others read and write it.

        By itself it takes a tenth of the disk. progress gets leaves done, pages freed and pages
        moved after each step; where it returns False, what is returned says where to start next.
        """
        done = self._inner.compact(start=start, bytes_per_second=bytes_per_second, progress=progress)
        return Compacted(*done)


class Snapshot:
    """All trees at one moment; threads may share it. As a context manager it is given up at the end."""

    def __init__(self, inner: "_weirdb.Snapshot") -> None:
        self._inner = inner

    def __enter__(self) -> "Snapshot":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Gives it up: the database need not keep what it sees any more."""
        self._inner.close()

    @overload
    def get(self, tree: Tree, key: Bytes) -> "Optional[bytes]": ...
    @overload
    def get(self, tree: Tree, key: Bytes, default: T) -> "Union[bytes, T]": ...
    def get(self, tree: Tree, key: Bytes, default: Any = None) -> Any:
        """The value at a key."""
        found = self._inner.get(tree._inner, key)
        return default if found is None else found

    def get_many(self, tree: Tree, keys: "Iterable[Bytes]") -> "list[Optional[bytes]]":
        """As Tree.get_many, of the snapshot's moment."""
        return self._inner.get_many(tree._inner, list(keys))

    def view(self, tree: Tree, key: Bytes) -> "Optional[memoryview]":
        """As Tree.view."""
        return _shown(self._inner.view(tree._inner, key))

    def count(self, tree: Tree) -> int:
        """How many rows there are."""
        return self._inner.count(tree._inner)

    def items(
        self,
        tree: Tree,
        start: "Optional[Bytes]" = None,
        stop: "Optional[Bytes]" = None,
        *,
        reverse: bool = False,
        limit: "Optional[int]" = None,
    ) -> Rows:
        """The rows from start on and below stop, limit of them at most."""
        return self._inner.range(tree._inner, start, stop, reverse=reverse, limit=limit)

    def prefix(
        self,
        tree: Tree,
        prefix: Bytes,
        *,
        reverse: bool = False,
        limit: "Optional[int]" = None,
    ) -> Rows:
        """The rows whose keys begin so, limit of them at most."""
        return self._inner.prefix(tree._inner, prefix, reverse=reverse, limit=limit)

    def backup(self, path: "str | os.PathLike[str]") -> int:
        """Copies all trees into a new database; returns the number of rows."""
        return self._inner.backup(path)


class Transaction:
    """A transaction. As a context manager it commits at the end, or rolls back when something raises."""

    def __init__(self, inner: "_weirdb.Transaction") -> None:
        self._inner = inner

    def __enter__(self) -> "Transaction":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if not self._inner.is_open:
            return
        if kind is None:
            self._inner.commit()
            return
        try:
            self._inner.rollback()
        except Error:
            # The first exception is the one that is raised; the engine goes on with the rollback by itself.
            pass

    @overload
    def get(self, tree: Tree, key: Bytes, *, for_update: bool = False) -> "Optional[bytes]": ...
    @overload
    def get(self, tree: Tree, key: Bytes, default: T, *, for_update: bool = False) -> "Union[bytes, T]": ...
    def get(self, tree: Tree, key: Bytes, default: Any = None, *, for_update: bool = False) -> Any:
        """The value at a key; for_update locks the row."""
        found = self._inner.get(tree._inner, key, for_update=for_update)
        return default if found is None else found

    def view(self, tree: Tree, key: Bytes) -> "Optional[memoryview]":
        """As Tree.view."""
        return _shown(self._inner.view(tree._inner, key))

    def put(self, tree: Tree, key: Bytes, value: Bytes) -> None:
        """Inserts a row, or replaces its value."""
        self._inner.put(tree._inner, key, value)

    def insert(self, tree: Tree, key: Bytes, value: Bytes) -> None:
        """Inserts a row; ExistsError when there is one."""
        self._inner.insert(tree._inner, key, value)

    def remove(self, tree: Tree, key: Bytes) -> bool:
        """Removes a row. False: there was none."""
        return self._inner.remove(tree._inner, key)

    def add(self, tree: Tree, key: Bytes, by: int = 1) -> int:
        """Adds to a counter; returns what it is then."""
        return self._inner.add(tree._inner, key, by)

    def count(self, tree: Tree) -> int:
        """How many rows there are."""
        return self._inner.count(tree._inner)

    def items(
        self,
        tree: Tree,
        start: "Optional[Bytes]" = None,
        stop: "Optional[Bytes]" = None,
        *,
        reverse: bool = False,
        limit: "Optional[int]" = None,
    ) -> "Generator[Row, None, None]":
        """The rows from start on and below stop, limit of them at most, as the transaction sees
        them when they are read."""
        left = sys.maxsize if limit is None else limit
        after: "Optional[bytes]" = None
        while left != 0:
            rows = self._inner.rows(tree._inner, start, after, stop, reverse, left)
            if not rows:
                return
            yield from rows
            after = rows[-1][0]
            left -= len(rows)

    def prefix(
        self,
        tree: Tree,
        prefix: Bytes,
        *,
        reverse: bool = False,
        limit: "Optional[int]" = None,
    ) -> "Generator[Row, None, None]":
        """The rows whose keys begin so, limit of them at most, as items() sees them."""
        start = bytes(prefix)
        # The least key above all that begin so; there is none above 0xff alone.
        kept = start.rstrip(b"\xff")
        stop = kept[:-1] + bytes([kept[-1] + 1]) if kept else None
        return self.items(tree, start, stop, reverse=reverse, limit=limit)

    def first_unlocked(
        self, tree: Tree, start: "Optional[Bytes]" = None, stop: "Optional[Bytes]" = None
    ) -> "Optional[Row]":
        """The first row of a range that no other transaction has locked, locked for this one."""
        return self._inner.first_unlocked(tree._inner, start, stop)

    def savepoint(self) -> Savepoint:
        """A point to go back to."""
        return self._inner.savepoint()

    def rollback_to(self, savepoint: Savepoint) -> None:
        """Rolls back what was changed since."""
        self._inner.rollback_to(savepoint)

    def commit(self) -> None:
        """Commits, as durably as asked."""
        self._inner.commit()

    def commit_nowait(self) -> Commit:
        """Commits; others see it now, and what it returns says when it is durable."""
        return self._inner.commit_nowait()

    async def commit_async(self) -> None:
        """Commits, and is done when that is durable."""
        loop = asyncio.get_running_loop()
        done: "asyncio.Future[None]" = loop.create_future()

        def finish(error: "Optional[BaseException]") -> None:
            if done.done():
                return
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

        def on_durable(error: "Optional[BaseException]") -> None:
            try:
                loop.call_soon_threadsafe(finish, error)
            except RuntimeError:
                # The loop has been closed: no task waits any more.
                pass

        self._inner.commit_nowait().when_durable(on_durable)
        await done

    def rollback(self) -> None:
        """Takes everything back."""
        self._inner.rollback()

    def prepare(self, name: Bytes) -> None:
        """Prepares it for a commit that something else decides."""
        self._inner.prepare(name)
