//! Where the catalog lies and what its entries say, for `weir-dump` and `weir-salvage`, which
//! read files of databases that do not open. Not part of the interface: it changes without notice.
pub use crate::catalog_entries::{codec_in as catalog_codec, decode as catalog_entry};
pub use crate::places::{CATALOG_ROOT, CATALOG_TREE};
pub use weir_btree::ChainHead;
