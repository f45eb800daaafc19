//! Entry points of fuzz targets: any bytes that a store sends, or a file of credentials has, must be read without a panic.
#![allow(clippy::expect_used, reason = "what it prepares itself does not fail")]

use std::cell::LazyCell;

use bytes::Bytes;
use hyper::header::RANGE;
use hyper::{Method, Request};
use object_store::client::{HttpRequest, HttpRequestBody};
use tokio::runtime::{Builder, Runtime};

use crate::credentials;
use crate::http::Canned;
use crate::store::read_any_reply;
use crate::{S3Config, reader};

thread_local! {
    static RUNTIME: LazyCell<Runtime> = LazyCell::new(|| {
        Builder::new_current_thread().enable_time().build().expect("a runtime without sockets")
    });
}

/// Most bytes of a body that a reader of four bytes takes.
const MOST: usize = 1000;

/// What a store replies, over HTTP, to each request of a bucket and to a read by a signed address. The first byte chooses: the bytes
/// are the whole reply, or the body of one with a right head, and then the second byte chooses the status.
pub fn store_replies(bytes: &[u8]) {
    let Some((choice, rest)) = bytes.split_first() else { return };
    let reply: Bytes = match choice % 3 {
        0 => rest.to_vec().into(),
        1 => with_head(rest, "").into(),
        _ => with_head(rest, "Content-Range: bytes 24-27/100\r\n").into(),
    };
    RUNTIME.with(|runtime| runtime.block_on(accepted(reply)));
}

fn with_head(rest: &[u8], more: &str) -> Vec<u8> {
    let (status, body) = rest.split_first().unwrap_or((&0, &[]));
    let statuses =
        ["200 OK", "206 Partial", "404 None", "412 Not", "503 Slow", "403 No", "301 Else", "400 Bad"];
    let status = statuses[usize::from(*status) % statuses.len()];
    let length = body.len();
    let dates = "Last-Modified: Sat, 21 Nov 2026 10:00:00 GMT\r\nETag: \"a\"\r\n";
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{dates}{more}\r\n");
    [head.as_bytes(), body].concat()
}

/// Whether a get, a listing, a put, a delete and a read by an address accept a reply.
async fn accepted(reply: Bytes) -> [bool; 5] {
    let [get, list, put, delete] =
        read_any_reply(reply.clone(), &config()).await.map(|failed| failed.is_none());
    let exchanged = Canned(reply).exchange(request(), MOST).await;
    let read = reader::range_of(exchanged, 4);
    assert!(
        read.as_ref().is_ok_and(|bytes| bytes.len() == 4) || read.is_err(),
        "another length than the range"
    );
    [get, list, put, delete, read.is_ok()]
}

fn request() -> HttpRequest {
    let request =
        Request::builder().method(Method::GET).uri("https://s3.example.org/b/k").header(RANGE, "bytes=24-27");
    request.body(HttpRequestBody::empty()).expect("a sound request")
}

fn config() -> S3Config {
    S3Config {
        address: "s3://andrew/drive".parse().expect("a sound address"),
        endpoint: "https://s3.example.org".parse().expect("a sound endpoint"),
        region: "us-east-1".into(),
        credentials: "/nowhere".into(),
        authority: None,
        allow_clear: false,
    }
}

/// The contents of a file of credentials: the bytes themselves, and as values of the three names.
pub fn store_credentials(bytes: &[u8]) {
    credentials::read_any(bytes);
    let mut values = bytes.split(|byte| *byte == 0);
    let names = [&b"aws_access_key_id="[..], b"\naws_secret_access_key =", b"\naws_session_token= "];
    let lines = names.map(|name| [name, values.next().unwrap_or_default()].concat());
    credentials::read_any(&lines.concat());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What no request accepts would be decoded by none.
    #[test]
    fn right_replies_are_accepted() {
        let accepted = |reply: Vec<u8>| RUNTIME.with(|runtime| runtime.block_on(accepted(reply.into())));
        let range = "Content-Range: bytes 24-27/100\r\n";
        assert_eq!(accepted(with_head(b"\x01abcd", range)), [true, false, true, true, true]);
        let listing = "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>";
        let listed = accepted(with_head(format!("\0{listing}").as_bytes(), ""));
        assert_eq!(listed, [false, true, true, true, false]);
        assert_eq!(accepted(with_head(b"\x04<Code>SlowDown</Code>", "")), [false; 5]);
    }
}
