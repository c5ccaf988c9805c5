//! Reports and the live page in a real browser, metrics in a real Prometheus. Both are Debian
//! packages: `make report-test` installs them and fails without them; elsewhere the parts that need
//! one say that they are skipped.
use crate::{Scratch, ran, signal, small_bench, wait_for_line, weir, with};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The browser makes no window that is narrower.
const WINDOW_MIN: u32 = 500;
/// As wide as a phone, in pixels of a style sheet.
const PHONE: u32 = 390;

/// Whether a program is there; missing where it must not be is a failure.
fn has(program: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    let required = std::env::var_os("WEIR_REPORT_TEST").is_some();
    assert!(found || !required, "{program} is not installed; make report-test installs it");
    if !found {
        eprintln!("SKIPPED: there is no {program} here; make report-test installs it");
    }
    found
}

/// Opens a page in a browser as wide as that; its DOM after the scripts ran, and what was said on
/// the console.
fn browse(url: &str, width: u32) -> (String, String) {
    let profile = tempfile::tempdir().expect("a directory");
    let window = width.max(WINDOW_MIN);
    if window > width {
        // Zoomed in, a window holds as much less: a zoom level is a factor of 1.2.
        let level = (f64::from(window) / f64::from(width)).ln() / 1.2f64.ln();
        let text = format!(r#"{{"partition":{{"default_zoom_level":{{"x":{level}}}}}}}"#);
        let settings = profile.path().join("Default");
        std::fs::create_dir(&settings).expect("a directory");
        std::fs::write(settings.join("Preferences"), text).expect("written");
    }
    let output = Command::new("chromium")
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"])
        .args(["--virtual-time-budget=6000", "--dump-dom"])
        .arg(format!("--window-size={window},1200"))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(url)
        .output()
        .expect("chromium starts");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let console = text(output.stderr);
    let said: Vec<&str> = console.lines().filter(|line| line.contains("CONSOLE")).collect();
    (text(output.stdout), said.join("\n"))
}

fn attribute(dom: &str, name: &str) -> u64 {
    let (_, rest) = dom.split_once(&format!("data-{name}=\"")).unwrap_or_else(|| {
        panic!("the page did not come to its end: no {name} in {}", &dom[..dom.len().min(400)])
    });
    rest.split('"').next().and_then(|value| value.parse().ok()).expect("a number")
}

fn all_is_drawn(url: &str, width: u32) -> String {
    let (dom, console) = browse(url, width);
    assert_eq!(console, "", "nothing on the console at {width}");
    assert_eq!(attribute(&dom, "errors"), 0, "at {width}");
    assert_eq!(
        attribute(&dom, "width"),
        u64::from(width),
        "the window is as wide as was asked for"
    );
    assert_eq!(attribute(&dom, "charts"), 7, "at {width}");
    assert_eq!(attribute(&dom, "painted"), 7, "at {width}");
    assert_eq!(attribute(&dom, "overflow"), 0, "it fits a window {width} wide");
    dom
}

fn reported(dir: &str, report: &str) -> Vec<String> {
    let mut words = with(small_bench("update", dir), "--threads", "1:2s,4:2s");
    words.extend(["--report".to_owned(), report.to_owned()]);
    words
}

#[test]
fn a_report_shows_everything_and_is_never_replaced_unasked() {
    let scratch = Scratch::new();
    let (dir, path) = (scratch.text("db"), scratch.text("r.html"));
    let ran_once = ran(&mut weir(reported(&dir, &path)));
    assert_eq!(ran_once.code, Some(0), "{ran_once:#?}");
    let html = std::fs::read_to_string(&path).expect("a report");
    for part in ["weir bench update", "--threads 1:2s,4:2s", "weir_checkpoint_age_bytes", "16 MiB"]
    {
        assert!(html.contains(part), "{part}");
    }
    let again = ran(&mut weir(reported(&dir, &path)));
    assert_eq!(again.code, Some(2), "{again:#?}");
    assert!(again.err.contains("exists; --force"), "{}", again.err);
    assert_eq!(std::fs::read_to_string(&path).expect("still there"), html);
    if has("chromium") {
        let url = format!("file://{path}");
        let dom = all_is_drawn(&url, 1400);
        for shown in ["Checkpoint age", "phase 2, 4 threads", "rows read back", "p99.9"] {
            assert!(dom.contains(shown), "{shown}");
        }
        all_is_drawn(&url, PHONE);
    }
}

/// A bench that serves its page, and where.
fn serving(dir: &str) -> (std::process::Child, impl Read + use<>, String) {
    let mut command = weir(small_bench("update", dir));
    command.args(["--seconds", "600", "--http", "0"]);
    let mut child = command.spawn().expect("it starts");
    let (out, rest) = wait_for_line(&mut child, "    3 s ");
    let at = out.lines().find_map(|line| line.strip_prefix("live        "));
    let url = at.and_then(|line| line.split_whitespace().next()).expect("it says where");
    (child, rest, url.to_owned())
}

#[test]
fn the_live_page_moves() {
    let scratch = Scratch::new();
    let (mut child, mut rest, url) = serving(&scratch.text("db"));
    if has("chromium") {
        let dom = all_is_drawn(&url, 1400);
        assert!(dom.contains(">live<"), "it says that it is live");
        assert!(!dom.contains(">Nothing was measured yet"), "it no longer waits");
        all_is_drawn(&url, PHONE);
    }
    signal(&child, "-INT");
    let mut out = String::new();
    rest.read_to_string(&mut out).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "{out}");
}

