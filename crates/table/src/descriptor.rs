//! What the catalog knows of a table, as bytes: a version of the format, the fields, a checksum.
use weir_base::{checksum, varint};

use crate::error::Error;
use crate::key::Malformed;
use crate::row::{put_bytes, take_bytes};

/// Of a table whose rows all lie as its definition says.
const FORMAT: u8 = 1;
/// With layouts behind the indexes. Only a table that has some is written so: a build that does not
/// know of layouts refuses that table, and reads all others.
const FORMAT_LAYOUTS: u8 = 2;
/// With layouts, perhaps none, and behind them the trees to which the table is being written anew.
const FORMAT_REWRITING: u8 = 3;

/// An index of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexInfo {
    /// Its name, unique in the table.
    pub name: String,
    /// Whether two rows may have the same key.
    pub unique: bool,
    /// Whether it keeps several entries of a row, or none.
    pub several: bool,
    /// Bytes of the caller's that say how its keys are made.
    pub definition: Vec<u8>,
    /// Kept up by writers, but not complete yet: of no use to readers.
    pub building: bool,
    /// While it is being built the delta's: the base's number is one more.
    pub(crate) tree: u64,
    /// The first version of the table in which its tree is complete.
    pub(crate) since: u64,
}

impl IndexInfo {
    /// The numbers of its trees.
    pub(crate) fn trees(&self) -> impl Iterator<Item = u64> {
        self.tree..=self.tree.saturating_add(u64::from(self.building))
    }
}

/// The trees of a table that is being written anew.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Rewriting {
    /// Keys of rows that writers have changed.
    pub(crate) log: u64,
    pub(crate) rows: u64,
    pub(crate) indexes: Vec<IndexInfo>,
}

impl Rewriting {
    pub(crate) fn trees(&self) -> impl Iterator<Item = u64> {
        [self.log, self.rows].into_iter().chain(self.indexes.iter().map(|index| index.tree))
    }
}

/// A table as the catalog knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableInfo {
    /// Never used again after the table is dropped.
    pub id: u64,
    /// One more with each change of the definition.
    pub version: u64,
    /// Bytes of the caller's that say what its rows are.
    pub definition: Vec<u8>,
    /// Bytes of the caller's that say how rows lie that were written under earlier definitions, and
    /// which of those is the present one. Empty: all lie as `definition` says. Gone when the rows
    /// are.
    pub layouts: Vec<u8>,
    /// In the order in which uniqueness is checked.
    pub indexes: Vec<IndexInfo>,
    pub(crate) tree: u64,
    pub(crate) next_tree: u64,
    /// The first version in which `tree` is the tree of rows.
    pub(crate) since: u64,
    /// While its rows are written anew.
    pub(crate) rewriting: Option<Rewriting>,
}

impl TableInfo {
    /// The number for one more tree.
    pub(crate) fn claim_tree(&mut self) -> u64 {
        self.next_tree += 1;
        self.next_tree - 1
    }

    pub(crate) fn tree_name(&self, tree: u64) -> String {
        format!("weir.table.{}.{tree}", self.id)
    }

    /// The names of all its trees, the primary one first.
    #[must_use]
    pub fn tree_names(&self) -> Vec<String> {
        let indexes = self.indexes.iter().flat_map(IndexInfo::trees);
        let to_come = self.rewriting.iter().flat_map(Rewriting::trees);
        let trees = [self.tree].into_iter().chain(indexes).chain(to_come);
        trees.map(|tree| self.tree_name(tree)).collect()
    }

    /// Whether an index is being built, or the rows are written anew.
    pub(crate) fn is_being_built(&self) -> bool {
        self.rewriting.is_some() || self.indexes.iter().any(|index| index.building)
    }

