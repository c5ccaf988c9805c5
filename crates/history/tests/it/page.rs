//! The guide's table of anomalies is the catalogue's. A change of the catalogue is written into it
//! by `WEIR_BLESS=1 cargo test -p weir-history --test it page`.
use std::fmt::Write;
use std::path::Path;

use weir_history::{CATALOGUE, Outcome};

const PAGE: &str = "docs/guide/isolation.md";
const BEGIN: &str = "<!-- generated: WEIR_BLESS=1 cargo test -p weir-history --test it page -->";
const END: &str = "<!-- end of what is generated -->";

fn word(outcome: Outcome) -> String {
    match outcome {
        Outcome::Shows(anomaly) => format!("**{}**", anomaly.name()),
        Outcome::Refuses => "refused".to_owned(),
        Outcome::Waits => "waits".to_owned(),
        Outcome::Passes => "-".to_owned(),
    }
}

#[test]
fn the_guide_says_what_happens_at_which_level() {
    let mut table = String::from(
        "| | READ UNCOMMITTED | READ COMMITTED | REPEATABLE READ | SNAPSHOT | SERIALIZABLE |\n\
         |---|---|---|---|---|---|\n",
    );
    for script in CATALOGUE {
        let cells = script.expect.map(word).join(" | ");
        writeln!(table, "| {} | {cells} |", script.name).expect("a string takes it");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE);
    let page = std::fs::read_to_string(&path).expect("the page");
    let (before, rest) = page.split_once(BEGIN).expect("a place for the table");
    let (_, after) = rest.split_once(END).expect("its end");
    let new = format!("{before}{BEGIN}\n{table}{END}{after}");
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(&path, new).expect("written");
    } else {
        assert!(new == page, "{PAGE} is older than the catalogue: {BEGIN}");
    }
}
