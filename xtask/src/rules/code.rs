//! Rules about code: where `unsafe` may stand, which calls are banned, how many unwraps are left.

use super::Finding;
use crate::lexer::lines_with_word;
use crate::tree::Tree;

/// The only files whose shipped code may hold `unsafe`. Adding one is a decision to be defended in
/// review.
pub const UNSAFE_ADDRESSES: &[&str] = &[
    "crates/base/src/aligned.rs",
    "crates/base/src/array.rs",
    "crates/base/src/fork.rs",
    "crates/base/src/heap.rs",
    "crates/base/src/mapping.rs",
    "crates/capi/src/backup.rs",
    "crates/capi/src/batch.rs",
    "crates/capi/src/borrow.rs",
    "crates/capi/src/catalog.rs",
    "crates/capi/src/copy.rs",
    "crates/capi/src/compact.rs",
    "crates/capi/src/cursor.rs",
    "crates/capi/src/db.rs",
    "crates/capi/src/endpoint.rs",
    "crates/capi/src/export.rs",
    "crates/capi/src/fulltext.rs",
    "crates/capi/src/outcome.rs",
    "crates/capi/src/indexes.rs",
    "crates/capi/src/keys.rs",
    "crates/capi/src/prepared.rs",
    "crates/capi/src/rewrite.rs",
    "crates/capi/src/scan.rs",
    "crates/capi/src/spatial.rs",
    "crates/capi/src/stats.rs",
    "crates/capi/src/table.rs",
    "crates/capi/src/tree.rs",
    "crates/capi/src/txn.rs",
    "crates/capi/src/notices.rs",
    "crates/capi/src/waits.rs",
    "crates/device/src/batch.rs",
    "crates/device/src/sys.rs",
    "crates/device/src/uring.rs",
    "crates/page/src/raw.rs",
    "crates/pool/src/frame.rs",
    "crates/pool/src/guard.rs",
    "crates/pool/src/read_in.rs",
    "crates/pool/src/resize.rs",
    "crates/pool/src/table.rs",
    "crates/redo/src/ring.rs",
    "python/src/octets.rs",
];

/// Files whose test code may hold `unsafe`: they race readers against writers on purpose.
const UNSAFE_IN_TESTS: &[&str] = &[
    "crates/page/examples/search_bench.rs",
    "crates/page/tests/model.rs",
    "crates/page/tests/optimistic.rs",
    "crates/redo/src/claims.rs",
];

/// Outside the floors: foreign functions and signal numbers, never linked into the engine.
const UNSAFE_FREE_ZONES: &[&str] = &["rivals/"];

/// A call that no shipped code makes, what to use instead, and the paths it is for.
struct Ban {
    call: &'static str,
    instead: &'static str,
    /// Only under these; empty: everywhere.
    within: &'static [&'static str],
    /// Not under these.
    except: &'static [&'static str],
    /// In test code as well.
    in_tests: bool,
}

const CLOCKS: &[&str] = &[
    "crates/base/src/clock.rs",
    "crates/device/src/throttle.rs",
    "crates/cli/",
    "crates/bench/",
    "crates/metrics/src/serve.rs",
    "rivals/",
    "xtask/",
];
const TALKERS: &[&str] = &[
    "crates/capi/build.rs",
    "crates/cli/",
    "crates/bench/",
    "crates/sim/src/main.rs",
    "rivals/",
    "xtask/",
];

const BANS: &[Ban] = &[
    Ban {
        call: "Instant::now",
        instead: "weir_base::Clock",
        within: &[],
        except: CLOCKS,
        in_tests: false,
    },
    Ban {
        call: "SystemTime::now",
        instead: "weir_base::Clock",
        within: &[],
        except: CLOCKS,
        in_tests: false,
    },
    Ban {
        call: "println!",
        instead: "return it, or count it; only cli, bench and the binary of sim print",
        within: &["crates/"],
        except: TALKERS,
        in_tests: false,
    },
    Ban {
        call: "eprintln!",
        instead: "return an error; only cli, bench and the binary of sim print",
        within: &["crates/"],
        except: TALKERS,
        in_tests: false,
    },
    Ban {
        call: "#[ignore",
        instead: "a test that runs, or none",
        within: &[],
        except: &[],
        in_tests: true,
    },
    Ban {
        call: "todo!",
        instead: "finish it, or leave it out",
        within: &[],
        except: &[],
        in_tests: true,
    },
    Ban {
        call: "unimplemented!",
        instead: "finish it, or leave it out",
        within: &[],
        except: &[],
        in_tests: true,
    },
    Ban {
        call: "static mut",
        instead: "an atomic, or a OnceLock",
        within: &[],
        except: &[],
        in_tests: true,
    },
];

/// How many `.unwrap()` shipped code under `crates/` may still hold. Only ever lower it.
pub const UNWRAPS_MAX: usize = 0;

fn is_under(path: &str, places: &[&str]) -> bool {
    places.iter().any(|place| path.starts_with(place))
}

/// `unsafe` stands only in the files listed.
pub fn unsafe_addresses(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        if UNSAFE_ADDRESSES.contains(&file.path.as_str()) || is_under(&file.path, UNSAFE_FREE_ZONES)
        {
            continue;
        }
        let only_shipped = UNSAFE_IN_TESTS.contains(&file.path.as_str());
        let code = if only_shipped { &file.shipped } else { &file.code };
        for line in lines_with_word(code, "unsafe") {
            let what = "unsafe has an address: move it to a file listed in xtask/src/rules/code.rs";
            findings.push(Finding::new(&file.path, line, what));
        }
    }
    findings
}

