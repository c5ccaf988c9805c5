//! Directories that the process may not write, and media that cannot be written.
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use weirdb::{Error, OpenError};

use crate::config;

/// Runs this test alone, as a user that may do little, if this one may do so.
const UNPRIVILEGED: &str = "WEIRDB_TEST_UNPRIVILEGED";

#[test]
fn without_permission_nothing_is_opened_and_nothing_changed() {
    if let Some(path) = std::env::var_os(UNPRIVILEGED) {
        let e = config().open(&path).expect_err("it is not allowed");
        let OpenError::Io { source, .. } = &e else { panic!("{e:?}") };
        assert_eq!(source.kind(), std::io::ErrorKind::PermissionDenied, "{e:?}");
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    config().open(&path).expect("made").close().expect("closed");
    let may = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(dir.path(), may(0o755)).expect("set");
    std::fs::set_permissions(&path, may(0o500)).expect("set");
    let test = std::env::current_exe().expect("a program");
    // Where even its own program cannot be read by others, there is nothing to try.
    let mut command = Command::new(test);
    command.args(["--exact", "media::without_permission_nothing_is_opened_and_nothing_changed"]);
    command.env(UNPRIVILEGED, &path).uid(65_534).gid(65_534);
    match command.output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{said}");
        }
        Err(e) => assert_eq!(e.kind(), std::io::ErrorKind::PermissionDenied, "{e:?}"),
    }
    std::fs::set_permissions(&path, may(0o700)).expect("set");
    config().open(&path).expect("as it was");
}

/// Runs a test of this file alone, where the directory named in it cannot be written.
const READ_ONLY: &str = "WEIRDB_TEST_READ_ONLY";

/// Runs the test in a view of the file system of its own in which `path` is mounted read-only.
/// `None`: this process may not do that.
fn where_it_is_read_only(path: &std::path::Path, test: &str) -> Option<Output> {
    let script = "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" || exit 77; \
        exec \"$@\"";
    let run = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", script])
        .arg(path)
        .arg(std::env::current_exe().expect("a program"))
        .args(["--exact", test])
        .env(READ_ONLY, path)
        .output()
        .ok()?;
    let is_refused = !run.status.success() && run.stdout.is_empty();
    (!is_refused).then_some(run)
}

#[test]
fn media_that_cannot_be_written_are_said_to_be_so_and_can_be_read() {
    let name = "media::media_that_cannot_be_written_are_said_to_be_so_and_can_be_read";
    if let Some(path) = std::env::var_os(READ_ONLY) {
        let path = std::path::Path::new(&path);
        for place in [path.join("db"), path.join("new"), path.to_path_buf()] {
            let e = config().open(&place).expect_err("it cannot be written");
            // The folder itself holds other things than a database.
            let is_reported = match &e {
                OpenError::Io { source, .. } => {
                    source.kind() == std::io::ErrorKind::ReadOnlyFilesystem
                }
                OpenError::Directory { .. } => place == path,
                _ => false,
            };
            assert!(is_reported, "{place:?}: {e:?}");
        }
        let db = config().read_only(true).open(path.join("db")).expect("it can be read");
        let tree = db.open_tree("t").expect("there");
        assert_eq!(tree.get("k").expect("read").as_deref(), Some(&b"v"[..]));
        assert!(matches!(tree.put("k", "w"), Err(Error::ReadOnly)));
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let db = config().open(dir.path().join("db")).expect("made");
    db.open_tree("t").expect("made").put("k", "v").expect("put");
    db.close().expect("closed");
    match where_it_is_read_only(dir.path(), name) {
        Some(run) => {
            let said = String::from_utf8_lossy(&run.stdout);
            assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
        }
        None => eprintln!("no mounts for this process: read-only media are not tried"),
    }
    let db = config().open(dir.path().join("db")).expect("as it was");
    assert!(db.recovery().is_none(), "nothing was to recover");
}
