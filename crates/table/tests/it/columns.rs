//! A table whose columns come, go and move is a `BTreeMap`, whenever its rows were written, for
//! snapshots from before too, and over crashes.
use std::collections::BTreeMap;

use proptest::prelude::*;
use weir::{Db, Durability, Isolation, SimVolume, Txn};
use weir_table::{
    Column, ColumnChange, ColumnType, Direction, Error, Index, Range, Row, Schema, Table, Tables,
    Value,
};

use crate::support::{assert_sound, at, begin, new, open, rows};

/// The columns behind the key, each with a number of its own and what rows without it have.
type Columns = Vec<(u32, Column, Value)>;
/// Rows by their key: values by the numbers of their columns.
type Model = BTreeMap<u64, BTreeMap<u32, Value>>;

#[derive(Clone, Debug)]
enum Op {
    Insert(u64, u64),
    Update(u64, usize, u64),
    Delete(u64),
    Add(usize, usize, bool, u64),
    Drop(usize),
    Move(usize, usize),
    Index(usize),
    Look,
    Reopen(u64),
    Truncate,
}

fn op() -> impl Strategy<Value = Op> {
    let (id, n, seed) = (0u64..12, 0usize..8, any::<u64>());
    prop_oneof![
        8 => (id.clone(), seed).prop_map(|(id, seed)| Op::Insert(id, seed)),
        5 => (id.clone(), n.clone(), seed).prop_map(|(id, n, s)| Op::Update(id, n, s)),
        2 => id.prop_map(Op::Delete),
        4 => (n.clone(), 0..ColumnType::ALL.len(), any::<bool>(), seed)
            .prop_map(|(at, kind, nullable, seed)| Op::Add(at, kind, nullable, seed)),
        3 => n.clone().prop_map(Op::Drop),
        3 => (n.clone(), n.clone()).prop_map(|(from, to)| Op::Move(from, to)),
        1 => n.prop_map(Op::Index),
        2 => Just(Op::Look),
        1 => seed.prop_map(Op::Reopen),
        1 => Just(Op::Truncate),
    ]
}

/// A value that the column may have, out of few.
fn value(column: &Column, seed: u64) -> Value {
    if column.nullable && seed.is_multiple_of(4) {
        return Value::Null;
    }
    let n = (seed >> 8) % 100;
    match column.kind {
        ColumnType::Bool => Value::Bool(n % 2 == 1),
        ColumnType::I8 | ColumnType::I16 | ColumnType::I32 | ColumnType::I64 => {
            Value::Int(n as i64 - 50)
        }
        ColumnType::U8 | ColumnType::U16 | ColumnType::U32 | ColumnType::U64 => Value::UInt(n),
        ColumnType::F32 => Value::F32(n as f32 / 4.0),
        ColumnType::F64 => Value::F64(n as f64 / 4.0),
        ColumnType::Bytes => Value::Bytes(vec![n as u8; n as usize]),
        ColumnType::Text => Value::Text("word ".repeat(n as usize)),
    }
}

struct World {
    volume: SimVolume,
    db: Db,
    tables: Tables,
    table: Table,
    columns: Columns,
    next: u32,
    indexed: Vec<u32>,
    rows: Model,
    /// A transaction with the rows as it saw them first.
    then: Option<(Txn, Model)>,
}

impl World {
    fn new() -> World {
        let volume = SimVolume::new(61);
        let (db, tables) = open(&volume);
        let schema = Schema::new()
            .nullable("c0", ColumnType::I64)
            .column("id", ColumnType::U64)
            .column("c1", ColumnType::Text)
            .primary_key(["id"]);
        assert!(tables.create_table("t", &schema).expect("a table"));
        let table = tables.open_table("t").expect("the table");
        let column = |n, kind, nullable| {
            let column = Column { name: format!("c{n}"), kind, nullable };
            (n, column, Value::Null)
        };
        let columns = vec![column(0, ColumnType::I64, true), column(1, ColumnType::Text, false)];
        let (indexed, rows) = (Vec::new(), Model::new());
        World { volume, db, tables, table, columns, next: 2, indexed, rows, then: None }
    }

