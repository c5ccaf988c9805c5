//! An HTTP service over a store: `GET`, `PUT` and `DELETE` of `/key`, a thread for each connection.
//! Given an address it serves for ever; without one it asks itself a few things and ends.
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use weirdb::{Db, Error, Tree};

/// A body longer than this is refused.
const BODY_MAX: usize = 1 << 20;

fn answer(tree: &Tree, method: &str, key: &str, body: &[u8]) -> Result<(u16, Vec<u8>), Error> {
    Ok(match method {
        "GET" => match tree.get(key)? {
            Some(value) => (200, value.into_vec()),
            None => (404, b"there is none".to_vec()),
        },
        "PUT" => {
            tree.put(key, body)?;
            (204, Vec::new())
        }
        "DELETE" => (if tree.remove(key)? { 204 } else { 404 }, Vec::new()),
        _ => (405, b"GET, PUT or DELETE".to_vec()),
    })
}

fn status(e: &Error) -> u16 {
    match e {
        Error::InvalidInput(_) => 400,
        Error::Conflict(_) => 409,
        Error::DiskFull { .. } => 507,
        _ => 503,
    }
}

fn serve(tree: &Tree, connection: &TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(connection);
    loop {
        let mut line = String::new();
        if reader.by_ref().take(8192).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut words = line.split_whitespace();
        let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or("/"));
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.by_ref().take(8192).read_line(&mut header)?;
            let Some((name, value)) = header.trim_end().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().unwrap_or(usize::MAX);
            }
        }
        if length > BODY_MAX {
            return write!(&*connection, "HTTP/1.1 413 .\r\ncontent-length: 0\r\n\r\n");
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let key = path.trim_start_matches('/');
        let done = answer(tree, method, key, &body);
        let (code, text) = done.unwrap_or_else(|e| (status(&e), e.to_string().into_bytes()));
        write!(&*connection, "HTTP/1.1 {code} .\r\ncontent-length: {}\r\n\r\n", text.len())?;
        (&*connection).write_all(&text)?;
    }
}

/// Asks as a client does: the code and the body.
fn ask(to: SocketAddr, method: &str, path: &str, body: &str) -> io::Result<(u16, String)> {
    let mut connection = TcpStream::connect(to)?;
    let length = body.len();
    write!(connection, "{method} {path} HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{body}")?;
    connection.shutdown(std::net::Shutdown::Write)?;
    let mut text = String::new();
    connection.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    Ok((code, body.to_string()))
}

pub(crate) fn main() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let db = Db::open(dir.path().join("store")).map_err(Error::from)?;
    let tree = db.open_tree("pages")?;
    let forever = std::env::args().nth(1).filter(|address| address.contains(':'));
    let listener = TcpListener::bind(forever.as_deref().unwrap_or("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    println!("http://{address}/");
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let tree = tree.clone();
            thread::spawn(move || serve(&tree, &connection));
        }
    });
    if forever.is_some() {
        loop {
            thread::park();
        }
    }
    assert_eq!(ask(address, "GET", "/heron", "")?.0, 404);
    assert_eq!(ask(address, "PUT", "/heron", "grey")?.0, 204);
    assert_eq!(ask(address, "GET", "/heron", "")?, (200, "grey".to_string()));
    assert_eq!(ask(address, "DELETE", "/heron", "")?.0, 204);
    assert_eq!(ask(address, "DELETE", "/heron", "")?.0, 404);
    assert_eq!(ask(address, "PUT", &format!("/{}", "x".repeat(4000)), "too long")?.0, 400);
    assert_eq!(ask(address, "POST", "/heron", "")?.0, 405);
    Ok(db.close()?)
}
