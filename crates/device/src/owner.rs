//! Files that the superuser makes in a directory that is another user's.
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;

/// Gives a file that was made in `dir` to the owner of `dir`, if that is another user: the process
/// that has the database open runs as that one, and may not read what is the superuser's. Where
/// this process may not do that, the file stays as it is.
///
/// # Errors
/// What the system reports.
pub fn give_to_owner_of(dir: &Path, file: &File) -> io::Result<()> {
    let (of_dir, of_file) = (std::fs::metadata(dir)?, file.metadata()?);
    if of_dir.uid() == of_file.uid() {
        return Ok(());
    }
    match fchown(file, Some(of_dir.uid()), Some(of_dir.gid())) {
        Err(e) if e.kind() == ErrorKind::PermissionDenied => Ok(()),
        given => given,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_superuser_makes_is_the_owners_of_the_directory() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("f");
        let file = File::create_new(&path).expect("made");
        give_to_owner_of(dir.path(), &file).expect("it is the owner's already");
        let before = file.metadata().expect("metadata").uid();
        let other = 65_534;
        if std::os::unix::fs::chown(dir.path(), Some(other), Some(other)).is_err() {
            // Only the superuser can try it.
            return;
        }
        give_to_owner_of(dir.path(), &file).expect("given");
        let now = std::fs::metadata(&path).expect("metadata");
        assert_eq!((now.uid(), now.gid()), (other, other), "it was {before}'s");
        let pipe = dir.path().join("p");
        crate::PipeStart::make(&pipe).expect("made");
        assert_eq!(std::fs::metadata(&pipe).expect("metadata").uid(), other);
    }
}