#[test]
fn the_live_page_says_why_it_shows_nothing() {
    if !has("chromium") {
        return;
    }
    let scratch = Scratch::new();
    let mut words = with(small_bench("update", &scratch.text("db")), "--rows", "30000000");
    words.extend(["--http", "0"].map(str::to_owned));
    let child = weir(words).spawn();
    let mut child = Killed(child.expect("it starts"));
    let (out, _rest) = wait_for_line(&mut child.0, "live        ");
    let url = out.split_whitespace().find(|word| word.starts_with("http://")).expect("an address");
    let (dom, console) = browse(url, PHONE);
    assert!(dom.contains(">Nothing was measured yet"), "{dom}");
    assert_eq!(console, "");
}

/// Asks Prometheus until it has an answer that contains `what`.
fn ask_prometheus(port: u16, path: &str, what: &str) -> String {
    let until = Instant::now() + Duration::from_secs(40);
    let mut answer = String::new();
    while Instant::now() < until {
        let asked = std::net::TcpStream::connect(("127.0.0.1", port)).and_then(|mut stream| {
            use std::io::Write;
            write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            Ok(text)
        });
        answer = asked.unwrap_or_default();
        if answer.contains(what) {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(300));
    }
    panic!("no '{what}' at {path}: {answer}");
}

struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn prometheus_reads_the_metrics() {
    if !has("prometheus") || !has("promtool") {
        return;
    }
    let scratch = Scratch::new();
    let (child, _rest, url) = serving(&scratch.text("db"));
    let _bench = Killed(child);
    let target = url.trim_start_matches("http://").trim_end_matches('/');
    let config = format!(
        "global:\n  scrape_interval: 1s\nscrape_configs:\n  - job_name: weir\n    \
         static_configs:\n      - targets: ['{target}']\n"
    );
    let config_path = scratch.path("prometheus.yml");
    std::fs::write(&config_path, config).expect("written");
    let checked = Command::new("promtool").args(["check", "config"]).arg(&config_path).output();
    assert!(checked.expect("promtool runs").status.success());
    let port = free_port();
    let prometheus = Command::new("prometheus")
        .arg(format!("--config.file={}", config_path.display()))
        .arg(format!("--storage.tsdb.path={}", scratch.text("tsdb")))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("prometheus starts");
    let _prometheus = Killed(prometheus);
    let targets = ask_prometheus(port, "/api/v1/targets", "\"health\":\"up\"");
    assert!(targets.contains("\"lastError\":\"\""), "{targets}");
    ask_prometheus(port, "/api/v1/query?query=weir_checkpoint_age_bytes", "\"value\":");
    // A counter, and one that is declared in another crate, in seconds.
    ask_prometheus(port, "/api/v1/query?query=rate(weir_redo_bytes_total[10s])", "\"value\":");
    ask_prometheus(port, "/api/v1/query?query=weir_admission_wait_seconds_total", "\"value\":");
    let metadata = "/api/v1/targets/metadata?metric=weir_checkpoint_age_bytes";
    let known = ask_prometheus(port, metadata, "\"unit\":\"bytes\"");
    assert!(known.contains("\"type\":\"gauge\"") && known.contains("redo between"), "{known}");
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}

/// Every metric that the dashboard asks for is one that the endpoint has.
#[test]
fn the_dashboard_asks_for_what_there_is() {
    let scratch = Scratch::new();
    let (child, _rest, url) = serving(&scratch.text("db"));
    let _bench = Killed(child);
    let port = url.trim_end_matches('/').rsplit(':').next().and_then(|port| port.parse().ok());
    let metrics = ask_prometheus(port.expect("a port"), "/metrics", "# EOF");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/grafana/weir.json");
    let text = std::fs::read_to_string(path).expect("the dashboard");
    let dashboard: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut asked = 0;
    for panel in panels {
        for target in panel["targets"].as_array().expect("targets") {
            let query = target["expr"].as_str().expect("a query");
            let words = query.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            for name in words.filter(|word| word.starts_with("weir_")) {
                asked += 1;
                assert!(metrics.contains(&format!("\n{name} ")), "{name} of {}", panel["title"]);
            }
        }
    }
    assert!(asked >= 12, "{asked} metrics asked for");
}

/// Half a minute, and nothing about the figure itself: that is not for a busy machine to say.
#[test]
fn the_cost_of_being_watched_has_its_bounds() {
    if std::env::var_os("WEIR_REPORT_TEST").is_none() {
        eprintln!("SKIPPED: what being watched costs is measured by make report-test");
        return;
    }
    let scratch = Scratch::new();
    let ran = ran(&mut weir(["lab", "cost", "--rounds", "6", "--dir", &scratch.text("lab")]));
    assert!(matches!(ran.code, Some(0 | 1)), "{ran:#?}");
    for part in ["24 answers; alone ", "% lost, between ", "6 rounds", "1 %"] {
        assert!(ran.out.contains(part), "{part}: {ran:#?}");
    }
}
