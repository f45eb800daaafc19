//! Proxy before a server: forwards each request, or makes a fault of it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::lies::Lie;

/// What becomes of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Served,
    /// Refused with 503, not forwarded.
    SlowDown,
    /// Refused because the credentials have expired, not forwarded.
    Expired,
    /// Refused because the credentials do not suffice, not forwarded.
    Forbidden,
    /// Forwarded without its condition, as by a store that knows none.
    Unconditional,
    /// Forwarded; the reply ends in the middle of its body, or of its head if it has none.
    Cut,
    /// Forwarded; the connection ends without a reply.
    Lost,
    /// Served late.
    Late,
    /// A byte of the body is wrong.
    Wrong,
    /// A lie, of the right form.
    Lie(Lie),
}

type Choose = Box<dyn Fn(usize, &str) -> Fate + Send + Sync>;

/// Listens until the test program ends.
pub struct Proxy {
    pub address: SocketAddr,
    choose: Arc<Mutex<Choose>>,
    count: Arc<AtomicUsize>,
}

impl Proxy {
    pub fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let choose: Arc<Mutex<Choose>> = Arc::new(Mutex::new(Box::new(|_, _| Fate::Served)));
        let count = Arc::new(AtomicUsize::new(0));
        let (chosen, counted) = (choose.clone(), count.clone());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (chosen, counted) = (chosen.clone(), counted.clone());
                thread::spawn(move || _ = pass(client, server, &chosen, &counted));
            }
        });
        Self { address, choose, count }
    }

    /// From now on the fate of a request follows from its number and its first line.
    pub fn choose(&self, choose: impl Fn(usize, &str) -> Fate + Send + Sync + 'static) {
        self.count.store(0, Ordering::SeqCst);
        *self.choose.lock().unwrap() = Box::new(choose);
    }

    /// Requests since the last choice.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

/// One request for each connection.
fn pass(
    mut client: TcpStream,
    server: SocketAddr,
    choose: &Mutex<Choose>,
    count: &AtomicUsize,
) -> io::Result<()> {
    let (head, body) = read_request(&mut client)?;
    let line = head.lines().next().unwrap_or_default().to_owned();
    let fate = choose.lock().unwrap()(count.fetch_add(1, Ordering::SeqCst), &line);
    match fate {
        Fate::SlowDown => return refuse(&mut client, "503 Service Unavailable", "SlowDown"),
        Fate::Expired => return refuse(&mut client, "400 Bad Request", "ExpiredToken"),
        Fate::Forbidden => return refuse(&mut client, "403 Forbidden", "AccessDenied"),
        Fate::Late => thread::sleep(Duration::from_millis(300)),
        _ => {}
    }
    if fate == Fate::Lie(Lie::Endless) {
        return super::lies::send_without_end(client);
    }
    let asked = if fate == Fate::Unconditional { without_condition(&head) } else { head.clone() };
    let asked = if let Fate::Lie(lie) = fate { lie.request(&head) } else { asked };
    let mut reply = forward(server, &asked, &body)?;
    let len = reply.len();
    let body_at = reply.windows(4).position(|four| four == b"\r\n\r\n").map_or(reply.len(), |at| at + 4);
    match fate {
        Fate::Lost => return Ok(()),
        Fate::Cut => reply.truncate(if len > body_at { (body_at + len) / 2 } else { 10 }),
        Fate::Wrong if len > body_at => reply[(body_at + len) / 2] ^= 1,
        Fate::Lie(lie) => reply = lie.reply(&head, &reply[..body_at], &reply[body_at..]),
        _ => {}
    }
    client.write_all(&reply)
}

fn read_request(client: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 65536];
    let end = loop {
        let count = client.read(&mut buffer)?;
        bytes.extend_from_slice(&buffer[..count]);
        match bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            Some(end) => break end + 4,
            None if count == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            None => {}
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let mut body = bytes.split_off(end);
    let have = body.len();
    body.resize(length.unwrap_or(0).max(have), 0);
    client.read_exact(&mut body[have..])?;
    Ok((head, body))
}

/// The reply to a request, read until the server closes.
fn forward(server: SocketAddr, head: &str, body: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server)?;
    let head = head.trim_end_matches("\r\n");
    stream.write_all(format!("{head}\r\nConnection: close\r\n\r\n").as_bytes())?;
    stream.write_all(body)?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply)?;
    Ok(reply)
}

fn without_condition(head: &str) -> String {
    let is_kept = |line: &&str| !line.to_ascii_lowercase().starts_with("if-none-match");
    head.split("\r\n").filter(is_kept).collect::<Vec<_>>().join("\r\n")
}

fn refuse(client: &mut TcpStream, status: &str, code: &str) -> io::Result<()> {
    let body = format!("<Error><Code>{code}</Code><Message>on purpose</Message></Error>");
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    client.write_all((head + &body).as_bytes())
}
