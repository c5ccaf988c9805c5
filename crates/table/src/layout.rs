//! Between rows of values and their bytes: which column lies where.
use crate::descriptor::TableInfo;
use crate::entry::EntryBuf;
use crate::error::Error;
use crate::key::{KeyColumn, put_column, take_columns};
use crate::layouts::{LaidRows, Layouts};
use crate::raw::RowImage;
use crate::row::RowColumn;
use crate::schema::{Index, KeyPart, Schema, take_parts};
use crate::value::Value;

/// A row, a value for each column of the table.
pub type Row = Vec<Value>;

/// The columns of a key: their places in the row, and how they stand in the key.
pub(crate) type KeyColumns = Vec<(usize, KeyColumn)>;

/// The columns that are not of the primary key.
pub(crate) fn rest_columns(schema: &Schema, primary: &KeyColumns) -> Vec<usize> {
    let is_rest = |at: &usize| primary.iter().all(|(other, _)| other != at);
    (0..schema.columns.len()).filter(is_rest).collect()
}

/// How a table's rows lie in its trees.
pub(crate) struct Layout {
    pub(crate) schema: Schema,
    /// Empty: rows have hidden numbers.
    pub(crate) primary: KeyColumns,
    /// Columns that are not in the primary key, which lie in the row's value.
    rest: Vec<usize>,
    layouts: Layouts,
    codec: LaidRows,
    pub(crate) indexes: Vec<KeyColumns>,
    pub(crate) auto_increment: Option<usize>,
}

/// A row as bytes, with its entries.
#[derive(Default)]
pub(crate) struct Encoded {
    pub(crate) key: Vec<u8>,
    pub(crate) row: Vec<u8>,
    pub(crate) entries: Vec<EntryBuf>,
}

impl Encoded {
    /// Gives the image to `use_it`: it borrows a list of entries that has to live somewhere.
    pub(crate) fn with_image<T>(&self, use_it: impl FnOnce(RowImage<'_>) -> T) -> T {
        let entries: Vec<_> = self.entries.iter().map(EntryBuf::as_entry).collect();
        use_it(RowImage { key: &self.key, row: &self.row, entries: &entries })
    }
}

impl Layout {
    /// # Errors
    /// [`Error::Damaged`], also for a table that was made of encoded rows.
    pub(crate) fn of(info: &TableInfo) -> Result<Layout, Error> {
        let mut schema = Schema::decode(&info.definition)?;
        let mut indexes = Vec::new();
        for index in &info.indexes {
            let mut rest = &index.definition[..];
            let parts = take_parts(&mut rest)?;
            indexes.push(schema.resolve(&parts)?);
            let (name, unique) = (index.name.clone(), index.unique);
            schema.indexes.push(Index { name, unique, parts });
        }
        let primary = schema.resolve(&schema.primary)?;
        let rest = rest_columns(&schema, &primary);
        let column = |&at: &usize| {
            let column = &schema.columns[at];
            RowColumn { kind: column.kind, nullable: column.nullable }
        };
        let columns: Vec<_> = rest.iter().map(column).collect();
        let layouts = Layouts::decode(&info.layouts, &columns)?;
        let codec = LaidRows::new(&layouts)?;
        let auto_increment = schema.auto_increment.as_deref().and_then(|n| schema.position(n));
        Ok(Layout { schema, primary, rest, layouts, codec, indexes, auto_increment })
    }

    /// The places of the columns that lie in the row's value.
    pub(crate) fn rest(&self) -> &[usize] {
        &self.rest
    }

    pub(crate) fn take_layouts(&mut self) -> Layouts {
        std::mem::take(&mut self.layouts)
    }

    pub(crate) fn resolve(&self, parts: &[KeyPart]) -> Result<KeyColumns, Error> {
        self.schema.resolve(parts)
    }

