//! Where things are in every database.
use weir_base::{PageNo, TreeId};

/// The catalog's tree and its root: the first page behind the first map page.
pub const CATALOG_TREE: TreeId = TreeId(1);
/// The catalog's root page.
pub const CATALOG_ROOT: PageNo = PageNo(1);
