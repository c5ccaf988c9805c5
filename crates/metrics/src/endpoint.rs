//! The endpoint that Prometheus asks: `/metrics`, and nothing else.
use std::net::{SocketAddr, ToSocketAddrs};

use anyhow::{Result, anyhow, bail, ensure};
use weir::Metric;

use crate::openmetrics::{CONTENT_TYPE, exposition};
use crate::serve::{Server, TEXT, is_look, names_this_machine, respond};

/// The address to listen on: loopback, unless `public`.
///
/// # Errors
/// When the text is no address with a port, or others could reach it and nothing says that they
/// may.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    #[test]
    fn others_may_only_look_when_allowed() {
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
            assert!(std::time::Instant::now() < until, "the port is still open");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}
