//! What the rows of a table are: columns, the primary key, indexes.
use weir_base::varint;

use crate::descriptor::{number, text};
use crate::error::Error;
use crate::key::{KeyColumn, Malformed};
use crate::layouts::MARK;
use crate::row::put_bytes;
use crate::value::ColumnType;

/// A column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Its name, unique in the table.
    pub name: String,
    /// What it holds.
    pub kind: ColumnType,
    /// Whether it may be NULL.
    pub nullable: bool,
}

/// A column of a key: ascending, or (see [`desc`]) descending.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyPart {
    /// The column's name.
    pub column: String,
    /// Whether greater values come first.
    pub descending: bool,
}

/// A column of a key, greater values first.
#[must_use]
pub fn desc(column: &str) -> KeyPart {
    KeyPart { column: column.to_string(), descending: true }
}

impl From<&str> for KeyPart {
    fn from(column: &str) -> Self {
        KeyPart { column: column.to_string(), descending: false }
    }
}

/// An index to be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Index {
    /// Its name, unique in the table.
    pub name: String,
    /// Whether two rows may have the same key. Keys with a NULL never conflict.
    pub unique: bool,
    /// Its columns.
    pub parts: Vec<KeyPart>,
}

impl Index {
    /// An index on these columns.
    #[must_use]
    pub fn new<P: Into<KeyPart>>(name: &str, parts: impl IntoIterator<Item = P>) -> Self {
        let parts = parts.into_iter().map(Into::into).collect();
        Index { name: name.to_string(), unique: false, parts }
    }

    /// As [`Index::new`], of which no two rows have the same key.
    #[must_use]
    pub fn unique<P: Into<KeyPart>>(name: &str, parts: impl IntoIterator<Item = P>) -> Self {
        Index { unique: true, ..Index::new(name, parts) }
    }
}

/// What the rows of a table are.
///
/// ```
/// use weir_table::{ColumnType, Index, Schema, desc};
/// let schema = Schema::new()
///     .column("id", ColumnType::U64)
///     .column("species", ColumnType::Text)
///     .nullable("ring", ColumnType::U32)
///     .primary_key(["id"])
///     .auto_increment("id")
///     .index(Index::unique("by_ring", ["ring"]))
///     .index(Index::new("by_species", [desc("species")]));
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Schema {
    pub(crate) columns: Vec<Column>,
    pub(crate) primary: Vec<KeyPart>,
    pub(crate) auto_increment: Option<String>,
    pub(crate) indexes: Vec<Index>,
}

impl Schema {
    /// Of no columns yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a column that is never NULL.
    #[must_use]
    pub fn column(mut self, name: &str, kind: ColumnType) -> Self {
        self.columns.push(Column { name: name.to_string(), kind, nullable: false });
        self
    }

    /// Adds a column that may be NULL.
    #[must_use]
    pub fn nullable(mut self, name: &str, kind: ColumnType) -> Self {
        self.columns.push(Column { name: name.to_string(), kind, nullable: true });
        self
    }

    /// Says which columns, none of which may be NULL, name a row. Without it rows get hidden
    /// numbers, and are found by walking and by indexes.
    #[must_use]
    pub fn primary_key<P: Into<KeyPart>>(mut self, parts: impl IntoIterator<Item = P>) -> Self {
        self.primary = parts.into_iter().map(Into::into).collect();
        self
    }

    /// Says which column of whole numbers is given a number where a row to be inserted has NULL.
    #[must_use]
    pub fn auto_increment(mut self, column: &str) -> Self {
        self.auto_increment = Some(column.to_string());
        self
    }

    /// Adds an index.
    #[must_use]
    pub fn index(mut self, index: Index) -> Self {
        self.indexes.push(index);
        self
    }

    /// Its columns.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Its indexes.
    #[must_use]
    pub fn indexes(&self) -> &[Index] {
        &self.indexes
    }

