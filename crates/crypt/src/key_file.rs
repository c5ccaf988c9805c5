//! Master keys in a file of text, a line for each version: its number, a space, 64 hexadecimal
//! digits. What begins with `#` is a remark. It is read whenever a key is asked for, so that a
//! version that is added is found by a process that runs.
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::master::{KeyError, KeyName, KeyProvider, MasterKey};

/// More is not read: it is no key file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A file with the versions of key 1.
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

    /// All versions, in the order of the file.
    fn versions(&self) -> Result<Vec<(u32, MasterKey)>, KeyError> {
        let text = self.text()?;
        let mut versions: Vec<(u32, MasterKey)> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            // The line itself may be a key: it is not shown.
            let wrong = |what: &str| {
                KeyError(format!("the key file {}, line {number}: {what}", self.path.display()))
            };
            let (version, key) = parse(line).map_err(wrong)?;
            if versions.iter().any(|(other, _)| *other == version) {
                return Err(wrong("this version is there twice"));
            }
            versions.push((version, key));
        }
        Ok(versions)
    }

    fn check_id(&self, id: u32) -> Result<(), KeyError> {
        match id {
            1 => Ok(()),
            _ => Err(KeyError(format!("the key file {} has key 1 alone", self.path.display()))),
        }
    }
}

fn parse(line: &str) -> Result<(u32, MasterKey), &'static str> {
    let (version, digits) = line.split_once(' ').ok_or("it is no version and key")?;
    let version = version.parse().ok().filter(|version| *version > 0);
    let version = version.ok_or("a version is a number from 1 on")?;
    let digits = digits.trim().as_bytes();
    if digits.len() != 64 {
        return Err("a key has 64 hexadecimal digits");
    }
    let mut key = Zeroizing::new([0; 32]);
    for (byte, pair) in key.iter_mut().zip(digits.chunks(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        let (high, low) = digit(0).zip(digit(1)).ok_or("a key has 64 hexadecimal digits")?;
        *byte = (high << 4 | low) as u8;
    }
    MasterKey::from_bytes(&*key).map(|key| (version, key)).map_err(|_| "it is no key")
}

impl KeyProvider for KeyFile {
    fn newest_version(&self, id: u32) -> Result<u32, KeyError> {
        self.check_id(id)?;
        let newest = self.versions()?.iter().map(|(version, _)| *version).max();
        newest.ok_or_else(|| KeyError(format!("the key file {} has no key", self.path.display())))
    }

    fn key(&self, name: KeyName) -> Result<MasterKey, KeyError> {
        self.check_id(name.id)?;
        let found = self.versions()?.into_iter().find(|(version, _)| *version == name.version);
        found.map(|(_, key)| key).ok_or_else(|| {
            let path = self.path.display();
            KeyError(format!("the key file {path} has no version {}", name.version))
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
        assert!(key(3).expect_err("none").to_string().contains("has no version 3"));
        assert!(file.key(KeyName { id: 2, version: 1 }).is_err());
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn what_is_no_key_file_is_told_without_showing_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("keys.txt");
        let good = "5".repeat(64);
        let cases = [
            String::new(),
            good.clone(),
            format!("0 {good}"),
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