    pub(crate) fn index(&self, name: &str) -> Option<usize> {
        self.indexes.iter().position(|index| index.name == name)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let format = match &self.rewriting {
            Some(_) => FORMAT_REWRITING,
            None if self.layouts.is_empty() => FORMAT,
            None => FORMAT_LAYOUTS,
        };
        let mut out = vec![format];
        for number in [self.id, self.version, self.tree, self.next_tree, self.since] {
            varint::put(&mut out, number);
        }
        put_bytes(&mut out, &self.definition);
        put_indexes(&mut out, &self.indexes);
        if format != FORMAT {
            put_bytes(&mut out, &self.layouts);
        }
        if let Some(rewriting) = &self.rewriting {
            varint::put(&mut out, rewriting.log);
            varint::put(&mut out, rewriting.rows);
            put_indexes(&mut out, &rewriting.indexes);
        }
        let sum = checksum(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        out
    }

    /// # Errors
    /// [`Error::Damaged`].
    pub(crate) fn decode(bytes: &[u8]) -> Result<TableInfo, Error> {
        let damaged = |what| Error::Damaged(format!("a table's entry in the catalog: {what}"));
        let (body, sum) =
            bytes.split_last_chunk::<4>().ok_or_else(|| damaged("it is too short"))?;
        if u32::from_le_bytes(*sum) != checksum(body) {
            return Err(damaged("its checksum is wrong"));
        }
        match body.split_first() {
            Some((&format @ FORMAT..=FORMAT_REWRITING, rest)) => {
                Self::fields(rest, format).map_err(|e| damaged(e.0))
            }
            _ => Err(damaged("a later version of the engine has written it")),
        }
    }

    fn fields(mut rest: &[u8], format: u8) -> Result<TableInfo, Malformed> {
        let rest = &mut rest;
        let mut info = TableInfo {
            id: number(rest)?,
            version: number(rest)?,
            tree: number(rest)?,
            next_tree: number(rest)?,
            since: number(rest)?,
            definition: take_bytes(rest)?.to_vec(),
            layouts: Vec::new(),
            indexes: Vec::new(),
            rewriting: None,
        };
        info.indexes = take_indexes(rest)?;
        if format != FORMAT {
            info.layouts = take_bytes(rest)?.to_vec();
        }
        if format == FORMAT_LAYOUTS && info.layouts.is_empty() {
            return Err(Malformed("it is said to have layouts, and has none"));
        }
        if format == FORMAT_REWRITING {
            let (log, rows) = (number(rest)?, number(rest)?);
            info.rewriting = Some(Rewriting { log, rows, indexes: take_indexes(rest)? });
        }
        if rest.is_empty() { Ok(info) } else { Err(Malformed("it goes on behind its end")) }
    }
}

fn put_indexes(out: &mut Vec<u8>, indexes: &[IndexInfo]) {
    varint::put(out, indexes.len() as u64);
    for index in indexes {
        put_bytes(out, index.name.as_bytes());
        let (unique, building) = (u8::from(index.unique), u8::from(index.building));
        out.push(unique | building << 1 | u8::from(index.several) << 2);
        varint::put(out, index.tree);
        varint::put(out, index.since);
        put_bytes(out, &index.definition);
    }
}

fn take_indexes(rest: &mut &[u8]) -> Result<Vec<IndexInfo>, Malformed> {
    let mut indexes = Vec::new();
    for _ in 0..number(rest)? {
        let name = text(rest)?;
        let (&flags, behind) = rest.split_first().ok_or(Malformed("it ends too early"))?;
        *rest = behind;
        if flags > 7 {
            return Err(Malformed("an index has unknown marks"));
        }
        indexes.push(IndexInfo {
            name,
            unique: flags & 1 != 0,
            building: flags & 2 != 0,
            several: flags & 4 != 0,
            tree: number(rest)?,
            since: number(rest)?,
            definition: take_bytes(rest)?.to_vec(),
        });
    }
    Ok(indexes)
}

/// Takes a number.
pub(crate) fn number(rest: &mut &[u8]) -> Result<u64, Malformed> {
    varint::take(rest).ok_or(Malformed("it ends too early"))
}

/// Takes a text.
pub(crate) fn text(rest: &mut &[u8]) -> Result<String, Malformed> {
    let bytes = take_bytes(rest)?.to_vec();
    String::from_utf8(bytes).map_err(|_| Malformed("a name is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn info() -> impl Strategy<Value = TableInfo> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..20);
        let index = (".{0,8}", any::<[bool; 3]>(), any::<u64>(), bytes()).prop_map(
            |(name, [unique, building, several], tree, definition)| IndexInfo {
                name,
                unique,
                definition,
                building,
                several,
                tree,
                since: tree / 2,
            },
        );
        let rewriting = (any::<[u64; 2]>(), prop::collection::vec(index.clone(), 0..3))
            .prop_map(|([log, rows], indexes)| Rewriting { log, rows, indexes });
        let rewriting = prop::option::of(rewriting);
        let indexes = prop::collection::vec(index, 0..4);
        (any::<[u64; 5]>(), bytes(), bytes(), indexes, rewriting).prop_map(
            |([id, version, tree, next_tree, since], definition, layouts, indexes, rewriting)| {
                TableInfo {
                    id,
                    version,
                    definition,
                    layouts,
                    indexes,
                    tree,
                    next_tree,
                    since,
                    rewriting,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn descriptors_come_back_and_damage_is_found(
            info in info(),
            at in any::<usize>(),
            bit in 0u8..8,
        ) {
            let bytes = info.encode();
            prop_assert_eq!(TableInfo::decode(&bytes).expect("well-formed"), info);
            let mut flipped = bytes.clone();
            flipped[at % bytes.len()] ^= 1 << bit;
            prop_assert!(TableInfo::decode(&flipped).is_err());
            prop_assert!(TableInfo::decode(&bytes[..at % bytes.len()]).is_err());
        }

        #[test]
        fn any_bytes_with_a_right_checksum_give_a_table_or_an_error(
            mut bytes in prop::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..60),
            format in FORMAT..=FORMAT_REWRITING,
        ) {
            bytes.insert(0, format);
            let sum = checksum(&bytes);
            bytes.extend_from_slice(&sum.to_le_bytes());
            if let Ok(info) = TableInfo::decode(&bytes) {
                prop_assert_eq!(TableInfo::decode(&info.encode()).expect("well-formed"), info);
            }
        }
    }
}
