"""A database against dictionaries: whatever is done, it shows what they show."""

import shutil
import tempfile

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import weirdb

keys = st.binary(max_size=3)
values = st.binary(max_size=60)


class Model(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.path = tempfile.mkdtemp()
        self.committed = {}
        self.snapshots = []
        self.open()

    def open(self):
        self.db = weirdb.open(self.path + "/db", cache_bytes=4 << 20, durability="lazy")
        self.tree = self.db["t"]
        self.txn, self.own, self.points = None, None, []

    def seen(self):
        return self.committed if self.txn is None else self.own

    @rule(key=keys, value=values)
    def put(self, key, value):
        if self.txn is None:
            self.tree[key] = value
        else:
            self.txn.put(self.tree, key, value)
        self.seen()[key] = value

    @rule(key=keys)
    def remove(self, key):
        removed = self.tree.remove(key) if self.txn is None else self.txn.remove(self.tree, key)
        assert removed == (self.seen().pop(key, None) is not None)

    @rule(key=keys)
    def get(self, key):
        reader = self.tree.get(key) if self.txn is None else self.txn.get(self.tree, key)
        assert reader == self.seen().get(key)

    @rule(start=st.none() | keys, stop=st.none() | keys, reverse=st.booleans())
    def items(self, start, stop, reverse):
        inside = lambda key: (start is None or start <= key) and (stop is None or key < stop)
        expected = sorted(
            ((key, value) for key, value in self.seen().items() if inside(key)), reverse=reverse
        )
        if self.txn is None:
            rows = self.tree.items(start, stop, reverse=reverse)
        else:
            rows = self.txn.items(self.tree, start, stop, reverse=reverse)
        assert list(rows) == expected

    @precondition(lambda self: self.txn is None)
    @rule()
    def begin(self):
        self.txn, self.own, self.points = self.db.write(), dict(self.committed), []

    @precondition(lambda self: self.txn is not None)
    @rule(commits=st.booleans())
    def end(self, commits):
        if commits:
            self.txn.commit()
            self.committed = self.own
        else:
            self.txn.rollback()
        self.txn = None

    @precondition(lambda self: self.txn is not None)
    @rule()
    def savepoint(self):
        self.points.append((self.txn.savepoint(), dict(self.own)))

    @precondition(lambda self: self.txn is not None and self.points)
    @rule(data=st.data())
    def rollback_to(self, data):
        at = data.draw(st.integers(0, len(self.points) - 1))
        del self.points[at + 1 :]
        point, own = self.points[at]
        self.txn.rollback_to(point)
        self.own = dict(own)

    @rule()
    def snapshot(self):
        self.snapshots.append((self.db.read(), dict(self.committed)))

    @precondition(lambda self: self.snapshots)
    @rule()
    def look_at_snapshots(self):
        for now, rows in self.snapshots:
            assert dict(now.items(self.tree)) == rows and now.count(self.tree) == len(rows)

    @precondition(lambda self: self.txn is None)
    @rule()
    def reopen(self):
        self.snapshots = []
        self.db.close()
        self.open()

    @invariant()
    def others_see_what_is_committed(self):
        assert dict(self.tree.items()) == self.committed

    def teardown(self):
        if self.txn is not None:
            self.txn.rollback()
        self.snapshots = []
        self.db.close()
        shutil.rmtree(self.path)


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
