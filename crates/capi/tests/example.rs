//! The example in C is compiled against the committed header, linked with the archive and with the
//! shared library, and run.
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the example says.
const EXPECTED: &str = "\
prepared: a name of the outside's
prepared: in hand
account ada has 40
account dan has 1
at the river: dipper
at the river: heron
birds: 3
estimated at the river: 2, counted
refused: a log of 1 B is not possible; the least is 640 KiB, the most 1 TiB
afterwards: the database has been closed
";

/// Where cargo puts this crate's libraries: beside the tests.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    test.parent().expect("it lies in a folder").to_path_buf()
}

fn build_and_run(library: &Path, what: &str) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("birds");
    let built = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(here.join("examples/birds.c"))
        .arg(format!("-I{}", here.join("include").display()))
        .arg(library)
        .args(["-lpthread", "-ldl", "-lm"])
        .output()
        .expect("cc can be run");
    assert!(built.status.success(), "{what}: {}", String::from_utf8_lossy(&built.stderr));
    let ran = Command::new(&program)
        .arg(folder.path().join("data"))
        .env("LD_LIBRARY_PATH", libraries())
        .output()
        .expect("the example can be run");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{what}: {}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(said, EXPECTED, "{what}");
}

#[test]
fn the_example_runs_with_the_archive() {
    build_and_run(&libraries().join("libweir_capi.a"), "archive");
}

#[test]
fn the_example_runs_with_the_shared_library() {
    build_and_run(&libraries().join("libweir_capi.so"), "shared library");
}
