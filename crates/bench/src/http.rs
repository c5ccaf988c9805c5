//! The run as it goes on, for a browser and for Prometheus: three pages, read only, on a thread of
//! their own.
use crate::feed::{Feed, Recorded};
use crate::locked::locked;
use crate::page::{Page, Run};
use anyhow::Result;
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::Mutex;
use weir_metrics::openmetrics::{CONTENT_TYPE, exposition};
use weir_metrics::serve::{Request, Response, Server, TEXT, is_look, names_this_machine, respond};

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

const HTML: &str = "text/html; charset=utf-8";

impl Served {
    fn answer(&self, request: &Request) -> Response {
        if !is_look(request) {
            return respond(405, TEXT, "this can only be looked at\n".to_owned());
        }
        if !self.public && !names_this_machine(request) {
            // A page of another site whose own name points here must not read this.
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
    use weir_metrics::endpoint::parse_address;

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
}
