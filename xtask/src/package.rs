//! What is published: `weirdb` and the crates below it, which are named `weirdb-*` there and not
//! here. A copy of them is made below `target`, with those names, versions and the licences, and
//! packed by cargo; the code keeps the names that it imports. `cargo publish --workspace` in the
//! copy publishes it.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// What users name.
const PACKAGE: &str = "weirdb";
/// Where the copy lies, below the tree's root.
const COPY: &str = "target/package-source";
/// Packages of a tree, by name: the folder below `crates`.
type Crates = BTreeMap<String, String>;

/// A crate's name where it is published. `weir` is another's there.
fn published(name: &str) -> String {
    match name.strip_prefix("weir-") {
        Some(rest) => format!("weirdb-{rest}"),
        None if name == "weir" => "weirdb-engine".into(),
        None => name.into(),
    }
}

/// Makes the copy and has cargo pack it; with `verify` each package is built from what was packed.
/// Returns the copy's directory and how many packages there are.
///
/// # Errors
/// What cargo does not like.
pub fn package(root: &Path, verify: bool) -> Result<(PathBuf, usize)> {
    let crates = closure(&metadata(root)?)?;
    let copy = root.join(COPY);
    // Packed anew, and not what an earlier copy had.
    for old in ["Cargo.toml", "crates"].map(|name| copy.join(name)) {
        if old.is_dir() {
            fs::remove_dir_all(&old)?;
        } else if old.exists() {
            fs::remove_file(&old)?;
        }
    }
    fs::create_dir_all(&copy)?;
    let read = |path: &str| fs::read_to_string(root.join(path)).with_context(|| path.to_string());
    fs::write(copy.join("Cargo.toml"), workspace(&read("Cargo.toml")?, &crates))?;
    for file in ["Cargo.lock", "clippy.toml"] {
        fs::copy(root.join(file), copy.join(file))?;
    }
    for folder in crates.values() {
        let (from, to) = (root.join("crates").join(folder), copy.join("crates").join(folder));
        copy_folder(&from, &to)?;
        let path = to.join("Cargo.toml");
        fs::write(&path, manifest(&fs::read_to_string(&path)?)?)?;
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            fs::copy(root.join(licence), to.join(licence))?;
        }
    }
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&copy).args(["package", "--workspace", "--allow-dirty", "--quiet"]);
    if !verify {
        cargo.arg("--no-verify");
    }
    ensure!(cargo.status()?.success(), "cargo package has failed in {}", copy.display());
    Ok((copy, crates.len()))
}

fn metadata(root: &Path) -> Result<Value> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args(["metadata", "--no-deps", "--locked", "--format-version", "1"]);
    let output = cargo.output().context("cargo metadata")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The package and all of the tree's that it depends on.
fn closure(metadata: &Value) -> Result<Crates> {
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let (mut found, mut wanted) = (Crates::new(), vec![PACKAGE.to_string()]);
    while let Some(name) = wanted.pop() {
        if found.contains_key(&name) {
            continue;
        }
        let package = packages.iter().find(|package| package["name"] == *name);
        let package = package.with_context(|| format!("there is no package {name}"))?;
        let path = Path::new(package["manifest_path"].as_str().context("a package without path")?);
        let folder = path.parent().and_then(Path::file_name).context("a package without folder")?;
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let is_ours = dependency["path"].is_string() && dependency["kind"].is_null();
            wanted.extend(dependency["name"].as_str().filter(|_| is_ours).map(str::to_string));
        }
        found.insert(name, folder.to_string_lossy().into_owned());
    }
    Ok(found)
}

/// The workspace's manifest, with these members, each by its published name and version.
fn workspace(text: &str, crates: &Crates) -> String {
    let version = text.lines().find_map(|line| line.strip_prefix("version = "));
    let version = version.unwrap_or("\"0.0.0\"");
    let line = |line: &str| -> Option<String> {
        if line.starts_with("exclude = ") {
            return None;
        }
        if line.starts_with("members = ") {
            return Some("members = [\"crates/*\"]".into());
        }
        if !line.contains("{ path = \"crates/") {
            return Some(line.into());
        }
        let name = line.split(' ').next().unwrap_or_default();
        let (folder, package) = (crates.get(name)?, published(name));
        let path = format!("path = \"crates/{folder}\", package = \"{package}\"");
        Some(format!("{name} = {{ {path}, version = {version} }}"))
    };
    text.lines().filter_map(line).fold(String::new(), |all, line| all + &line + "\n")
}

