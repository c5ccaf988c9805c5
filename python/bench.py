"""The same work through weirdb, lmdb and rocksdict, in one process each: `make python-bench`.

What each call promises stands beside its figures. All of them keep the same rows (checked after each step), have as much
memory for pages where that can be said, and run in turns: three rounds, the middle one counts. Ratios, not absolute figures:
what is measured includes Python's own part, which is alike for all.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import tempfile
import time
from typing import Any, Callable, Iterator, Optional, Tuple

CACHE = 256 << 20


class Store:
    """One way to keep rows. `durable` says what `put_synced` promises."""

    name = ""
    durable = ""

    def __init__(self, path: str) -> None: ...

    def load(self, rows: "list[Tuple[bytes, bytes]]") -> None: ...

    def get(self, key: bytes) -> "Optional[bytes]":
        raise NotImplementedError

    def put_synced(self, key: bytes, value: bytes) -> None: ...

    def put_batch(self, rows: "list[Tuple[bytes, bytes]]") -> None: ...

    def scan(self, start: bytes, count: int) -> "list[Tuple[bytes, bytes]]":
        raise NotImplementedError

    def rows(self) -> "Iterator[Tuple[bytes, bytes]]":
        raise NotImplementedError

    def close(self) -> None: ...


class Weir(Store):
    name = "weirdb"
    durable = "durability='synced': the log is on stable storage (fdatasync or O_DIRECT|O_DSYNC) when put returns"

    def __init__(self, path: str) -> None:
        import weirdb

        self.db = weirdb.open(path, cache_bytes=CACHE)
        self.tree = self.db["t"]

    def load(self, rows: "list[Tuple[bytes, bytes]]") -> None:
        self.tree.bulk_load(rows)

    def get(self, key: bytes) -> "Optional[bytes]":
        return self.tree.get(key)

    def put_synced(self, key: bytes, value: bytes) -> None:
        self.tree.put(key, value)

    def put_batch(self, rows: "list[Tuple[bytes, bytes]]") -> None:
        with self.db.write() as txn:
            for key, value in rows:
                txn.put(self.tree, key, value)

    def scan(self, start: bytes, count: int) -> "list[Tuple[bytes, bytes]]":
        with self.tree.items(start) as rows:
            return [row for row, _ in zip(rows, range(count))]

    def rows(self) -> "Iterator[Tuple[bytes, bytes]]":
        return self.tree.items()

    def close(self) -> None:
        self.db.close()


class Lmdb(Store):
    name = "lmdb"
    durable = "sync=True, metasync=True: fdatasync and the meta page at each commit"

    def __init__(self, path: str) -> None:
        import lmdb

        self.env = lmdb.open(path, map_size=8 << 30, sync=True, metasync=True)

    def load(self, rows: "list[Tuple[bytes, bytes]]") -> None:
        with self.env.begin(write=True) as txn:
            txn.cursor().putmulti(rows, append=True)

    def get(self, key: bytes) -> "Optional[bytes]":
        with self.env.begin() as txn:
            found: "Optional[bytes]" = txn.get(key)
            return found

    def put_synced(self, key: bytes, value: bytes) -> None:
        with self.env.begin(write=True) as txn:
            txn.put(key, value)

    def put_batch(self, rows: "list[Tuple[bytes, bytes]]") -> None:
        with self.env.begin(write=True) as txn:
            for key, value in rows:
                txn.put(key, value)

    def scan(self, start: bytes, count: int) -> "list[Tuple[bytes, bytes]]":
        with self.env.begin() as txn:
            cursor = txn.cursor()
            if not cursor.set_range(start):
                return []
            return [row for row, _ in zip(cursor.iternext(), range(count))]

    def rows(self) -> "Iterator[Tuple[bytes, bytes]]":
        with self.env.begin() as txn:
            yield from txn.cursor()

    def close(self) -> None:
        self.env.close()


class Rocks(Store):
    name = "rocksdict"
    durable = "WriteOptions.sync: fdatasync of the write-ahead log at each write"

    def __init__(self, path: str) -> None:
        import rocksdict

        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        table = rocksdict.BlockBasedOptions()
        table.set_block_cache(rocksdict.Cache(CACHE))
        options.set_block_based_table_factory(table)
        self.batch_of: "Callable[[], Any]" = lambda: rocksdict.WriteBatch(raw_mode=True)
        self.db = rocksdict.Rdict(path, options)
        self.synced = rocksdict.WriteOptions()
        self.synced.sync = True

    def load(self, rows: "list[Tuple[bytes, bytes]]") -> None:
        for at in range(0, len(rows), 10_000):
            batch = self.batch_of()
            for key, value in rows[at : at + 10_000]:
                batch.put(key, value)
            self.db.write(batch)
        self.db.flush()

    def get(self, key: bytes) -> "Optional[bytes]":
        found: "Optional[bytes]" = self.db.get(key)
        return found

    def put_synced(self, key: bytes, value: bytes) -> None:
        self.db.put(key, value, write_opt=self.synced)

    def put_batch(self, rows: "list[Tuple[bytes, bytes]]") -> None:
        batch = self.batch_of()
        for key, value in rows:
            batch.put(key, value)
        self.db.write(batch, write_opt=self.synced)

    def scan(self, start: bytes, count: int) -> "list[Tuple[bytes, bytes]]":
        rows: "Iterator[Any]" = self.db.items(from_key=start)
        return [row for row, _ in zip(rows, range(count))]

    def rows(self) -> "Iterator[Tuple[bytes, bytes]]":
        yield from self.db.items()

    def close(self) -> None:
        self.db.close()


STORES: "list[type[Store]]" = [Weir, Lmdb, Rocks]


def key_of(n: int) -> bytes:
    return b"%012d" % n


class Work:
    """The steps, each with the number of operations; all stores get the same, from one seed."""

    def __init__(self, store: Store, count: int, seed: int) -> None:
        self.store, self.count, self.random = store, count, random.Random(seed)
        self.model = {key_of(n): self.value() for n in range(count)}

    def value(self) -> bytes:
        return self.random.randbytes(100)

    def keys(self, count: int) -> "list[bytes]":
        return [key_of(self.random.randrange(self.count)) for _ in range(count)]

    def load(self) -> int:
        self.store.load(sorted(self.model.items()))
        return self.count

    def point_reads(self) -> int:
        keys = self.keys(self.count)
        for key in keys:
            if self.store.get(key) != self.model[key]:
                raise AssertionError(f"{self.store.name}: another value at {key!r}")
        return len(keys)

    def scans_of_100(self) -> int:
        starts = self.keys(self.count // 100)
        read = 0
        for start in starts:
            rows = self.store.scan(start, 100)
            read += len(rows)
            if not rows or rows[0] != (start, self.model[start]):
                raise AssertionError(f"{self.store.name}: a scan from {start!r} begins elsewhere")
        return read

    def full_scan(self) -> int:
        return sum(1 for _ in self.store.rows())

    def synced_puts(self) -> int:
        for key in self.keys(500):
            self.model[key] = self.value()
            self.store.put_synced(key, self.model[key])
        return 500

    def transactions_of_100(self) -> int:
        for _ in range(100):
            rows = [(key, self.value()) for key in self.keys(100)]
            self.model.update(rows)
            self.store.put_batch(rows)
        return 10_000

    def check(self) -> None:
        if dict(self.store.rows()) != self.model:
            raise AssertionError(f"{self.store.name}: not the rows that were put")


STEPS = ["load", "point_reads", "scans_of_100", "full_scan", "synced_puts", "transactions_of_100"]


def run(kind: "type[Store]", folder: str, count: int, seed: int) -> "dict[str, float]":
    path = os.path.join(folder, kind.name)
    store = kind(path)
    work = Work(store, count, seed)
    rates = {}
    for step in STEPS:
        begin = time.perf_counter()
        done = getattr(work, step)()
        rates[step] = done / (time.perf_counter() - begin)
        if step in ("load", "synced_puts", "transactions_of_100"):
            work.check()
    store.close()
    store = kind(path)
    work.store = store
    work.check()
    store.close()
    shutil.rmtree(path)
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", default=None, help="where the databases go (the temporary directory)")
    args = parser.parse_args()
    there = []
    for kind in STORES:
        try:
            __import__(kind.name)
            there.append(kind)
        except ImportError as e:
            print(f"without {kind.name}: {e}")
    print(f"{args.rows} rows of 12 + 100 bytes, one thread, {args.rounds} rounds in turns; load before: {os.getloadavg()}")
    for kind in there:
        print(f"{kind.name}: {kind.durable}")
    seen: "dict[str, list[dict[str, float]]]" = {kind.name: [] for kind in there}
    with tempfile.TemporaryDirectory(dir=args.dir) as folder:
        for round_ in range(args.rounds):
            for kind in there[round_ % len(there) :] + there[: round_ % len(there)]:
                seen[kind.name].append(run(kind, folder, args.rows, round_))
    print(f"{'operations a second':24}" + "".join(f"{kind.name:>14}" for kind in there) + "   weirdb / best other (rounds)")
    for step in STEPS:
        middle = {name: statistics.median(rates[step] for rates in all_) for name, all_ in seen.items()}
        others = [name for name in middle if name != "weirdb"]
        ratios = [
            seen["weirdb"][r][step] / max(seen[name][r][step] for name in others) for r in range(args.rounds) if others
        ]
        ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else ""
        print(f"{step:24}" + "".join(f"{middle[kind.name]:14,.0f}" for kind in there) + "   " + ratio)
    print(f"load after: {os.getloadavg()}")


if __name__ == "__main__":
    main()
