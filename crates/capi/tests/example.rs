//! What `make install` puts where, and the example in C: compiled as C11 and as C++17 against what
//! was installed, with the shared library and with the archive, and run.
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
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
refused: a pool of 1 B is too small; the least is 256 KiB
afterwards: the database has been closed
";

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A folder as `cargo build` leaves it: cargo has put this crate's libraries beside the tests. The
/// command is another crate's, so there is one that does what the script asks of it.
fn built(folder: &Path) -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let libraries = test.parent().expect("it lies in a folder");
    let built = folder.join("built");
    fs::create_dir(&built).expect("made");
    for library in ["libweir_capi.a", "libweir_capi.so"] {
        symlink(libraries.join(library), built.join(library)).expect("linked");
    }
    let command = built.join("weir");
    fs::write(&command, "#!/bin/sh\n[ \"$1\" = man ] && echo page > \"$2/weir.1\"\n")
        .expect("written");
    fs::set_permissions(&command, fs::Permissions::from_mode(0o755)).expect("set");
    built
}

fn script(built: &Path, settings: &[(&str, &Path)], more: &[&str]) -> std::process::Output {
    let mut command = Command::new(here().join("install/install.sh"));
    for name in ["PREFIX", "DESTDIR", "LIBDIR", "INCLUDEDIR", "BINDIR", "MANDIR", "DOCDIR"] {
        command.env_remove(name);
    }
    command.arg(built).arg(VERSION).args(more).envs(settings.iter().copied());
    command.output().expect("the script can be run")
}

fn install(built: &Path, settings: &[(&str, &Path)]) {
    let done = script(built, settings, &[]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// The flags that a program needs, as pkg-config says them; where there is none, as it should.
fn flags(prefix: &Path) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.args(["--cflags", "--libs", "weir"]);
    command.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    let prefix = prefix.display();
    let expected = [format!("-I{prefix}/include"), format!("-L{prefix}/lib"), "-lweir".into()];
    match command.output() {
        Ok(said) => {
            assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
            let said = String::from_utf8(said.stdout).expect("UTF-8");
            let said: Vec<String> = said.split_whitespace().map(String::from).collect();
            assert_eq!(said, expected);
            said
        }
        Err(_) => {
            eprintln!("no pkg-config here: weir.pc is not tried out");
            expected.to_vec()
        }
    }
}

/// Compiles a program of C against what is installed, and runs it with a directory that is not
/// there.
fn build_and_run(prefix: &Path, source: &str, language: &[&str], flags: &[String]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    let strict = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-o"];
    let mut compiler = Command::new(language[0]);
    compiler.args(&language[1..]).args(strict).arg(&program).arg(here().join(source));
    // What comes behind is a library, not a program of this language.
    let built = compiler.args(["-x", "none"]).args(flags).output();
    let built = built.unwrap_or_else(|e| panic!("{}: {e}", language[0]));
    assert!(built.status.success(), "{language:?}: {}", String::from_utf8_lossy(&built.stderr));
    let mut run = Command::new(&program);
    run.arg(folder.path().join("data")).env("LD_LIBRARY_PATH", prefix.join("lib"));
    let ran = run.output().expect("it can be run");
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{language:?}: {said}{}", String::from_utf8_lossy(&ran.stderr));
    said
}

const C: &[&str] = &["cc", "-std=c11"];
const CPP: &[&str] = &["c++", "-x", "c++", "-std=c++17"];

#[test]
fn programs_of_c_and_of_cpp_find_what_is_installed() {
    let folder = tempfile::tempdir().expect("a folder");
    let prefix = folder.path().join("prefix");
    install(&built(folder.path()), &[("PREFIX", &prefix)]);
    let shared = flags(&prefix);
    let archive = [shared[0].clone(), prefix.join("lib/libweir.a").display().to_string()];
    let system = ["-lpthread", "-ldl", "-lm"].map(String::from);
    let archive = [&archive[..], &system].concat();
    for language in [C, CPP] {
        for flags in [&shared, &archive] {
            let said = build_and_run(&prefix, "examples/birds.c", language, flags);
            assert_eq!(said, EXPECTED, "{language:?} {flags:?}");
        }
        for program in ["tests/hostile.c", "tests/hostile_tables.c"] {
            let said = build_and_run(&prefix, program, language, &shared);
            assert_eq!(said, "all refused\n", "{program} {language:?}");
        }
    }
}

/// All files below a folder, from there.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(at).expect("read") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    found.push(path.strip_prefix(folder).expect("below").display().to_string())
                }
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_package_is_staged_and_taken_away_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (built, stage) = (built(folder.path()), folder.path().join("stage"));
    let settings: [(&str, &Path); 3] = [
        ("DESTDIR", &stage),
        ("PREFIX", Path::new("/usr")),
        ("LIBDIR", Path::new("/usr/lib/some-place")),
    ];
    install(&built, &settings);
    // A second time over the first.
    install(&built, &settings);
    let minor = VERSION.rsplit_once('.').expect("three numbers").0;
    let expected = [
        "usr/bin/weir".to_string(),
        "usr/include/weir.h".into(),
        "usr/lib/some-place/libweir.a".into(),
        "usr/lib/some-place/libweir.so".into(),
        format!("usr/lib/some-place/libweir.so.{minor}"),
        format!("usr/lib/some-place/libweir.so.{VERSION}"),
        "usr/lib/some-place/pkgconfig/weir.pc".into(),
        "usr/share/doc/weir/LICENSE-APACHE".into(),
        "usr/share/doc/weir/LICENSE-MIT".into(),
        "usr/share/doc/weir/birds.c".into(),
        "usr/share/man/man1/weir.1".into(),
    ];
    assert_eq!(files(&stage), expected);
    let said = fs::read_to_string(stage.join("usr/lib/some-place/pkgconfig/weir.pc"));
    let said = said.expect("read");
    assert!(!said.contains(&*folder.path().display().to_string()) && !said.contains('@'), "{said}");
    assert!(said.contains("libdir=/usr/lib/some-place\n"), "{said}");
    let away = script(&built, &settings, &["--remove"]);
    assert!(away.status.success() && files(&stage).is_empty(), "{:?}", files(&stage));
}

#[test]
fn what_cannot_be_installed_is_said_and_nothing_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let built = built(folder.path());
    let prefix = folder.path().join("prefix");
    for wrong in ["relative", "", "/a b", "/a|b"] {
        let said = script(&built, &[("PREFIX", Path::new(wrong)), ("DESTDIR", &prefix)], &[]);
        // An empty one is none: the usual.
        assert_eq!(said.status.success(), wrong.is_empty(), "{wrong}: {said:?}");
        assert!(wrong.is_empty() || !prefix.exists(), "{wrong}");
        let _ = fs::remove_dir_all(&prefix);
    }
    fs::remove_file(built.join("libweir_capi.a")).expect("removed");
    let said = script(&built, &[("PREFIX", &prefix)], &[]);
    assert!(!said.status.success() && !prefix.exists(), "{said:?}");
}
