//! Keys and values as people type and read them, and errors.
use std::fmt;
use std::sync::Arc;

/// Text as it is, or bytes written `0x00ff`.
pub(crate) fn parse_bytes(text: &str) -> Result<Arc<[u8]>, String> {
    let Some(digits) = text.strip_prefix("0x") else { return Ok(text.as_bytes().into()) };
    if digits.len() % 2 != 0 {
        return Err(format!("'{text}' has an odd number of hexadecimal digits"));
    }
    let byte = |pair: &[u8]| {
        let digit = |c: u8| char::from(c).to_digit(16);
        Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8)
    };
    let bytes = digits.as_bytes().chunks_exact(2).map(byte).collect::<Option<Vec<u8>>>();
    bytes.map(Arc::from).ok_or_else(|| format!("'{text}' is not hexadecimal after 0x"))
}

/// So that [`parse_bytes`] reads it back (CLI-3).
pub(crate) use weir_dump::show_bytes;

/// Whether the error is that nothing reads our output any more.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}

/// An error with its causes, each once: many say what has caused them themselves.
pub(crate) struct Reasons<'a>(pub(crate) &'a anyhow::Error);

impl fmt::Display for Reasons<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = String::new();
        for cause in self.0.chain().map(ToString::to_string) {
            if said.contains(&cause) {
                continue;
            }
            write!(f, "{}{cause}", if said.is_empty() { "" } else { ": " })?;
            said = cause;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_error_says_of_its_cause_is_said_once() {
        let cause = || std::io::Error::from_raw_os_error(EMFILE);
        let shown = |e: anyhow::Error| Reasons(&e).to_string();
        let words = cause().to_string();
        assert_eq!(shown(cause().into()), words);
        assert_eq!(shown(anyhow::Error::new(cause()).context("open")), format!("open: {words}"));
        let says_it = format!("cannot open redo-00: {words}");
        let said = anyhow::Error::new(cause()).context(says_it.clone()).context("the log");
        assert_eq!(shown(said), format!("the log: {says_it}"));
    }

    /// Too many open files.
    const EMFILE: i32 = 24;

    #[test]
    fn bytes_come_back() {
        for bytes in
            [&b""[..], b"ada", b"0x", b"0xzz", b"\0\xff", "gr\u{f6}sse".as_bytes(), b"a\tb"]
        {
            let shown = show_bytes(bytes);
            assert_eq!(parse_bytes(&shown).unwrap().as_ref(), bytes, "{shown}");
            assert!(!shown.contains(char::is_control));
        }
        assert_eq!(parse_bytes("0x00Ff").unwrap().as_ref(), [0, 0xff]);
        for wrong in ["0x0", "0xgg", "0x+1"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
