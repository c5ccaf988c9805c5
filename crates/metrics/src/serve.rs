//! A small HTTP server that no client can hold up: so many connections at a time, each for so long
//! and with a request of so many bytes. One answer a connection; what it reads of a request are
//! method, target and host (RFC 9112).
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Connections at a time; one more is closed at once.
const CONNECTIONS_MAX: usize = 16;
/// From its acceptance on, a connection lasts no longer.
const CONNECTION_SECONDS: u64 = 10;
/// A request's line and headers are no longer.
const HEAD_BYTES_MAX: usize = 8 << 10;
const HEADERS_MAX: usize = 64;
/// What a client sends behind its request is read for so long, so that it gets its answer.
const LINGER_MICROS: u64 = 100_000;

/// What is asked.
pub struct Request {
    /// GET, as a rule.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The header of this name.
    pub host: Option<String>,
}

/// What is answered.
pub struct Response {
    /// As RFC 9110 has them.
    pub status: u16,
    /// The type of its content.
    pub kind: &'static str,
    /// Its content.
    pub body: String,
}

/// Serves until it is dropped.
pub struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Begins to listen and to answer, with a thread of that name and one for each connection.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub fn start(
        address: SocketAddr,
        name: &str,
        answer: impl Fn(&Request) -> Response + Send + Sync + 'static,
    ) -> Result<Server> {
        Server::start_for(address, name, Duration::from_secs(CONNECTION_SECONDS), answer)
    }

    fn start_for(
        address: SocketAddr,
        name: &str,
        lasts: Duration,
        answer: impl Fn(&Request) -> Response + Send + Sync + 'static,
    ) -> Result<Server> {
        let listening = || format!("cannot listen on {address}");
        let listener = TcpListener::bind(address).with_context(listening)?;
        let address = listener.local_addr().with_context(listening)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, open, answer) =
            (stop.clone(), Arc::new(AtomicUsize::new(0)), Arc::new(answer));
        let thread = std::thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(stream) = stream else {
                    // No descriptor is free, say: it may be soon.
                    std::thread::sleep(Duration::from_millis(10));
                    continue;
                };
                if open.fetch_add(1, Ordering::SeqCst) >= CONNECTIONS_MAX {
                    open.fetch_sub(1, Ordering::SeqCst);
                    continue;
                }
                let (answer, count, until) = (answer.clone(), open.clone(), Instant::now() + lasts);
                let serve = move || {
                    // A client that went away needs no answer.
                    let _ = serve(&stream, until, &*answer);
                    let _ = stream.shutdown(Shutdown::Both);
                    count.fetch_sub(1, Ordering::SeqCst);
                };
                if std::thread::Builder::new().name("weir-http".into()).spawn(serve).is_err() {
                    open.fetch_sub(1, Ordering::SeqCst);
                }
            }
        });
        Ok(Server { address, stop, thread: Some(thread.context("starting the http thread")?) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts. An address that stands for all is reached by its loopback.
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        let is_woken = TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| is_woken) {
            let _ = thread.join();
        }
    }
}

fn serve(
    stream: &TcpStream,
    until: Instant,
    answer: &dyn Fn(&Request) -> Response,
) -> io::Result<()> {
    let bad = |status, what: &str| Response {
        status,
        kind: "text/plain; charset=utf-8",
        body: format!("{what}\n"),
    };
    let (response, is_head) = match read_request(stream, until)? {
        Ok(request) => (answer(&request), request.method == "HEAD"),
        Err(status) => (bad(status, "this is no request that is understood here"), false),
    };
    let Response { status, kind, body } = response;
    let reason = match status {
        200 => "OK",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        500 => "Internal Server Error",
        431 => "Request Header Fields Too Large",
        _ => "Bad Request",
    };
    let mut out = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        body.len()
    );
    if !is_head {
        out.push_str(&body);
    }
    write_all(stream, out.as_bytes(), until)?;
    linger(stream, until)
}

/// The request, or the status that says what is wrong with it.
fn read_request(stream: &TcpStream, until: Instant) -> io::Result<Result<Request, u16>> {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    loop {
        stream.set_read_timeout(Some(left(until)?))?;
        let read = (&mut &*stream).read(&mut piece)?;
        if read == 0 {
            return Ok(Err(400));
        }
        head.extend_from_slice(&piece[..read]);
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&head) {
            Ok(httparse::Status::Complete(_)) => {
                let host = request.headers.iter().find(|h| h.name.eq_ignore_ascii_case("host"));
                let host = host.map(|h| String::from_utf8_lossy(h.value).into_owned());
                let text = |part: Option<&str>| part.unwrap_or_default().to_owned();
                let (method, target) = (text(request.method), text(request.path));
                return Ok(Ok(Request { method, target, host }));
            }
            Ok(httparse::Status::Partial) if head.len() < HEAD_BYTES_MAX => {}
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                return Ok(Err(431));
            }
            Err(_) => return Ok(Err(400)),
        }
    }
}

