//! Sizes as people write them: `64MiB`, `4k`, `1_000_000`.
use thiserror::Error;

/// A text that is not a size.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "'{0}' is not a size; write a number with an optional unit, such as 65536, 64KiB, 64MiB or 2GiB"
)]
pub struct SizeError(String);

/// Reads a size in bytes. Units are powers of 1024, whether written `K`, `KB` or `KiB`.
///
/// # Errors
/// When the text has no number, an unknown unit, or is beyond 2^63 bytes.
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let wrong = || SizeError(text.to_owned());
    let trimmed = text.trim();
    let digits_end = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '_' && c != '.')
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits_end);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(wrong()),
    };
    let value: f64 = number.replace('_', "").parse().map_err(|_| wrong())?;
    let bytes = value * (1u64 << shift) as f64;
    if bytes < (1u64 << 63) as f64 { Ok(bytes.round() as u64) } else { Err(wrong()) }
}

/// Writes a size with the largest unit that keeps it above one: `64 MiB`, `1.5 GiB`.
#[must_use]
pub fn format_size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if value.fract() == 0.0 || unit == 0 { 0 } else { 1 };
    format!("{value:.digits$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let table =
            [("0", 0), ("64MiB", 64 << 20), ("4k", 4096), ("1_000", 1000), ("1.5G", 3 << 29)];
        for (text, bytes) in table {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "MiB", "-1", "1x", "1e9", "99999999999T", "1.2.3"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
        assert_eq!(format_size(64 << 20), "64 MiB");
        assert_eq!(format_size(1536), "1.5 KiB");
    }
}