    /// The rows as the table has to show them: the key stands behind the first column of `order`.
    fn expected(&self, model: &Model) -> Vec<Row> {
        let schema = self.table.schema().expect("a schema");
        let row = |(id, cells): (&u64, &BTreeMap<u32, Value>)| {
            let value = |column: &Column| {
                let known = self.columns.iter().find(|(_, other, _)| other == column);
                match known {
                    Some((n, _, default)) => cells.get(n).unwrap_or(default).clone(),
                    None => Value::UInt(*id),
                }
            };
            schema.columns().iter().map(value).collect()
        };
        model.iter().map(row).collect()
    }

    fn look(&mut self) {
        let names: Vec<String> = self.columns.iter().map(|(_, c, _)| c.name.clone()).collect();
        let schema = self.table.schema().expect("a schema");
        let shown = schema.columns().iter().map(|column| column.name.clone());
        assert_eq!(shown.filter(|name| name != "id").collect::<Vec<_>>(), names);
        let all = |txn: &mut Txn| rows(&self.table, txn, None, &Range::all(), Direction::Up);
        assert_eq!(all(&mut begin(&self.db)), self.expected(&self.rows));
        if let Some((mut txn, model)) = self.then.take() {
            assert_eq!(all(&mut txn), self.expected(&model));
            self.then = Some((txn, model));
        }
        let report = self.table.check(&mut begin(&self.db)).expect("a check");
        assert_eq!(report.problems, Vec::<String>::new());
    }

    fn take_snapshot(&mut self) {
        let mut txn = at(&self.db, Isolation::RepeatableRead);
        let _ = self.table.count(&mut txn).expect("a count");
        self.then = Some((txn, self.rows.clone()));
    }

    fn key_place(&self) -> usize {
        self.table.schema().expect("a schema").position("id").expect("the key")
    }

    /// A place behind the key's is one more there.
    fn place(&self, at: usize) -> usize {
        at + usize::from(at >= self.key_place())
    }

    fn change(&mut self, changes: &[ColumnChange]) {
        self.tables.change_columns("t", changes).expect("a change");
    }

    fn write(&mut self, op: &Op) {
        let mut txn = begin(&self.db);
        match op {
            Op::Insert(id, seed) => {
                let cells = self.columns.iter().zip(0..);
                let cells =
                    cells.map(|((n, column, _), at)| (*n, value(column, seed.rotate_left(at))));
                let cells: BTreeMap<u32, Value> = cells.collect();
                let row = self.expected(&[(*id, cells.clone())].into()).remove(0);
                match self.table.insert(&mut txn, &row) {
                    Ok(_) => assert!(self.rows.insert(*id, cells).is_none()),
                    Err(Error::Duplicate { index: None }) => {
                        assert!(self.rows.contains_key(id));
                    }
                    Err(e) => panic!("{e}"),
                }
            }
            Op::Update(id, nth, seed) if !self.columns.is_empty() => {
                let (n, column, _) = &self.columns[nth % self.columns.len()];
                let (new, name) = (value(column, *seed), column.name.clone());
                let at = self.table.schema().expect("a schema").position(&name).expect("it");
                let key = [Value::UInt(*id)];
                let done = self.table.update(&mut txn, &key, |row| row[at] = new.clone());
                assert_eq!(done.expect("an update"), self.rows.contains_key(id));
                // A row that is written holds all columns: what it lacked has its value for good.
                if let Some(cells) = self.rows.get_mut(id) {
                    for (other, _, default) in &self.columns {
                        cells.entry(*other).or_insert_with(|| default.clone());
                    }
                    cells.insert(*n, new);
                }
            }
            Op::Delete(id) => {
                let done = self.table.delete(&mut txn, &[Value::UInt(*id)]).expect("delete");
                assert_eq!(done, self.rows.remove(id).is_some());
            }
            _ => {}
        }
        txn.commit_durably(Durability::Synced).expect("a commit");
    }