fn write_all(stream: &TcpStream, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        // One that takes a byte now and then takes no longer for all that.
        stream.set_write_timeout(Some(left(until)?))?;
        let written = (&mut &*stream).write(bytes)?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[written..];
    }
    Ok(())
}

/// A connection that is closed with something unread is reset, and the answer may be lost with it.
fn linger(stream: &TcpStream, until: Instant) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    let until = until.min(Instant::now() + Duration::from_micros(LINGER_MICROS));
    let mut piece = [0; 1024];
    loop {
        stream.set_read_timeout(Some(left(until)?))?;
        if (&mut &*stream).read(&mut piece)? == 0 {
            return Ok(());
        }
    }
}

/// The time that is left.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Plain text.
pub const TEXT: &str = "text/plain; charset=utf-8";

/// An answer of this status, kind and body.
#[must_use]
pub fn respond(status: u16, kind: &'static str, body: String) -> Response {
    Response { status, kind, body }
}

/// Whether it asks for nothing to be changed.
#[must_use]
pub fn is_look(request: &Request) -> bool {
    matches!(request.method.as_str(), "GET" | "HEAD")
}

/// Whether the browser means this machine, and not a name that another made up for it.
#[must_use]
pub fn names_this_machine(request: &Request) -> bool {
    let Some(host) = request.host.as_deref() else { return true };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.trim_matches(['[', ']']);
    name == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(lasts: Duration) -> Server {
        let answer = |request: &Request| Response {
            status: 200,
            kind: "text/plain",
            body: format!("{} {} {:?}", request.method, request.target, request.host),
        };
        let address = "127.0.0.1:0".parse().expect("an address");
        Server::start_for(address, "test", lasts, answer).expect("it listens")
    }

    fn ask(server: &Server, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(server.address()).expect("connected");
        let _ = stream.write_all(request);
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    #[test]
    fn a_request_is_answered_and_what_is_none_is_refused() {
        let server = start(Duration::from_secs(60));
        let answer = ask(&server, b"GET /a?b=c HTTP/1.1\r\nhost: here\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\nGET /a?b=c Some(\"here\")"), "{answer}");
        let head = ask(&server, b"HEAD / HTTP/1.0\r\n\r\n");
        assert!(head.contains("Content-Length: 11\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(ask(&server, b"\x16\x03\x01 TLS\r\n\r\n").starts_with("HTTP/1.1 400"));
        let long = [b"GET / HTTP/1.1\r\nx: ".as_slice(), &[b'y'; 20_000]].concat();
        assert!(ask(&server, &long).starts_with("HTTP/1.1 431"));
        let many = [b"GET / HTTP/1.1\r\n".as_slice(), &b"x: y\r\n".repeat(100)].concat();
        assert!(ask(&server, &many).starts_with("HTTP/1.1 431"));
    }

    #[test]
    fn silent_clients_delay_others_only_briefly() {
        let server = start(Duration::from_secs(2));
        let silent: Vec<_> = (0..3 * CONNECTIONS_MAX)
            .map(|_| TcpStream::connect(server.address()).expect("connected"))
            .collect();
        // Those beyond the bound are closed, the others after their time.
        let until = Instant::now() + Duration::from_secs(60);
        while !ask(&server, b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200") {
            assert!(Instant::now() < until, "no client is answered");
            std::thread::sleep(Duration::from_millis(20));
        }
        for mut stream in silent {
            stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
            // The end, or a reset; not the client's own limit.
            let read = stream.read(&mut [0; 16]);
            let timed_out = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut];
            assert!(!read.is_err_and(|e| timed_out.contains(&e.kind())));
        }
        let address = server.address();
        drop(server);
        assert!(TcpStream::connect(address).is_err(), "it listens no more");
    }

    #[test]
    fn one_byte_now_and_then_is_not_enough() {
        let server = start(Duration::from_millis(500));
        let mut stream = TcpStream::connect(server.address()).expect("connected");
        let began = Instant::now();
        while stream.write_all(b"G").is_ok() {
            assert!(began.elapsed() < Duration::from_secs(60), "it may go on for ever");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
