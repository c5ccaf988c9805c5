//! A prepared transaction without a handle.

/// A prepared transaction that is to be decided by its name.
pub(crate) struct Undecided {
    pub(crate) raw: weir_txn::Txn,
    /// Names of trees whose codec it changes, as those of [`crate::Txn`].
    pub(crate) codecs: Vec<String>,
}
