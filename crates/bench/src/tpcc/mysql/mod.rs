//! The backend for servers that speak MySQL's protocol: TPC-C in SQL, over prepared statements, on
//! tables of the engine that is named.
mod load;
mod new_order;
mod payment;
mod rows;
mod tables;
mod terminal;
mod values;

use super::backend::{Backend, Loaded};
use super::population::Population;
use super::rows::Row;
use super::scale::Scale;
use super::store::Isolation;
use crate::durability::Durability;
use crate::target::{Counters, Watched};
use anyhow::{Context, Result, bail, ensure};
use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder, Params};
use rows::read_row;
use tables::{TABLES, table};
use values::{Values, int};

pub use terminal::MysqlTerminal;

/// Statements that a connection keeps prepared: more than the transactions have.
const STATEMENTS: usize = 128;

/// Where the server is, and what tables to make there.
#[derive(Clone, Debug)]
pub struct MysqlOptions {
    /// `mysql://user:password@host/database`, or the path of a socket (then: the database `tpcc`
    /// as root). The database is made if it is not there.
    pub server: String,
    /// The storage engine of the tables, in the server's words.
    pub engine: String,
    /// What the transactions see of each other.
    pub isolation: Isolation,
}

/// TPC-C on a server. Its commits are as durable as the server is configured to make them.
pub struct Mysql {
    opts: Opts,
    engine: String,
    isolation: Isolation,
    about: String,
    durability: Option<Durability>,
}

impl Mysql {
    /// Looks whether the server is there, and makes the database.
    ///
    /// # Errors
    /// When it cannot be reached, has no such engine, or there is no such level of isolation in
    /// SQL.
    pub fn open(options: &MysqlOptions) -> Result<Self> {
        let MysqlOptions { server, engine, isolation } = options;
        ensure!(
            !engine.is_empty() && engine.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'),
            "'{engine}' is no name of an engine"
        );
        let level = level(*isolation)?;
        let builder = if server.contains("://") {
            OptsBuilder::from_opts(Opts::from_url(server).with_context(|| {
                format!("'{server}' is no URL like mysql://user:password@host/database")
            })?)
        } else {
            OptsBuilder::new().socket(Some(server)).user(Some("root")).db_name(Some("tpcc"))
        };
        let opts = Opts::from(
            builder
                .stmt_cache_size(STATEMENTS)
                .init(vec![format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}")]),
        );
        let name = opts.get_db_name().context("the URL names no database")?.to_owned();
        ensure!(!name.contains('`'), "'{name}' is no name of a database");
        let without = OptsBuilder::from_opts(opts.clone()).db_name(None::<String>);
        let mut conn = Conn::new(without).with_context(|| format!("cannot connect to {server}"))?;
        conn.query_drop(format!("CREATE DATABASE IF NOT EXISTS `{name}`"))?;
        let version: Option<String> = conn.query_first("SELECT VERSION()")?;
        let known: Option<String> = conn.exec_first(
            "SELECT SUPPORT FROM information_schema.ENGINES WHERE ENGINE = ?",
            (engine,),
        )?;
        ensure!(
            known.is_some_and(|support| support != "NO"),
            "the server has no engine '{engine}': see SHOW ENGINES"
        );
        let durability = durability_of(&mut conn, engine)?;
        let about = format!("a server {} with ENGINE={engine}", version.unwrap_or_default());
        Ok(Mysql { opts, engine: engine.clone(), isolation: *isolation, about, durability })
    }

    /// What it runs on, for reports.
    #[must_use]
    pub fn describe(&self) -> &str {
        &self.about
    }

    /// How durable the server says that commits are; `None`: it does not say for this engine.
    #[must_use]
    pub fn durability(&self) -> Option<Durability> {
        self.durability
    }

    fn connect(&self) -> Result<Conn> {
        Conn::new(self.opts.clone()).context("cannot connect to the server")
    }
}

/// Its name in SQL.
fn level(isolation: Isolation) -> Result<&'static str> {
    Ok(match isolation {
        Isolation::ReadCommitted => "READ COMMITTED",
        Isolation::RepeatableRead => "REPEATABLE READ",
        Isolation::Serializable => "SERIALIZABLE",
        Isolation::Snapshot => bail!("SQL has no isolation level 'snapshot'"),
    })
}

/// What InnoDB's setting means for a commit; of other engines only they know.
fn durability_of(conn: &mut Conn, engine: &str) -> Result<Option<Durability>> {
    if !engine.eq_ignore_ascii_case("innodb") {
        return Ok(None);
    }
    let set: Option<(String, String)> =
        conn.query_first("SHOW GLOBAL VARIABLES LIKE 'innodb_flush_log_at_trx_commit'")?;
    Ok(set.map(|(_, value)| match value.as_str() {
        "0" => Durability::Lazy,
        "2" => Durability::Written,
        _ => Durability::Synced,
    }))
}

