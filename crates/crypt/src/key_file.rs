//! Master keys in a file of text, a line for each version of key 1: its number, a space, 64
//! hexadecimal digits; or, as MariaDB's `file_key_management` has them (in the clear), the number
//! of a key that has one version, a semicolon, and 32, 48 or 64 digits. What begins with `#` is a
//! remark. It is read whenever a key is asked for, so that a version that is added is found by a
//! process that runs.
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::master::{KeyError, KeyName, KeyProvider, MasterKey};

/// More is not read: it is no key file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A file with the versions of key 1, or with several keys.
#[derive(Clone, Debug)]
pub struct KeyFile {
    path: PathBuf,
}

impl KeyFile {
    /// The file at `path`, which is first read when a key is asked for.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> KeyFile {
        KeyFile { path: path.into() }
    }

    /// Makes the file with a random key as version 1, which only the owner can read; or adds a
    /// random key as the next version to a file that is there, with `add`. Returns the version.
    ///
    /// # Errors
    /// `AlreadyExists` when it is there and `add` was not said; `InvalidData` when it is there and
    /// is no key file; what the system reports.
    pub fn generate(path: &Path, add: bool) -> io::Result<u32> {
        let file = KeyFile::at(path);
        let version = match (add, path.exists()) {
            (true, true) => {
                let newest = file.newest_version(1);
                let invalid = |e| io::Error::new(io::ErrorKind::InvalidData, e);
                newest.map_err(invalid)?.checked_add(1).ok_or(io::ErrorKind::InvalidData)?
            }
            _ => 1,
        };
        let mut key = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *key).map_err(|e| io::Error::other(e.to_string()))?;
        let mut line = Zeroizing::new(String::with_capacity(80));
        if version > 1 && !file.text().map_err(io::Error::other)?.ends_with('\n') {
            line.push('\n');
        }
        line.push_str(&format!("{version} "));
        for byte in key.iter() {
            for digit in [byte >> 4, byte & 15] {
                line.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
            }
        }
        line.push('\n');
        let mut options = OpenOptions::new();
        options.mode(0o600);
        let mut out = match version {
            1 => options.write(true).create_new(true).open(path)?,
            _ => options.append(true).open(path)?,
        };
        // One write: what is torn is no line.
        out.write_all(line.as_bytes())?;
        out.sync_all()?;
        Ok(version)
    }

    fn text(&self) -> Result<Zeroizing<String>, KeyError> {
        let failed = |e: io::Error| KeyError(format!("the key file {}: {e}", self.path.display()));
        let meta = std::fs::metadata(&self.path).map_err(failed)?;
        if meta.len() > FILE_BYTES_MAX {
            let words = format!("{} is no key file: it is too long", self.path.display());
            return Err(KeyError(words));
        }
        Ok(Zeroizing::new(std::fs::read_to_string(&self.path).map_err(failed)?))
    }

    /// All keys, in the order of the file.
    fn keys(&self) -> Result<Vec<(KeyName, MasterKey)>, KeyError> {
        let text = self.text()?;
        let mut keys: Vec<(KeyName, MasterKey)> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            // The line itself may be a key: it is not shown.
            let wrong = |what: &str| {
                KeyError(format!("the key file {}, line {number}: {what}", self.path.display()))
            };
            let (name, key) = parse_key_line(line).map_err(wrong)?;
            if keys.iter().any(|(other, _)| *other == name) {
                return Err(wrong("this key is there twice"));
            }
            keys.push((name, key));
        }
        Ok(keys)
    }
}