    /// `hidden` is the key of a row without a primary key.
    ///
    /// # Errors
    /// [`Error::Input`].
    pub(crate) fn encode(&self, row: &[Value], hidden: &[u8]) -> Result<Encoded, Error> {
        if row.len() != self.schema.columns.len() {
            let (given, needed) = (row.len(), self.schema.columns.len());
            return Err(Error::Input(format!("{given} values for a table of {needed} columns")));
        }
        let mut encoded = Encoded { key: hidden.to_vec(), ..Encoded::default() };
        if !self.primary.is_empty() {
            encoded.key.clear();
            self.put_key(&self.primary, row, &mut encoded.key)?;
        }
        if !self.codec.encode(self.rest.iter().map(|&at| &row[at]), &mut encoded.row) {
            let unfit = |at: &&usize| {
                let (column, value) = (&self.schema.columns[**at], &row[**at]);
                if value.is_null() { !column.nullable } else { !value.fits(column.kind) }
            };
            let at = self.rest.iter().find(unfit).copied().unwrap_or_default();
            return Err(self.misfit(at, &row[at]));
        }
        for columns in &self.indexes {
            let mut entry = EntryBuf::default();
            self.put_entry(columns, row, &mut entry)?;
            encoded.entries.push(entry);
        }
        Ok(encoded)
    }

    pub(crate) fn put_entry(
        &self,
        columns: &KeyColumns,
        row: &[Value],
        entry: &mut EntryBuf,
    ) -> Result<(), Error> {
        entry.clear();
        entry.has_null = columns.iter().any(|&(at, _)| row[at].is_null());
        self.put_key(columns, row, &mut entry.key)
    }

    fn put_key(&self, key: &KeyColumns, row: &[Value], out: &mut Vec<u8>) -> Result<(), Error> {
        for &(at, column) in key {
            if !put_column(out, column, &row[at]) {
                return Err(self.misfit(at, &row[at]));
            }
        }
        Ok(())
    }

    /// The bytes of the first columns of a key.
    ///
    /// # Errors
    /// [`Error::Input`].
    pub(crate) fn prefix(&self, key: &KeyColumns, values: &[Value]) -> Result<Vec<u8>, Error> {
        if values.len() > key.len() {
            let (given, most) = (values.len(), key.len());
            return Err(Error::Input(format!("{given} values for a key of {most} columns")));
        }
        let mut out = Vec::new();
        for (&(at, column), value) in key.iter().zip(values) {
            if !put_column(&mut out, column, value) {
                return Err(self.misfit(at, value));
            }
        }
        Ok(out)
    }

    /// The bytes of a whole primary key.
    ///
    /// # Errors
    /// [`Error::Input`].
    pub(crate) fn primary_key(&self, values: &[Value]) -> Result<Vec<u8>, Error> {
        if self.primary.is_empty() {
            return Err(Error::Input("the table has no primary key".into()));
        }
        if values.len() != self.primary.len() {
            let (given, needed) = (values.len(), self.primary.len());
            return Err(Error::Input(format!(
                "{given} values for a primary key of {needed} columns"
            )));
        }
        self.prefix(&self.primary, values)
    }

    /// # Errors
    /// [`Error::Damaged`].
    pub(crate) fn decode(&self, key: &[u8], row: &[u8]) -> Result<Row, Error> {
        let mut values = vec![Value::Null; self.schema.columns.len()];
        self.take_key(&self.primary, key, &mut values)?;
        self.codec.decode(row, |at, value| values[self.rest[at]] = value)?;
        Ok(values)
    }

    /// The columns of an index and of the primary key; the others are NULL.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub(crate) fn decode_covered(
        &self,
        index: usize,
        key: &[u8],
        primary: &[u8],
    ) -> Result<Row, Error> {
        let mut values = vec![Value::Null; self.schema.columns.len()];
        self.take_key(&self.indexes[index], key, &mut values)?;
        self.take_key(&self.primary, primary, &mut values)?;
        Ok(values)
    }

    fn take_key(&self, key: &KeyColumns, bytes: &[u8], out: &mut [Value]) -> Result<(), Error> {
        if key.is_empty() {
            return Ok(());
        }
        let columns: Vec<_> = key.iter().map(|&(_, column)| column).collect();
        let mut rest = bytes;
        take_columns(&mut rest, &columns, |at, value| out[key[at].0] = value)?;
        if rest.is_empty() {
            return Ok(());
        }
        Err(Error::Damaged("a key goes on behind its end".into()))
    }

    fn misfit(&self, at: usize, value: &Value) -> Error {
        let column = &self.schema.columns[at];
        let (name, kind) = (&column.name, column.kind);
        match value {
            Value::Null => Error::Input(format!("column '{name}' is never NULL")),
            value => Error::Input(format!("{value:?} does not fit column '{name}', a {kind:?}")),
        }
    }
}