    fn define(&mut self, op: &Op) {
        match op {
            Op::Add(at, kind, nullable, seed) if self.columns.len() < 8 => {
                let at = at % (self.columns.len() + 1);
                let n = self.next;
                self.next += 1;
                let column = Column {
                    name: format!("c{n}"),
                    kind: ColumnType::ALL[*kind],
                    nullable: *nullable,
                };
                let value = value(&column, *seed);
                let place = self.place(at);
                self.columns.insert(at, (n, column.clone(), value.clone()));
                self.change(&[ColumnChange::Add { column, value, at: place }]);
            }
            Op::Drop(nth) if !self.columns.is_empty() => {
                let at = nth % self.columns.len();
                let (n, column, _) = self.columns[at].clone();
                let change = [ColumnChange::Drop(column.name)];
                if self.indexed.contains(&n) {
                    let refused = self.tables.change_columns("t", &change);
                    assert!(matches!(refused, Err(Error::Definition(_))), "{refused:?}");
                } else {
                    self.columns.remove(at);
                    self.change(&change);
                }
            }
            Op::Move(from, to) if !self.columns.is_empty() => {
                let (from, to) = (from % self.columns.len(), to % self.columns.len());
                let moved = self.columns.remove(from);
                let name = moved.1.name.clone();
                self.columns.insert(to, moved);
                let key = self.key_place();
                // The key moves up when a column before it is taken out.
                let key = key - usize::from(from < key);
                self.change(&[ColumnChange::Move(name, to + usize::from(to >= key))]);
            }
            Op::Index(nth) if !self.columns.is_empty() && self.indexed.len() < 3 => {
                let (n, column, _) = &self.columns[nth % self.columns.len()];
                let index = Index::new(&format!("i{n}"), [column.name.as_str()]);
                if self.tables.add_index("t", &index).expect("an index") {
                    self.indexed.push(*n);
                }
            }
            _ => {}
        }
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Look => {
                self.look();
                self.take_snapshot();
            }
            Op::Reopen(seed) => {
                self.then = None;
                self.volume = self.volume.crash(*seed);
                (self.db, self.tables) = open(&self.volume);
                self.table = self.tables.open_table("t").expect("the table");
                self.look();
            }
            Op::Truncate => {
                self.then = None;
                assert!(self.tables.truncate("t").expect("truncate"));
                self.rows.clear();
                let raw = self.tables.open_raw("t").expect("the table");
                assert!(raw.info().layouts.is_empty());
            }
            Op::Insert(..) | Op::Update(..) | Op::Delete(_) => self.write(op),
            _ => self.define(op),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn any_row_is_one_of_the_present_definition(ops in prop::collection::vec(op(), 1..60)) {
        let mut world = World::new();
        for op in &ops {
            world.apply(op);
        }
        world.look();
        world.then = None;
        assert_sound(&world.db, &world.tables);
    }
}

#[test]
fn layouts_are_bounded_and_go_with_the_rows() {
    let (_db, tables) = new(62);
    let schema = Schema::new().column("id", ColumnType::U64).primary_key(["id"]);
    tables.create_table("t", &schema).expect("a table");
    let add = |n: usize| {
        let column = Column { name: format!("c{n}"), kind: ColumnType::U8, nullable: true };
        tables.change_columns("t", &[ColumnChange::Add { column, value: Value::Null, at: 0 }])
    };
    (0..64).for_each(|n| add(n).expect("a column"));
    let refused = add(64);
    assert!(matches!(refused, Err(Error::Definition(_))), "{refused:?}");
    tables.truncate("t").expect("truncate");
    add(64).expect("a column");
}

#[test]
fn what_cannot_be_is_refused() {
    let (_db, tables) = new(63);
    let schema = Schema::new()
        .column("id", ColumnType::U64)
        .column("a", ColumnType::U8)
        .primary_key(["id"])
        .index(Index::new("by_a", ["a"]));
    tables.create_table("t", &schema).expect("a table");
    let column =
        |name: &str, nullable| Column { name: name.into(), kind: ColumnType::U8, nullable };
    let add = |column, value, at| ColumnChange::Add { column, value, at };
    for change in [
        add(column("a", true), Value::Null, 0),
        add(column("b", false), Value::Null, 0),
        add(column("b", true), Value::UInt(256), 0),
        add(column("b", true), Value::Null, 3),
        ColumnChange::Drop("id".into()),
        ColumnChange::Drop("a".into()),
        ColumnChange::Drop("gone".into()),
        ColumnChange::Move("a".into(), 2),
        ColumnChange::Move("gone".into(), 0),
    ] {
        let refused = tables.change_columns("t", std::slice::from_ref(&change));
        assert!(matches!(refused, Err(Error::Definition(_))), "{change:?}: {refused:?}");
    }
    assert_eq!(tables.open_table("t").expect("it").schema().expect("a schema"), schema);
}