/// A crate's manifest: its published name, and the name that code imports it by.
fn manifest(text: &str) -> Result<String> {
    let Some(name) = text.lines().find_map(|line| line.strip_prefix("name = ")) else {
        bail!("a crate has no name");
    };
    let name = name.trim_matches('"');
    let package = published(name);
    let is_part = name != PACKAGE;
    let (mut out, mut is_left_out) = (String::new(), false);
    for line in text.lines() {
        if line.starts_with('[') {
            // Tests of the parts are not published: some test with crates that are not, either.
            is_left_out = is_part && line == "[dev-dependencies]";
            if line == "[lints]" && is_part {
                out.push_str(&format!("[lib]\nname = \"{}\"\n\n", name.replace('-', "_")));
            }
        }
        if is_left_out || line == "publish = false" {
            continue;
        }
        if line.starts_with("name = ") && !out.contains("name = ") {
            out.push_str(&format!("name = \"{package}\"\n"));
            if is_part {
                let what = "A part of weirdb; it has no interface of its own that stays";
                out.push_str(&format!("description = \"{what}\"\n"));
            }
            continue;
        }
        out.push_str(line);
        out.push('\n');
    }
    Ok(out)
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let path = entry?.path();
        let Some(name) = path.file_name() else { continue };
        if path.is_dir() {
            copy_folder(&path, &to.join(name))?;
        } else {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_change_where_they_are_published_and_nowhere_else() {
        let text = "[package]\nname = \"weir-redo\"\nversion.workspace = true\npublish = false\n\n\
                    [lints]\nworkspace = true\n\n[dependencies]\nweir-base.workspace = true\n\n\
                    [dev-dependencies]\ntempfile.workspace = true\n\n\
                    [target.\"cfg(loom)\".dependencies]\nloom.workspace = true\n";
        let made = manifest(text).expect("a manifest");
        assert!(made.contains("name = \"weirdb-redo\"\n") && made.contains("name = \"weir_redo\""));
        assert!(made.contains("weir-base.workspace") && made.contains("loom.workspace"));
        assert!(!made.contains("publish") && !made.contains("tempfile"));
        let own = manifest("[package]\nname = \"weirdb\"\n[lints]\n[dev-dependencies]\na = 1\n");
        let own = own.expect("a manifest");
        assert!(own.contains("name = \"weirdb\"") && own.contains("a = 1"), "{own}");
        assert!(!own.contains("[lib]"));
    }

    #[test]
    fn the_workspace_names_what_is_published_by_version() {
        let text = "[workspace]\nmembers = [\"crates/*\", \"xtask\"]\nexclude = [\"fuzz\"]\n\
                    version = \"0.1.0\"\nweir = { path = \"crates/weir\" }\n\
                    weir-lab = { path = \"crates/lab\" }\nanyhow = \"1\"\n";
        let crates = Crates::from([("weir".into(), "weir".into())]);
        let made = workspace(text, &crates);
        let engine = "weir = { path = \"crates/weir\", package = \"weirdb-engine\", version = \
                      \"0.1.0\" }";
        assert!(made.contains(engine) && made.contains("anyhow"), "{made}");
        assert!(!made.contains("lab") && !made.contains("xtask") && !made.contains("exclude"));
    }

    #[test]
    fn the_closure_has_what_is_needed_and_no_more() {
        let package = |name: &str, needs: &[(&str, Option<&str>)]| {
            let needs = needs
                .iter()
                .map(|(name, kind)| serde_json::json!({ "name": name, "kind": kind, "path": "x" }));
            serde_json::json!({
                "name": name,
                "manifest_path": format!("/t/crates/{name}/Cargo.toml"),
                "dependencies": needs.collect::<Vec<_>>(),
            })
        };
        let all = serde_json::json!({ "packages": [
            package("weirdb", &[("weir", None), ("weir-history", Some("dev"))]),
            package("weir", &[("weir-base", None)]),
            package("weir-base", &[]),
            package("weir-history", &[]),
        ] });
        let found = closure(&all).expect("a closure");
        assert_eq!(found.keys().collect::<Vec<_>>(), ["weir", "weir-base", "weirdb"]);
    }
}
