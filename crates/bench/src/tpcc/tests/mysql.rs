//! The backend in SQL, on a server of its own with nothing but a socket. Where there is no
//! `mariadbd` these tests say so and pass: `make mysql` installs it first.
use super::{NOW, loaded};
use crate::fake::Fake;
use crate::run::Outcome as RunOutcome;
use crate::tpcc::backend::{Backend, DeliveryDone, Outcome, Terminal};
use crate::tpcc::consistency::check;
use crate::tpcc::input::{Delivery, Inputs};
use crate::tpcc::mysql::{Mysql, MysqlOptions};
use crate::tpcc::population::Population;
use crate::tpcc::rows::{
    Customer, District, History, Item, NewOrderRow, Order, OrderLine, Relation, Row, Stock,
    Warehouse,
};
use crate::tpcc::run::run;
use crate::tpcc::scale::DISTRICTS;
use crate::tpcc::scale::tests::tiny;
use crate::tpcc::store::Isolation;
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use weir_base::SystemClock;

struct Server {
    process: Child,
    socket: PathBuf,
    _dir: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its directory goes with it: there is nothing to save.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    /// `None`, said: there is no such server on this machine.
    fn start() -> Option<Server> {
        let dir = tempfile::tempdir().unwrap();
        let (data, socket) = (dir.path().join("data"), dir.path().join("s"));
        let made = Command::new("mariadb-install-db")
            .args(["--no-defaults", "--user=root", "--skip-test-db"])
            .arg("--auth-root-authentication-method=normal")
            .arg(format!("--datadir={}", data.display()))
            .stdout(Stdio::null())
            .status();
        if made.is_err() {
            eprintln!("skipped: there is no mariadb-install-db here; `make mysql` installs it");
            return None;
        }
        assert!(made.unwrap().success(), "mariadb-install-db failed");
        let process = Command::new("mariadbd")
            .args(["--no-defaults", "--user=root", "--skip-networking"])
            .args(["--innodb-buffer-pool-size=64M", "--innodb-log-file-size=16M"])
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--socket={}", socket.display()))
            .stderr(Stdio::null())
            .spawn();
        let Ok(process) = process else {
            eprintln!("skipped: there is no mariadbd here; `make mysql` installs it");
            return None;
        };
        let mut server = Server { process, socket, _dir: dir };
        let begun = Instant::now();
        while let Err(error) = server.connect("") {
            let ended = server.process.try_wait().unwrap();
            assert_eq!(ended, None, "mariadbd has ended");
            assert!(begun.elapsed() < Duration::from_secs(60), "no server: {error}");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(server)
    }

    fn connect(&self, database: &str) -> mysql::Result<Conn> {
        let opts = OptsBuilder::new().socket(self.socket.to_str()).user(Some("root"));
        Conn::new(opts.db_name((!database.is_empty()).then_some(database)))
    }

    fn open(&self, isolation: Isolation) -> anyhow::Result<Mysql> {
        let server = self.socket.to_str().unwrap().to_owned();
        Mysql::open(&MysqlOptions { server, engine: "InnoDB".to_owned(), isolation })
    }
}

/// The rows of a table, whatever made them, in one order.
fn rows<R: Row, B: Backend>(backend: &B) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    backend
        .visit(&mut |row: &R| {
            let (mut key, mut value) = (Vec::new(), Vec::new());
            row.key(&mut key);
            row.value(&mut value);
            // The counts of the payments are not part of them.
            if R::RELATION == Relation::History {
                key.clear();
            }
            rows.push((key, value));
            Ok(())
        })
        .unwrap();
    rows.sort_unstable();
    rows
}

fn assert_same<A: Backend, B: Backend>(one: &A, other: &B) {
    assert_eq!(rows::<Warehouse, _>(one), rows::<Warehouse, _>(other));
    assert_eq!(rows::<District, _>(one), rows::<District, _>(other));
    assert_eq!(rows::<Customer, _>(one), rows::<Customer, _>(other));
    assert_eq!(rows::<History, _>(one), rows::<History, _>(other));
    assert_eq!(rows::<NewOrderRow, _>(one), rows::<NewOrderRow, _>(other));
    assert_eq!(rows::<Order, _>(one), rows::<Order, _>(other));
    assert_eq!(rows::<OrderLine, _>(one), rows::<OrderLine, _>(other));
    assert_eq!(rows::<Item, _>(one), rows::<Item, _>(other));
    assert_eq!(rows::<Stock, _>(one), rows::<Stock, _>(other));
}

