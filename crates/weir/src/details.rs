//! What an error of the layers below says, kept with what caused it.
use std::error::Error as StdError;
use std::fmt;

/// Where on disk something is not what was written, as far as that is known.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct DamagedPlace {
    /// The file's name in the database's directory.
    pub file: Option<String>,
    /// The byte in that file.
    pub offset: Option<u64>,
    /// The page's number.
    pub page: Option<u32>,
}

/// The words for a failure, with what caused it: shown, it is the cause's words, and its source is
/// the cause's.
pub struct Details {
    cause: Box<dyn StdError + Send + Sync>,
    place: DamagedPlace,
}

impl Details {
    /// Of a failure of a layer below.
    pub fn of(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Details { cause: cause.into(), place: DamagedPlace::default() }
    }

    /// Where it is that something is damaged.
    #[must_use]
    pub fn at(self, place: DamagedPlace) -> Self {
        Details { place, ..self }
    }

    /// Where it is that something is damaged, as far as that is known.
    #[must_use]
    pub fn place(&self) -> &DamagedPlace {
        &self.place
    }

    /// As [`Details::of`], of this failure in these words.
    pub(crate) fn reworded(self, words: String) -> Self {
        let place = self.place.clone();
        Details::of(Reworded { words, cause: self.cause }).at(place)
    }
}

impl From<String> for Details {
    fn from(words: String) -> Self {
        Details::of(words)
    }
}

impl From<&str> for Details {
    fn from(words: &str) -> Self {
        Details::of(words)
    }
}

impl fmt::Debug for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.cause, f)
    }
}

impl fmt::Display for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.cause, f)
    }
}

impl StdError for Details {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.cause.source()
    }
}

/// A failure in words that say more than its own.
struct Reworded {
    words: String,
    cause: Box<dyn StdError + Send + Sync>,
}

impl fmt::Debug for Reworded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.cause, f)
    }
}

impl fmt::Display for Reworded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl StdError for Reworded {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.cause)
    }
}
