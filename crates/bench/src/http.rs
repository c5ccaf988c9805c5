//! The run as it goes on, for a browser and for Prometheus: three pages, read only, on a thread of
//! their own.
use crate::feed::{Feed, Recorded};
use crate::locked::locked;
use crate::openmetrics::{CONTENT_TYPE, exposition};
use crate::page::{Page, Run};
use crate::serve::{Request, Response, Server};
use anyhow::{Result, anyhow, bail, ensure};
use serde::Serialize;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Mutex;
use weir::Metric;

/// Serves a run until it is dropped.
pub struct Live {
    server: Server,
}

/// What is served: the page without its rows, which come from the feed.
struct Served {
    page: Mutex<Page>,
    feed: Feed,
    /// Whether others than this machine may look.
    public: bool,
}

/// What the page asks for every second.
#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    recorded: Recorded,
    tiles: Vec<(String, String)>,
}

/// The address to listen on: loopback, unless `public`.
///
/// # Errors
/// When the text is no address with a port, or others could reach it and nobody said that they may.
pub fn parse_address(text: &str, public: bool) -> Result<SocketAddr> {
    let with_host =
        if text.starts_with(':') { format!("127.0.0.1{text}") } else { text.to_owned() };
    let port_only = text.parse::<u16>().map(|port| format!("127.0.0.1:{port}"));
    let text = port_only.unwrap_or(with_host);
    let mut found = text.to_socket_addrs().map_err(|error| {
        anyhow!("'{text}' is no address: {error}; write 127.0.0.1:9600, [::1]:9600, :9600 or 9600")
    })?;
    let Some(address) = found.next() else { bail!("'{text}' is the address of nothing") };
    ensure!(
        public || address.ip().is_loopback(),
        "{address} can be reached from other machines, and there is no password; --http-public \
         allows it, or choose 127.0.0.1:{} or [::1]:{}",
        address.port(),
        address.port()
    );
    Ok(address)
}

impl Live {
    /// Begins to serve `feed` under the title of `page`.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub fn start(address: SocketAddr, public: bool, page: Page, feed: Feed) -> Result<Live> {
        let run = Run { name: page.title.clone(), ..Run::default() };
        let page = Page { live: true, runs: vec![run.json()], ..page };
        let served = Served { page: Mutex::new(page), feed, public };
        let server = Server::start(address, "weir-http", move |request| served.answer(request))?;
        Ok(Live { server })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }
}

/// Serves a database's metrics to Prometheus, and nothing else, until it is dropped.
pub struct MetricsServer {
    server: Server,
}

impl MetricsServer {
    /// Begins to serve what `gather` says, at `/metrics`, to this machine alone.
    ///
    /// # Errors
    /// When the address is not this machine's own, or cannot be listened on.
    pub fn start(
        address: &str,
        gather: impl Fn() -> Vec<(Metric, f64)> + Send + Sync + 'static,
    ) -> Result<MetricsServer> {
        let address = parse_address(address, false)?;
        let server = Server::start(address, "weir-metrics", move |request| {
            if !is_look(request) {
                respond(405, TEXT, "this can only be looked at\n".to_owned())
            } else if !names_this_machine(request) {
                respond(403, TEXT, "ask for this machine by its address\n".into())
            } else if request.target == "/metrics" {
                respond(200, CONTENT_TYPE, exposition(&gather()))
            } else {
                respond(404, TEXT, "there is /metrics\n".to_owned())
            }
        })?;
        Ok(MetricsServer { server })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }
}

fn respond(status: u16, kind: &'static str, body: String) -> Response {
    Response { status, kind, body }
}

/// Whether it asks for nothing to be changed.
fn is_look(request: &Request) -> bool {
    matches!(request.method.as_str(), "GET" | "HEAD")
}

const HTML: &str = "text/html; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

impl Served {
    fn answer(&self, request: &Request) -> Response {
        if !is_look(request) {
            return respond(405, TEXT, "this can only be looked at\n".to_owned());
        }
        if !self.public && !names_this_machine(request) {
            // A page of somebody else's that has its own name point here must not read this.
            return respond(403, TEXT, "ask for this machine by its address\n".to_owned());
        }
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        match path {
            "/" | "/index.html" => {
                let html = locked(&self.page).html();
                respond(200, HTML, html)
            }
            "/data.json" => {
                let from = query.strip_prefix("from=").and_then(|from| from.parse().ok());
                let recorded = self.feed.recorded(from.unwrap_or(0));
                let answer = Answer { tiles: tiles(&self.feed), recorded };
                match serde_json::to_string(&answer) {
                    Ok(json) => respond(200, "application/json", json),
                    Err(error) => respond(500, TEXT, format!("{error}\n")),
                }
            }
            "/metrics" => {
                let text = exposition(&self.feed.latest());
                respond(200, CONTENT_TYPE, text)
            }
            _ => respond(404, TEXT, "there are /, /data.json and /metrics\n".to_owned()),
        }
    }
}

