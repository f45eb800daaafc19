//! Lies of a store: replies of the right form that are not what was asked for.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a store says instead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lie {
    /// The same range of another pack.
    OtherObject,
    /// Another range, under the name of the right one.
    OtherRange,
    /// Another range, under its own name.
    NamedRange,
    /// Fewer bytes, with their length.
    Shorter,
    /// More bytes, with their length.
    Longer,
    /// Bytes until the reader has enough of them.
    Endless,
    /// Success, with the text of an error.
    ErrorBody,
}

impl Lie {
    pub const ALL: [Self; 7] = [
        Self::OtherObject,
        Self::OtherRange,
        Self::NamedRange,
        Self::Shorter,
        Self::Longer,
        Self::Endless,
        Self::ErrorBody,
    ];

    /// What is asked of the server instead.
    pub fn request(self, head: &str) -> String {
        match self {
            Self::OtherObject => head.replacen("packs/0000000100000000", "packs/0000000100000001", 1),
            Self::OtherRange | Self::NamedRange => shifted(head),
            _ => head.to_owned(),
        }
    }

    /// What is replied.
    pub fn reply(self, asked: &str, head: &[u8], body: &[u8]) -> Vec<u8> {
        let head = String::from_utf8_lossy(head);
        match self {
            Self::OtherRange => with_head(&named(&head, asked), body),
            Self::Shorter => with_head(&head, &body[..body.len() / 2]),
            Self::Longer => with_head(&head, &[body, body].concat()),
            Self::ErrorBody => {
                with_head(&head, b"<Error><Code>InternalError</Code><Message>on purpose</Message></Error>")
            }
            _ => [head.as_bytes(), body].concat(),
        }
    }
}

/// The bounds in the range of a request.
fn range_of(head: &str) -> Option<(u64, u64)> {
    let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with("range:"))?;
    let (start, end) = line.split_once("bytes=")?.1.trim().split_once('-')?;
    Some((start.parse().ok()?, end.parse().ok()?))
}

fn shifted(head: &str) -> String {
    let Some((start, end)) = range_of(head) else { return head.to_owned() };
    head.replacen(&format!("bytes={start}-{end}"), &format!("bytes={}-{}", start + 8, end + 8), 1)
}

/// The head of a reply that names the range that was asked for.
fn named(head: &str, asked: &str) -> String {
    let Some((start, end)) = range_of(asked) else { return head.to_owned() };
    let lines =
        head.split("\r\n").map(|line| match line.to_ascii_lowercase().starts_with("content-range:") {
            true => format!("Content-Range: bytes {start}-{end}/9999999"),
            false => line.to_owned(),
        });
    lines.collect::<Vec<_>>().join("\r\n")
}

/// A reply whose length is that of its body.
fn with_head(head: &str, body: &[u8]) -> Vec<u8> {
    let lines =
        head.split("\r\n").map(|line| match line.to_ascii_lowercase().starts_with("content-length:") {
            true => format!("Content-Length: {}", body.len()),
            false => line.to_owned(),
        });
    let head = lines.collect::<Vec<_>>().join("\r\n");
    [head.as_bytes(), body].concat()
}

/// Bytes that readers of replies without end have taken, in all.
pub static TAKEN: AtomicU64 = AtomicU64::new(0);

pub fn send_without_end(mut client: TcpStream) -> io::Result<()> {
    let head =
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-9999998/9999999\r\nConnection: close\r\n\r\n";
    client.write_all(head.as_bytes())?;
    loop {
        client.write_all(&[7; 65_536])?;
        TAKEN.fetch_add(65_536, Ordering::Relaxed);
    }
}
