//! Writing a table of values anew.
use crate::build::GoOn;
use crate::catalog::{IndexSpec, Tables};
use crate::descriptor::{IndexInfo, TableInfo};
use crate::error::Error;
use crate::layout::Layout;
use crate::redefine::Redefinition;
use crate::rewrite::RowBuf;
use crate::schema::{KeyPart, Schema};

impl Tables {
    /// Writes a table's rows and indexes anew, densely, while others read and write it: earlier
    /// layouts are gone then. `primary`: the columns of another primary key; `None`: it
    /// stays. `go_on` is asked for each row. Snapshots from before get [`Error::Changed`].
    ///
    /// # Errors
    /// [`Error::Duplicate`] when two rows have one key of the new primary one; [`Error::NoTable`],
    /// [`Error::Definition`], [`Error::Interrupted`], [`Error::Store`]. The table is as it was.
    pub fn rewrite(
        &self,
        table: &str,
        primary: Option<&[KeyPart]>,
        go_on: &mut GoOn<'_>,
    ) -> Result<(), Error> {
        let now = self.open_raw(table)?;
        let layout = Layout::of(now.info())?;
        let mut schema = Schema::decode(&now.info().definition)?;
        let indexes = now.info().indexes.clone();
        if let Some(primary) = primary {
            schema.primary = primary.to_vec();
        }
        schema.check()?;
        let definition = schema.encode();
        let of = |index: IndexInfo| IndexSpec {
            name: index.name,
            unique: index.unique,
            several: index.several,
            definition: index.definition,
        };
        let specs: Vec<IndexSpec> = indexes.into_iter().map(of).collect();
        let then =
            TableInfo { definition: definition.clone(), layouts: Vec::new(), ..now.info().clone() };
        let then = Layout::of(&then)?;
        if then.primary.is_empty() && !layout.primary.is_empty() {
            return Err(Error::Definition("a primary key cannot become none".into()));
        }
        let mut make = |_: usize, key: &[u8], row: &[u8], made: &mut RowBuf| {
            let encoded = then.encode(&layout.decode(key, row)?, key)?;
            *made = RowBuf { key: encoded.key, row: encoded.row, entries: encoded.entries };
            Ok(())
        };
        self.announce_rewrite(table, &specs, None)?;
        let new = Redefinition {
            table,
            definition: &definition,
            renamed: &[],
            layouts: Some(&[]),
            codec: None,
        };
        let done = self
            .fill_rewrite(table, primary.is_none(), &mut make, go_on)
            .and_then(|()| self.finish_rewrite(&[new], &mut make));
        if done.is_err() {
            // Best effort: if this fails too, the next opening does it.
            let _ = self.abandon_indexes(table);
        }
        done
    }
}
