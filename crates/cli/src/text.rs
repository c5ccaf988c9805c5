//! Keys and values as people type and read them.
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

#[cfg(test)]
mod tests {
    use super::*;

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