/// Whether the browser means this machine, and not a name that somebody else made up for it.
fn names_this_machine(request: &Request) -> bool {
    let Some(host) = request.host.as_deref() else { return true };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.trim_matches(['[', ']']);
    name == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// A few figures of the last second.
fn tiles(feed: &Feed) -> Vec<(String, String)> {
    let latest = feed.latest();
    let get = |name: &str| latest.iter().find(|(metric, _)| metric.name == name).map(|(_, v)| *v);
    let part = |name, whole| match (get(name), get(whole)) {
        (Some(part), Some(whole)) if whole > 0.0 => format!("{:.1} %", 100.0 * part / whole),
        _ => "-".to_owned(),
    };
    let count = |name| get(name).map_or("-".to_owned(), |v| crate::line::thousands(v as u64));
    let micros = |name| get(name).map_or("-".to_owned(), |v| crate::line::micros((v * 1e6) as u64));
    let warm = get("weir_bench_warm_up_state") == Some(1.0);
    let tps = if warm { "transactions/s (warm-up)" } else { "transactions/s" };
    [
        (count("weir_bench_rate_transactions"), tps),
        (
            part("weir_checkpoint_age_bytes", "weir_checkpoint_age_limit_bytes"),
            "checkpoint age of its limit",
        ),
        (count("weir_pool_dirty_pages"), "dirty pages"),
        (part("weir_pool_free_pages", "weir_pool_pages"), "of the pool free"),
        (micros("weir_bench_latency_p99_seconds"), "p99 latency"),
        (micros("weir_bench_latency_max_seconds"), "longest in this second"),
    ]
    .into_iter()
    .map(|(value, label)| (value, label.to_owned()))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    #[test]
    fn others_may_only_look_when_told_so() {
        for text in ["127.0.0.1:9600", ":9600", "9600", "[::1]:9600", "localhost:9600"] {
            assert!(parse_address(text, false).unwrap().ip().is_loopback(), "{text}");
        }
        for text in ["0.0.0.0:9600", "[::]:9600", "192.0.2.7:9600"] {
            let error = parse_address(text, false).unwrap_err().to_string();
            assert!(error.contains("--http-public") && error.contains("127.0.0.1:9600"), "{error}");
            assert!(parse_address(text, true).is_ok(), "{text}");
        }
        for text in ["", "9600000", "nonsense", "127.0.0.1"] {
            assert!(parse_address(text, true).is_err(), "{text}");
        }
    }

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn three_pages_read_only_for_this_machine() {
        let address = parse_address(":0", false).unwrap();
        let live = Live::start(address, false, Page::default(), Feed::default()).unwrap();
        let get = |method: &str, path: &str, host: &str| {
            let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n");
            ask(live.address(), &format!("{head}Connection: close\r\n\r\n"))
        };
        assert!(get("GET", "/", "localhost:1").starts_with("HTTP/1.1 200"));
        let metrics = get("GET", "/metrics", "127.0.0.1");
        assert!(metrics.contains(CONTENT_TYPE) && metrics.contains("# EOF"), "{metrics}");
        assert!(get("GET", "/data.json?from=99", "[::1]:80").contains("\"from\":0"));
        assert!(get("GET", "/etc/passwd", "localhost").starts_with("HTTP/1.1 404"));
        assert!(get("POST", "/", "localhost").starts_with("HTTP/1.1 405"));
        assert!(get("GET", "/", "evil.example").starts_with("HTTP/1.1 403"));
        drop(live);
        assert!(TcpStream::connect(address).is_err(), "port 0 was never listened on");
    }

    #[test]
    fn metrics_alone_for_this_machine_alone() {
        assert!(MetricsServer::start("0.0.0.0:0", Vec::new).is_err());
        let metric = || Metric {
            name: "weir_redo_bytes".to_owned(),
            kind: weir::MetricKind::Counter,
            unit: "bytes",
            help: "what it tells",
        };
        let server = MetricsServer::start(":0", move || vec![(metric(), 7.0)]).unwrap();
        let address = server.address();
        let get = |path: &str, host: &str| {
            let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n");
            ask(address, &format!("{head}Connection: close\r\n\r\n"))
        };
        assert!(get("/metrics", "localhost:1").contains("weir_redo_bytes_total 7\n"));
        assert!(get("/", "localhost").starts_with("HTTP/1.1 404"));
        assert!(get("/metrics", "evil.example").starts_with("HTTP/1.1 403"));
        drop(server);
        // The library's own thread, which accepts, ends a moment later.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while TcpStream::connect(address).is_ok() {
            assert!(std::time::Instant::now() < until, "somebody listens still");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}
