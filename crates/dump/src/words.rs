//! Bytes as a person reads them.
use std::fmt::Write;

/// As much of a value as a line shows, in bytes.
const SHOWN_BYTES: usize = 48;

/// As text if it is printable, else `0x00ff`; the command line reads both back.
#[must_use]
pub fn show_bytes(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) && !text.starts_with("0x") => {
            text.to_owned()
        }
        _ => {
            let mut out = String::with_capacity(2 + 2 * bytes.len());
            out.push_str("0x");
            for byte in bytes {
                write!(out, "{byte:02x}").expect("a string takes everything");
            }
            out
        }
    }
}

/// The beginning of a value in quotes, and how long it is where that is not all.
pub(crate) fn brief(bytes: &[u8]) -> String {
    if bytes.len() <= SHOWN_BYTES {
        return format!("'{}'", show_bytes(bytes));
    }
    // Cutting a letter in two would make the whole of it hexadecimal.
    let text = std::str::from_utf8(bytes).ok();
    let cut = (0..=SHOWN_BYTES).rev().find(|&at| text.is_none_or(|text| text.is_char_boundary(at)));
    format!("'{}'... ({} bytes)", show_bytes(&bytes[..cut.unwrap_or(0)]), bytes.len())
}

/// A page's number, or that there is none.
pub(crate) fn page_name(page: weir_base::PageNo) -> String {
    if page == weir_base::PageNo::NONE { "none".to_owned() } else { page.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut_between_letters() {
        assert_eq!(brief(b"ada"), "'ada'");
        assert_eq!(brief(b"\x00\xff"), "'0x00ff'");
        let long = "a".repeat(47) + "\u{f6}" + &"b".repeat(50);
        assert_eq!(brief(long.as_bytes()), format!("'{}'... (99 bytes)", "a".repeat(47)));
        let bytes = [0xff; 60];
        assert_eq!(brief(&bytes), format!("'0x{}'... (60 bytes)", "ff".repeat(48)));
    }
}
