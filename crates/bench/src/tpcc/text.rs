//! Short texts of bounded length, kept in place: rows are made and read without allocation.
use std::fmt;
use std::ops::Deref;

/// At most `N` bytes of text.
#[derive(Clone, Copy)]
pub struct Text<const N: usize> {
    len: u16,
    bytes: [u8; N],
}

impl<const N: usize> Text<N> {
    /// No text.
    pub const EMPTY: Self = Text { len: 0, bytes: [0; N] };

    /// These bytes, or `None` when they are too many.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (bytes.len() <= N).then(|| {
            let mut text = Self::EMPTY;
            text.push_cut(bytes);
            text
        })
    }

    /// Appends as much of `more` as there is room for.
    pub fn push_cut(&mut self, more: &[u8]) {
        let from = usize::from(self.len);
        let taken = more.len().min(N - from);
        self.bytes[from..from + taken].copy_from_slice(&more[..taken]);
        self.len += taken as u16;
    }

    /// The bytes, to be written over.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..usize::from(self.len)]
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<const N: usize> Deref for Text<N> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl<const N: usize> PartialEq for Text<N> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<const N: usize> Eq for Text<N> {}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(self), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_where_it_ends() {
        let mut text = Text::<5>::new(b"abc").unwrap();
        text.push_cut(b"defg");
        assert_eq!(&*text, b"abcde");
        assert_eq!(Text::<5>::new(b"abcdef"), None);
        assert_eq!(format!("{text:?}"), "\"abcde\"");
        assert_eq!(Text::<5>::new(b""), Some(Text::EMPTY));
    }
}