#[test]
fn sql_does_what_the_embedded_backend_does() {
    let Some(server) = Server::start() else { return };
    let backend = server.open(Isolation::RepeatableRead).unwrap();
    assert_eq!(backend.loaded().unwrap(), None);
    let (fake, scale): (Fake, _) = loaded(2);
    let population = Population::new(scale, 3, NOW);
    backend.load(&population, &mut |_| true).unwrap();
    let other = super::embedded(&fake);
    assert_eq!(backend.loaded().unwrap(), other.loaded().unwrap());
    assert_same(&backend, &other);

    let (mut one, mut two) = (backend.terminal(0).unwrap(), other.terminal(0).unwrap());
    let mut inputs = Inputs::new(scale, population.constants(), 11);
    let mut rolled_back = 0;
    for number in 0..600 {
        let request = inputs.draw(NOW + number);
        let (one, two) = (one.carry_out(&request).unwrap(), two.carry_out(&request).unwrap());
        assert_eq!(one, two, "{request:?}");
        rolled_back += u32::from(one == Outcome::RolledBack);
    }
    assert!(rolled_back > 0, "no user rolled an order back");
    assert_same(&backend, &other);
    assert!(check(&backend, scale).unwrap().holds());

    let mut conn = server.connect("tpcc").unwrap();
    conn.query_drop("UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 2").unwrap();
    conn.query_drop("DELETE FROM order_line LIMIT 1").unwrap();
    let found = check(&backend, scale).unwrap();
    let broken: Vec<usize> = (1..=12).filter(|&n| !found.condition_holds(n)).collect();
    assert!([1, 4, 6, 8].iter().all(|n| broken.contains(n)), "{broken:?}");
    backend.drop_all().unwrap();
    assert_eq!(backend.loaded().unwrap(), None);
}

/// Where a district's only order came while the delivery went on, after its snapshot.
#[test]
fn an_order_of_this_moment_is_delivered() {
    let Some(server) = Server::start() else { return };
    let backend = server.open(Isolation::RepeatableRead).unwrap();
    let (_, scale): (Fake, _) = loaded(1);
    backend.load(&Population::new(scale, 3, NOW), &mut |_| true).unwrap();
    let mut conn = server.connect("tpcc").unwrap();
    for statement in [
        "DELETE FROM new_orders WHERE no_d_id = 2",
        "START TRANSACTION",
        "INSERT INTO new_orders VALUES (1, 2, 99999)",
        "INSERT INTO orders SELECT 1, 2, 99999, o_c_id, o_entry_d, NULL, o_ol_cnt, o_all_local \
         FROM orders WHERE o_d_id = 2 AND o_id = 1",
        "INSERT INTO order_line SELECT 1, 2, 99999, ol_number, ol_i_id, ol_supply_w_id, NULL, \
         ol_quantity, ol_amount, ol_dist_info FROM order_line WHERE ol_d_id = 2 AND ol_o_id = 1",
    ] {
        conn.query_drop(statement).unwrap();
    }
    std::thread::scope(|scope| {
        let delivery = scope.spawn(|| {
            backend.terminal(0).unwrap().delivery(&Delivery { w: 1, carrier: 3, date: NOW })
        });
        let begun = Instant::now();
        let waiting = "SELECT COUNT(*) FROM information_schema.innodb_trx \
                       WHERE trx_state = 'LOCK WAIT'";
        // InnoDB looks again only where it was not asked for a tenth of a second.
        while conn.query_first(waiting).unwrap() != Some(1) {
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "no terminal waits for the new order"
            );
            std::thread::sleep(Duration::from_millis(150));
        }
        conn.query_drop("COMMIT").unwrap();
        let done = Outcome::Committed(DeliveryDone { delivered: DISTRICTS, skipped: 0 }, ());
        assert_eq!(delivery.join().unwrap().unwrap(), done);
    });
}

#[test]
fn whole_runs_in_sql() {
    let Some(server) = Server::start() else { return };
    assert!(server.open(Isolation::Snapshot).is_err(), "SQL has no such level");
    let levels = [Isolation::RepeatableRead, Isolation::ReadCommitted, Isolation::Serializable];
    for (isolation, reused) in levels.into_iter().zip([false, true, true]) {
        let backend = server.open(isolation).unwrap();
        let mut asked = super::runs::options("4:2s", false);
        asked.scale = tiny(2);
        let (stop, clock, mut out) = (AtomicBool::new(false), SystemClock::new(), Vec::new());
        let about = backend.describe().to_owned();
        let ran = run(&backend, &backend, &asked, &about, None, &clock, &stop, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let RunOutcome::Done(report) = ran else { panic!("not interrupted") };
        assert!(report.report.verified, "{text}");
        assert!(report.types.values().all(|figures| figures.count > 0), "{text}");
        assert_eq!(text.contains("using the 2 warehouses"), reused, "{text}");
    }
}