/// A line of a key file.
///
/// # Errors
/// What is wrong with it.
#[doc(hidden)]
pub fn parse_key_line(line: &str) -> Result<(KeyName, MasterKey), &'static str> {
    let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
    let (name, digits) = match (line.split_once(';'), line.split_once(' ')) {
        (Some((id, digits)), _) => (number(id).map(|id| KeyName { id, version: 1 }), digits),
        (None, Some((version, digits))) => {
            (number(version).map(|version| KeyName { id: 1, version }), digits)
        }
        (None, None) => return Err("it is no version and key"),
    };
    let name = name.ok_or("a version is a number from 1 on")?;
    let digits = digits.trim().as_bytes();
    let mut key = Zeroizing::new(vec![0; digits.len() / 2]);
    for (byte, pair) in key.iter_mut().zip(digits.chunks(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        let (high, low) = digit(0).zip(digit(1)).ok_or("a key has 64 hexadecimal digits")?;
        *byte = (high << 4 | low) as u8;
    }
    let is_whole = digits.len() == 64 || line.contains(';') && [32, 48].contains(&digits.len());
    let key = is_whole.then(|| MasterKey::from_bytes(&key).ok()).flatten();
    key.map(|key| (name, key)).ok_or("a key has 64 hexadecimal digits")
}

impl KeyProvider for KeyFile {
    fn newest_version(&self, id: u32) -> Result<u32, KeyError> {
        let keys = self.keys()?;
        let newest = keys.iter().filter(|(name, _)| name.id == id).map(|(name, _)| name.version);
        newest.max().ok_or_else(|| {
            KeyError(format!("the key file {} has no key {id}", self.path.display()))
        })
    }

    fn key(&self, name: KeyName) -> Result<MasterKey, KeyError> {
        let found = self.keys()?.into_iter().find(|(other, _)| *other == name);
        found.map(|(_, key)| key).ok_or_else(|| {
            KeyError(format!("the key file {} does not have it", self.path.display()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_made_and_found() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("keys.txt");
        let file = KeyFile::at(&path);
        assert!(file.newest_version(1).is_err(), "there is none");
        assert_eq!(KeyFile::generate(&path, false).expect("made"), 1);
        let again = KeyFile::generate(&path, false).expect_err("there is one");
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(KeyFile::generate(&path, true).expect("added"), 2);
        assert_eq!(file.newest_version(1), Ok(2));
        let key = |version| file.key(KeyName { id: 1, version });
        let (one, two) = (key(1).expect("there"), key(2).expect("there"));
        assert_ne!(one.bytes(), two.bytes());
        assert!(key(3).expect_err("none").to_string().contains("does not have it"));
        assert!(file.key(KeyName { id: 2, version: 1 }).is_err());
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_file_of_the_server_has_several_keys() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("keys.txt");
        let (long, short) = ("5".repeat(64), "6".repeat(32));
        std::fs::write(&path, format!("# of a server\n1;{long}\n7;{short}\n")).expect("written");
        let file = KeyFile::at(&path);
        assert_eq!((file.newest_version(1), file.newest_version(7)), (Ok(1), Ok(1)));
        assert!(file.newest_version(2).is_err());
        let key = file.key(KeyName { id: 7, version: 1 }).expect("there");
        assert_eq!(key.bytes(), MasterKey::from_bytes(&[0x66; 16]).expect("a key").bytes());
        assert!(file.key(KeyName { id: 7, version: 2 }).is_err());
    }

    #[test]
    fn what_is_no_key_file_is_refused_without_showing_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("keys.txt");
        let good = "5".repeat(64);
        let cases = [
            String::new(),
            good.clone(),
            format!("0 {good}"),
            format!("0;{good}"),
            format!("1;{}", &good[..34]),
            format!("1 {}", &good[..32]),
            format!("x {good}"),
            format!("1 {}", &good[1..]),
            format!("1 {}g", &good[1..]),
            format!("1 {}\u{e9}", &good[2..]),
            format!("1 {good}\n1 {good}"),
            "a\n".repeat(1 << 20),
        ];
        for text in cases {
            std::fs::write(&path, &text).expect("written");
            let told = KeyFile::at(&path).newest_version(1).expect_err("no key").to_string();
            assert!(told.contains("keys.txt") && !told.contains("555"), "{told}");
        }
        std::fs::write(&path, format!("# of 2026\n\n7 {good}")).expect("written");
        assert_eq!(KeyFile::at(&path).newest_version(1), Ok(7));
        assert_eq!(KeyFile::generate(&path, true).expect("a line of its own"), 8);
        assert_eq!(KeyFile::at(&path).newest_version(1), Ok(8));
    }
}
