//! WEIRDB-1: what is public names no type of another crate of the engine, and stays as it is
//! written down in `tests/interface.txt`: a change of that file is a change for all users. It is
//! made anew by `WEIR_BLESS=1 cargo test -p weirdb --test it signatures`.
use std::fs;
use std::path::Path;

/// The words of the signatures of public items in a file, each with its line.
fn signatures(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let begins = line.starts_with("pub ") && !line.starts_with("pub use");
        if begins && open.is_none() {
            open = Some((number + 1, String::new()));
        }
        if let Some((at, mut words)) = open.take() {
            words.push_str(line);
            words.push(' ');
            match line.ends_with(['{', ';', ',', '}'])
                && words.matches('(').count() == words.matches(')').count()
            {
                true => found.push((at, words)),
                false => open = Some((at, words)),
            }
        }
    }
    found
}

/// The signatures of each source file, by its name, in the order of the file.
fn all() -> Vec<(String, Vec<(usize, String)>)> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut folders, mut files) = (vec![source.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("listed") {
            let path = entry.expect("listed").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).expect("read");
            let name = path.strip_prefix(&source).expect("below it").display().to_string();
            let inner = text.lines().filter(|line| line.trim().starts_with("pub use weir"));
            assert_eq!(inner.count(), 0, "{name}");
            files.push((name, signatures(&text)));
        }
    }
    files.sort();
    files
}

#[test]
fn no_public_signature_names_a_type_of_another_crate() {
    let mut looked_at = 0;
    for (name, signatures) in all() {
        for (line, signature) in signatures {
            looked_at += 1;
            let is_inner = signature.contains("weir::") || signature.contains("weir_");
            assert!(!is_inner, "{name}:{line}: {signature}");
        }
    }
    assert!(looked_at > 100, "{looked_at}");
}

#[test]
fn the_interface_is_the_one_that_is_written_down() {
    let mut now = String::new();
    for (name, signatures) in all() {
        for (_, signature) in signatures {
            let words: Vec<&str> = signature.trim_end_matches([' ', '{', ',']).split(' ').collect();
            now.push_str(&format!("{name}: {}\n", words.join(" ").trim_end()));
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interface.txt");
    if std::env::var_os("WEIR_BLESS").is_some() {
        fs::write(&path, &now).expect("written");
    }
    let known = fs::read_to_string(&path).expect("read");
    for (line, (now, known)) in now.lines().zip(known.lines()).enumerate() {
        assert_eq!(now, known, "line {}", line + 1);
    }
    assert_eq!(now, known);
}

#[test]
fn a_signature_over_several_lines_is_looked_at() {
    let text =
        "    pub fn f(\n        a: weir::Tree,\n    ) -> u8 {\n    pub(crate) raw: weir::Db,\n";
    let found = signatures(text);
    assert_eq!(found.len(), 1);
    assert!(found[0].0 == 1 && found[0].1.contains("weir::Tree"));
}
