//! What can go wrong in a tree.
use thiserror::Error;
use weir_base::{PageNo, TreeId};
use weir_pool::PoolError;
use weir_redo::RedoError;
use weir_space::SpaceError;

/// Why a tree operation failed. Nothing was changed unless the variant says otherwise.
#[derive(Debug, Error)]
pub enum TreeError {
    /// The key is longer than this database's pages allow.
    #[error("the key has {len} bytes; with pages of {page_size} bytes a key may have {max}")]
    KeyTooLong {
        /// Of the key.
        len: usize,
        /// Allowed.
        max: usize,
        /// Of the database.
        page_size: usize,
    },
    /// The value is longer than 4 GiB less one byte.
    #[error("the value has {0} bytes; a value may have 4294967295")]
    ValueTooLong(u64),
    /// Keys for a bulk load were not in ascending order.
    #[error("entry {0} of the bulk load is not greater than the one before it")]
    NotAscending(u64),
    /// A bulk load needs an empty tree.
    #[error("the tree is not empty: a bulk load would lose what it holds")]
    NotEmpty,
    /// The tree's structure is not what it must be.
    #[error("tree {tree} is damaged at page {page}: {what}")]
    Damaged {
        /// Which tree.
        tree: TreeId,
        /// Which page.
        page: PageNo,
        /// What is wrong.
        what: String,
    },
    /// The tree has been dropped: this handle is older than that.
    #[error("tree {0} has been dropped")]
    Gone(TreeId),
    /// A page could not be had.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// No page could be allocated.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// The log refused.
    #[error(transparent)]
    Redo(#[from] RedoError),
    /// The caller stopped the change (admission).
    #[error("{0}")]
    Stopped(String),
}

impl TreeError {
    /// Whether something on disk is not what was written, and another look will find it so again.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        use PoolError::{Behind, Damaged, NoSuchPage};
        matches!(
            self,
            TreeError::Damaged { .. }
                | TreeError::Pool(Damaged { .. } | NoSuchPage(_) | Behind { .. })
        )
    }

    /// Whether that is so, or the device does not give it out.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        self.is_damage() || matches!(self, TreeError::Pool(PoolError::Device { .. }))
    }
}