/// What the population was, written when everything else is there.
const LOADED: &str = "tpcc_loaded";
/// The server's number for a table that is not there.
const NO_SUCH_TABLE: u16 = 1146;

impl Backend for Mysql {
    type Ticket = ();
    type Terminal<'a> = MysqlTerminal;

    fn isolation(&self) -> Isolation {
        self.isolation
    }

    fn loaded(&self) -> Result<Option<Loaded>> {
        let columns = "warehouses, items, customers, new_orders, last_name_constant";
        let found = self.connect()?.exec_first(format!("SELECT {columns} FROM {LOADED}"), ());
        let row: Option<mysql::Row> = match found {
            Err(mysql::Error::MySqlError(error)) if error.code == NO_SUCH_TABLE => return Ok(None),
            other => other?,
        };
        let Some(row) = row else { return Ok(None) };
        let mut values = Values::of(row);
        let mut read = || {
            let (warehouses, items) = (values.int()?, values.int()?);
            let (customers, new_orders) = (values.int()?, values.int()?);
            let scale = Scale { warehouses, items, customers, new_orders };
            Some(Loaded { scale, last_name_constant: values.int()? })
        };
        read().with_context(|| format!("'{LOADED}' holds something strange")).map(Some)
    }

    fn drop_all(&self) -> Result<()> {
        let mut conn = self.connect()?;
        // First what says that the others are whole.
        for name in [LOADED].into_iter().chain(TABLES.map(|table| table.name)) {
            conn.query_drop(format!("DROP TABLE IF EXISTS {name}"))?;
        }
        Ok(())
    }

    fn load(&self, population: &Population, progress: &mut dyn FnMut(u64) -> bool) -> Result<()> {
        let mut conn = self.connect()?;
        for table in TABLES {
            let made = conn.query_drop(table.create(&self.engine));
            made.with_context(|| format!("making the table {}", table.name))?;
        }
        if !load::load(&mut conn, population, progress)? {
            return Ok(());
        }
        conn.query_drop(format!(
            "CREATE TABLE {LOADED} (warehouses SMALLINT UNSIGNED PRIMARY KEY, items INT UNSIGNED, \
             customers SMALLINT UNSIGNED, new_orders SMALLINT UNSIGNED, \
             last_name_constant INT UNSIGNED) ENGINE={}",
            self.engine
        ))?;
        let Scale { warehouses, items, customers, new_orders } = population.scale();
        let last_name = population.constants().last_name;
        let row =
            [int(warehouses), int(items), int(customers), int(new_orders), int(last_name)].to_vec();
        Ok(conn.exec_drop(
            format!("INSERT INTO {LOADED} VALUES (?, ?, ?, ?, ?)"),
            Params::Positional(row),
        )?)
    }

    /// A server's memory is its own affair.
    fn warm(&self, _: &mut dyn FnMut(u64) -> bool) -> Result<()> {
        Ok(())
    }

    fn terminal(&self, _: u16) -> Result<MysqlTerminal> {
        Ok(MysqlTerminal::new(self.connect()?))
    }

    fn wait(&self, (): ()) -> Result<()> {
        Ok(())
    }

    fn is_durable(&self, (): ()) -> bool {
        true
    }

    /// What `CHECK TABLE` finds. (An engine that cannot check says so in a note.)
    fn index_problems(&self) -> Result<Vec<String>> {
        let names = TABLES.map(|table| table.name).join(", ");
        let told: Vec<(String, String, String, String)> =
            self.connect()?.query(format!("CHECK TABLE {names}"))?;
        let bad = told.into_iter().filter(|(_, _, kind, text)| match kind.as_str() {
            "status" => text != "OK",
            kind => kind != "note" && kind != "info",
        });
        Ok(bad.map(|(table, _, kind, text)| format!("{table}: {kind}: {text}")).collect())
    }

    fn visit<R: Row>(&self, visit: &mut dyn FnMut(&R) -> Result<()>) -> Result<()> {
        let table = table(R::RELATION);
        let mut conn = self.connect()?;
        for (row, number) in conn.exec_iter(table.select(), ())?.zip(0..) {
            let Some(row) = read_row(Values::of(row?), number) else {
                bail!("row {number} of {} cannot be one of its own", table.name);
            };
            visit(&row)?;
        }
        Ok(())
    }
}

/// A server's counters are its own affair, too.
impl Watched for Mysql {
    fn counters(&self) -> Counters {
        Counters::default()
    }

    fn reset_peaks(&self) {}
}
