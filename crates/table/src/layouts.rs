//! How the rows of a table of values lie that were written under earlier definitions.
//!
//! A definition that gets, loses or moves columns leaves the rows as they are, and a row says of
//! which **layout** it is: nothing before the count of its columns, it is of the first; else
//! [`MARK`] and the layout's number. A layout names columns by numbers that no other column of the
//! table ever has; so a row of any layout is read as one of the present one: what it lacks has the
//! value that the column came with, and what has gone is skipped.
use weir_base::varint;

use crate::descriptor::number;
use crate::key::Malformed;
use crate::row::{RowCodec, RowColumn, put_value, take};
use crate::value::{ColumnType, Value};

/// More than a table may have columns.
pub(crate) const MARK: u64 = 1 << 16;
/// With more of them a definition would take more room than it saves: then the rows are to be
/// written anew, by the caller.
pub(crate) const LAYOUTS_MAX: usize = 64;

/// A column as a layout has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LaidColumn {
    pub(crate) id: u64,
    pub(crate) is: RowColumn,
}

/// The layouts of a table, the present one last.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Layouts {
    pub(crate) all: Vec<Vec<LaidColumn>>,
    /// What columns that came later have in rows without them.
    pub(crate) defaults: Vec<(u64, Value)>,
}

impl Layouts {
    /// Of a table none of whose columns has come later.
    pub(crate) fn first(columns: &[RowColumn]) -> Layouts {
        let laid = columns.iter().zip(0..).map(|(&is, id)| LaidColumn { id, is });
        Layouts { all: vec![laid.collect()], defaults: Vec::new() }
    }

    /// The present one.
    pub(crate) fn now(&self) -> &[LaidColumn] {
        self.all.last().map_or(&[], Vec::as_slice)
    }

    /// A number for a column that comes.
    pub(crate) fn next_id(&self) -> u64 {
        self.all.iter().flatten().map(|column| column.id + 1).max().unwrap_or(0)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        varint::put(&mut out, self.all.len() as u64);
        for layout in &self.all {
            varint::put(&mut out, layout.len() as u64);
            for column in layout {
                varint::put(&mut out, column.id);
                out.extend_from_slice(&[column.is.kind as u8, u8::from(column.is.nullable)]);
            }
        }
        varint::put(&mut out, self.defaults.len() as u64);
        for (id, value) in &self.defaults {
            varint::put(&mut out, *id);
            out.push(u8::from(value.is_null()));
            if let Some(column) = self.column(*id) {
                put_value(&mut out, value, column.is.kind);
            }
        }
        out
    }

    fn column(&self, id: u64) -> Option<&LaidColumn> {
        self.all.iter().flatten().find(|column| column.id == id)
    }

    /// `columns`: of the present definition, which the last layout is to be of.
    pub(crate) fn decode(mut bytes: &[u8], columns: &[RowColumn]) -> Result<Layouts, Malformed> {
        if bytes.is_empty() {
            return Ok(Layouts::first(columns));
        }
        let rest = &mut bytes;
        let mut layouts = Layouts::default();
        for _ in 0..number(rest)? {
            let mut layout = Vec::new();
            for _ in 0..number(rest)? {
                let id = number(rest)?;
                let short = Malformed("a layout ends too early");
                let (marks, behind) = rest.split_first_chunk::<2>().ok_or(short)?;
                *rest = behind;
                let kind = ColumnType::from_number(marks[0]);
                let kind = kind.ok_or(Malformed("a column of a layout has an unknown type"))?;
                layout.push(LaidColumn { id, is: RowColumn { kind, nullable: marks[1] != 0 } });
            }
            layouts.all.push(layout);
        }
        for _ in 0..number(rest)? {
            let id = number(rest)?;
            let (&null, behind) =
                rest.split_first().ok_or(Malformed("a layout's value ends too early"))?;
            *rest = behind;
            let column =
                layouts.column(id).ok_or(Malformed("a value is of a column of no layout"))?;
            let value = if null != 0 { Value::Null } else { take(rest, column.is.kind)? };
            layouts.defaults.push((id, value));
        }
        let now: Vec<RowColumn> = layouts.now().iter().map(|column| column.is).collect();
        if !rest.is_empty() || now != columns {
            return Err(Malformed("the layouts of a table are not of its definition"));
        }
        Ok(layouts)
    }
}

/// Where a column of a row goes.
#[derive(Clone, Copy, Debug)]
enum To {
    Column(usize),
    Nowhere,
}

struct Reader {
    codec: RowCodec,
    to: Vec<To>,
    /// Columns of the present layout that this one lacks, with what they have.
    lacks: Vec<(usize, Value)>,
}

/// Turns rows into bytes of the present layout, and bytes of any into rows.
pub(crate) struct LaidRows {
    readers: Vec<Reader>,
}

impl LaidRows {
    pub(crate) fn new(layouts: &Layouts) -> Result<LaidRows, Malformed> {
        let now = layouts.now();
        let place = |id| now.iter().position(|column| column.id == id);
        let reader = |layout: &Vec<LaidColumn>| {
            let has = |id| layout.iter().any(|column| column.id == id);
            let lacks = now.iter().enumerate().filter(|(_, column)| !has(column.id));
            let lacks = lacks.map(|(at, column)| {
                let default = layouts.defaults.iter().find(|(id, _)| *id == column.id);
                let missing = Malformed("a column that came later has no value for older rows");
                Ok((at, default.ok_or(missing)?.1.clone()))
            });
            Ok(Reader {
                codec: RowCodec::new(layout.iter().map(|column| column.is).collect()),
                to: layout.iter().map(|c| place(c.id).map_or(To::Nowhere, To::Column)).collect(),
                lacks: lacks.collect::<Result<_, Malformed>>()?,
            })
        };
        let readers = layouts.all.iter().map(reader).collect::<Result<_, Malformed>>()?;
        Ok(LaidRows { readers })
    }

    /// As [`RowCodec::encode`].
    #[must_use]
    pub(crate) fn encode<'v>(
        &self,
        values: impl Iterator<Item = &'v Value> + Clone,
        out: &mut Vec<u8>,
    ) -> bool {
        let now = self.readers.len() - 1;
        if now > 0 {
            varint::put(out, MARK + now as u64);
        }
        self.readers[now].codec.encode(values, out)
    }

    /// Reads a whole row, each column of the present layout into its place.
    ///
    /// # Errors
    /// [`Malformed`].
    pub(crate) fn decode(
        &self,
        bytes: &[u8],
        mut out: impl FnMut(usize, Value),
    ) -> Result<(), Malformed> {
        let mut rest = bytes;
        let (number, row) = match varint::take(&mut rest) {
            Some(marked) if marked >= MARK => (marked - MARK, rest),
            _ => (0, bytes),
        };
        let reader = usize::try_from(number).ok().and_then(|number| self.readers.get(number));
        let reader = reader.ok_or(Malformed("a row is of a layout that is not known"))?;
        for (at, value) in &reader.lacks {
            out(*at, value.clone());
        }
        reader.codec.decode(row, |at, value| {
            if let To::Column(to) = reader.to[at] {
                out(to, value);
            }
        })
    }
}