    /// The place of a column.
    #[must_use]
    pub fn position(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|other| other.name == column)
    }

    /// # Errors
    /// [`Error::Definition`].
    pub(crate) fn check(&self) -> Result<(), Error> {
        let wrong = |what: String| Err(Error::Definition(what));
        if self.columns.len() as u64 >= MARK {
            return wrong(format!("a table has less than {MARK} columns"));
        }
        for (at, column) in self.columns.iter().enumerate() {
            if column.name.is_empty() || self.position(&column.name) != Some(at) {
                return wrong(format!("column '{}' is there twice or has no name", column.name));
            }
        }
        for (_, column) in self.resolve(&self.primary)? {
            if column.nullable {
                return wrong("a column of the primary key may be NULL".into());
            }
        }
        for index in &self.indexes {
            self.check_index(index)?;
        }
        let Some(name) = &self.auto_increment else { return Ok(()) };
        match self.position(name).map(|at| self.columns[at].kind.integer_max()) {
            Some(Some(_)) => Ok(()),
            _ => wrong(format!("auto-increment column '{name}' is no column of whole numbers")),
        }
    }

    /// # Errors
    /// [`Error::Definition`].
    pub(crate) fn check_index(&self, index: &Index) -> Result<(), Error> {
        if index.parts.is_empty() {
            return Err(Error::Definition(format!("index '{}' has no columns", index.name)));
        }
        self.resolve(&index.parts).map(|_| ())
    }

    /// The columns of a key: places, and how they stand in it.
    ///
    /// # Errors
    /// [`Error::Definition`].
    pub(crate) fn resolve(&self, parts: &[KeyPart]) -> Result<Vec<(usize, KeyColumn)>, Error> {
        let mut resolved: Vec<(usize, KeyColumn)> = Vec::new();
        for part in parts {
            let at = self.position(&part.column);
            let at = at.filter(|at| resolved.iter().all(|(other, _)| other != at));
            let at = at.ok_or_else(|| {
                let name = &part.column;
                Error::Definition(format!("key column '{name}' is not there, or is there twice"))
            })?;
            let Column { kind, nullable, .. } = self.columns[at];
            resolved.push((at, KeyColumn { kind, nullable, descending: part.descending }));
        }
        Ok(resolved)
    }

    /// All but the indexes, which the catalog keeps one by one.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        varint::put(&mut out, self.columns.len() as u64);
        for column in &self.columns {
            put_bytes(&mut out, column.name.as_bytes());
            out.extend_from_slice(&[column.kind as u8, u8::from(column.nullable)]);
        }
        put_parts(&mut out, &self.primary);
        put_bytes(&mut out, self.auto_increment.as_deref().unwrap_or_default().as_bytes());
        out
    }

    pub(crate) fn decode(mut bytes: &[u8]) -> Result<Schema, Malformed> {
        let rest = &mut bytes;
        let mut schema = Schema::new();
        for _ in 0..number(rest)? {
            let name = text(rest)?;
            let (marks, behind) =
                rest.split_first_chunk::<2>().ok_or(Malformed("a schema ends too early"))?;
            *rest = behind;
            let kind = ColumnType::from_number(marks[0]);
            let kind = kind.ok_or(Malformed("a column has an unknown type"))?;
            schema.columns.push(Column { name, kind, nullable: marks[1] != 0 });
        }
        schema.primary = take_parts(rest)?;
        schema.auto_increment = Some(text(rest)?).filter(|name| !name.is_empty());
        if rest.is_empty() { Ok(schema) } else { Err(Malformed("a schema goes on behind its end")) }
    }
}

pub(crate) fn put_parts(out: &mut Vec<u8>, parts: &[KeyPart]) {
    varint::put(out, parts.len() as u64);
    for part in parts {
        put_bytes(out, part.column.as_bytes());
        out.push(u8::from(part.descending));
    }
}

pub(crate) fn take_parts(rest: &mut &[u8]) -> Result<Vec<KeyPart>, Malformed> {
    let mut parts = Vec::new();
    for _ in 0..number(rest)? {
        let column = text(rest)?;
        let (&mark, behind) = rest.split_first().ok_or(Malformed("a key ends too early"))?;
        *rest = behind;
        parts.push(KeyPart { column, descending: mark != 0 });
    }
    Ok(parts)
}