/// Listed files that are gone or hold no `unsafe` any more.
pub fn stale_addresses(tree: &Tree) -> Vec<Finding> {
    UNSAFE_ADDRESSES
        .iter()
        .chain(UNSAFE_IN_TESTS)
        .filter(|address| {
            tree.file(address).is_none_or(|file| lines_with_word(&file.code, "unsafe").is_empty())
        })
        .map(|address| Finding::new(address, 1, "listed for unsafe, and holds none: unlist it"))
        .collect()
}

pub fn banned_calls(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        for ban in BANS {
            let concerned = ban.within.is_empty() || is_under(&file.path, ban.within);
            if !concerned || is_under(&file.path, ban.except) {
                continue;
            }
            let code = if ban.in_tests { &file.code } else { &file.shipped };
            for line in lines_with_word(code, ban.call) {
                let what = format!("{} is banned; instead: {}", ban.call, ban.instead);
                findings.push(Finding::new(&file.path, line, what));
            }
        }
    }
    findings
}

fn unwraps(tree: &Tree) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    for file in tree.rust().filter(|file| file.path.starts_with("crates/")) {
        for line in lines_with_word(&file.shipped, ".unwrap()") {
            found.push((file.path.as_str(), line));
        }
    }
    found
}

/// No more unwraps than there were.
pub fn unwrap_ratchet(tree: &Tree) -> Vec<Finding> {
    too_many(&unwraps(tree), UNWRAPS_MAX)
}

fn too_many(found: &[(&str, usize)], max: usize) -> Vec<Finding> {
    if found.len() > max {
        let what = format!(
            "{} unwraps, {max} allowed: return the error, or `expect` the invariant",
            found.len()
        );
        return found.iter().map(|(path, at)| Finding::new(path, *at, what.clone())).collect();
    }
    Vec::new()
}

/// When there are fewer, the ratchet should follow.
pub fn slack_in_ratchet(tree: &Tree) -> Vec<Finding> {
    too_few(unwraps(tree).len(), UNWRAPS_MAX)
}

fn too_few(count: usize, max: usize) -> Vec<Finding> {
    if count < max {
        let what = format!("lower UNWRAPS_MAX to {count}");
        return vec![Finding::new("xtask/src/rules/code.rs", 1, what)];
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(path: &str, text: &str) -> Tree {
        Tree::of(&[(path, text)])
    }

    #[test]
    fn unsafe_outside_its_addresses_is_caught() {
        let text = "//! x\nfn f() { unsafe { g() } }";
        assert_eq!(unsafe_addresses(&one("crates/btree/src/find.rs", text)).len(), 1);
        assert_eq!(unsafe_addresses(&one(UNSAFE_ADDRESSES[0], text)), []);
        let spoken =
            "//! unsafe\n// unsafe\n#![forbid(unsafe_code)]\nfn f() -> &str { \"unsafe\" }";
        assert_eq!(unsafe_addresses(&one("crates/btree/src/find.rs", spoken)), []);
    }

    #[test]
    fn leave_for_tests_is_no_leave_for_shipped_code() {
        let path = "crates/redo/src/claims.rs";
        let tested = "#[cfg(all(test, loom))]\nmod tests { fn f() { unsafe { g() } } }";
        assert_eq!(unsafe_addresses(&one(path, tested)), []);
        let shipped = "fn f() { unsafe { g() } }";
        assert_eq!(unsafe_addresses(&one(path, shipped)).len(), 1);
    }

    #[test]
    fn an_address_without_unsafe_is_noted() {
        let tree = one(UNSAFE_ADDRESSES[0], "//! nothing here");
        assert!(stale_addresses(&tree).iter().any(|note| note.path == UNSAFE_ADDRESSES[0]));
        let tree = one(UNSAFE_ADDRESSES[0], "unsafe { f() }");
        assert!(stale_addresses(&tree).iter().all(|note| note.path != UNSAFE_ADDRESSES[0]));
    }

    #[test]
    fn every_banned_call_is_caught() {
        for ban in BANS {
            let text = format!("fn f() {{ {} }}", ban.call);
            let tree = one("crates/btree/src/find.rs", &text);
            let findings = banned_calls(&tree);
            assert_eq!(findings.len(), 1, "{}", ban.call);
            assert!(findings[0].what.contains(ban.instead), "{}", ban.call);
        }
    }

    #[test]
    fn bans_know_their_exceptions() {
        let clock = "fn f() { Instant::now() }";
        assert_eq!(banned_calls(&one("crates/base/src/clock.rs", clock)), []);
        let tested = "#[cfg(test)]\nmod tests { fn f() { println!(); Instant::now() } }";
        assert_eq!(banned_calls(&one("crates/redo/src/scan.rs", tested)), []);
        assert_eq!(banned_calls(&one("crates/cli/src/main.rs", "fn f() { println!() }")), []);
        let ignored = "#[cfg(test)]\nmod tests { #[ignore] fn f() {} }";
        assert_eq!(banned_calls(&one("crates/redo/src/scan.rs", ignored)).len(), 1);
    }

    #[test]
    fn one_unwrap_too_many_is_caught() {
        let tree = one("crates/redo/src/scan.rs", &"fn f() { g().unwrap(); }\n".repeat(3));
        assert_eq!(too_many(&unwraps(&tree), 2).len(), 3);
        assert_eq!(too_many(&unwraps(&tree), 3), []);
        assert_eq!((too_few(2, 3).len(), too_few(3, 3).len()), (1, 0));
        let tested = "#[cfg(test)]\nmod tests { fn f() { g().unwrap(); } }";
        assert_eq!(unwraps(&one("crates/redo/src/scan.rs", tested)), []);
        assert_eq!(unwraps(&one("crates/redo/tests/it.rs", "fn f() { g().unwrap(); }")), []);
    }
}
