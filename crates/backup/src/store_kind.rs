//! Where a database keeps its pages, as its backups say it.

/// Where a database keeps its pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreKind {
    /// Each at a place of its own in one file, kept from tearing by being written twice.
    #[default]
    InPlace,
    /// One behind the other in segments, packed; what is left of older ones is cleaned up. It
    /// writes less and takes less room, and reads each page through a map that is in memory.
    Log,
}

impl StoreKind {
    /// The word that commands and settings have for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            StoreKind::InPlace => "in-place",
            StoreKind::Log => "log",
        }
    }
}

impl std::str::FromStr for StoreKind {
    type Err = String;

    /// # Errors
    /// Another word than [`StoreKind::word`]'s.
    fn from_str(text: &str) -> Result<Self, String> {
        [StoreKind::InPlace, StoreKind::Log]
            .into_iter()
            .find(|kind| kind.word() == text)
            .ok_or_else(|| format!("'{text}' is no page store; choose in-place or log"))
    }
}

impl std::fmt::Display for StoreKind {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(match self {
            StoreKind::InPlace => "in place",
            StoreKind::Log => "in segments (log)",
        })
    }
}
