//! The names of the policies.
use std::fmt;
use std::str::FromStr;

/// Which policy writes pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Weir's own, without knobs.
    Deadline,
    /// InnoDB of MySQL 4.0: next to nothing until the log is nearly full, then everything at once.
    Furious,
    /// The page cleaner of MySQL 5.6.
    Mysql56,
    /// The page cleaner of MySQL 8.0.
    Mysql8,
    /// The page cleaner of MariaDB 10.5 to 11.
    Mariadb105,
    /// XtraDB's first adaptive checkpoint.
    Reflex,
    /// XtraDB's second.
    Estimate,
    /// XtraDB's third, made for solid-state disks.
    KeepAverage,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 8] = [
        Kind::Deadline,
        Kind::Furious,
        Kind::Mysql56,
        Kind::Mysql8,
        Kind::Mariadb105,
        Kind::Reflex,
        Kind::Estimate,
        Kind::KeepAverage,
    ];

    /// The word for it on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Deadline => "deadline",
            Kind::Furious => "furious",
            Kind::Mysql56 => "mysql_5_6",
            Kind::Mysql8 => "mysql_8",
            Kind::Mariadb105 => "mariadb_10_5",
            Kind::Reflex => "reflex",
            Kind::Estimate => "estimate",
            Kind::KeepAverage => "keep_average",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = Kind::ALL.map(Kind::name).join(", ");
        Kind::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| format!("'{text}' is no policy; there are {names}"))
    }
}
