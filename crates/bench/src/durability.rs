//! When a commit counts as done.
use std::str::FromStr;

use anyhow::{Result, bail};

/// When a commit counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// On stable storage.
    Synced,
    /// With the operating system: survives the process, not the machine.
    Written,
    /// In memory; written about once a second.
    Lazy,
}

impl Durability {
    /// The word for it on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Durability::Synced => "synced",
            Durability::Written => "written",
            Durability::Lazy => "lazy",
        }
    }
}

impl FromStr for Durability {
    type Err = anyhow::Error;
    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "synced" => Durability::Synced,
            "written" => Durability::Written,
            "lazy" => Durability::Lazy,
            _ => bail!("'{text}' is no durability; choose synced, written or lazy"),
        })
    }
}
