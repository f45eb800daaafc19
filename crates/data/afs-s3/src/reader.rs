//! Reads of ranges of objects by signed addresses that another host gave, which may name anything.

use std::future::Future;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use hyper::header::RANGE;
use hyper::http::response::Parts;
use hyper::{Method, Request, StatusCode, Uri};
use object_store::client::{HttpError, HttpErrorKind, HttpRequest, HttpRequestBody};
use parking_lot::Mutex;
use tokio_rustls::TlsConnector;

use crate::ConfigError;
use crate::address::Endpoint;
use crate::http::{Connections, Reach};
use crate::signing::range_header;
use crate::tls;
use crate::worker::Worker;

/// Longest range of one read, in bytes: the longest chunk.
const RANGE_MAX: u64 = 4 << 20;
/// Longest body of a refusal that is read, so that its connection serves the next request.
const REFUSAL_MAX: usize = 16 << 10;
/// Most endpoints to which connections are kept.
const ENDPOINTS_MAX: usize = 8;

/// What may be read, beside objects of other hosts over TLS.
#[derive(Clone, Debug, Default)]
pub struct ReaderOptions {
    /// Certificates (PEM) of the authorities that a store's certificate is verified by. Default: those of the system.
    pub authority: Option<PathBuf>,
    /// Endpoints that may be read without TLS, or at an address of this machine. Default: none.
    pub allowed: Vec<Endpoint>,
}

/// Why a range was not read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The address is none, or names a store that is not to be used.
    #[error("its address is not one that may be used here")]
    Forbidden,
    /// No connection was opened.
    #[error("the store cannot be reached: {0}")]
    Unreachable(String),
    /// No complete reply came.
    #[error("no complete reply: {0}")]
    Broken(String),
    /// The store replied something else than the range. A redirection is not followed.
    #[error("the store replied {0}")]
    Status(u16),
    /// The reply has another length than the range.
    #[error("{0} bytes came, which are not the range")]
    Length(usize),
}

/// Reads ranges of objects. Has a thread of its own after the first read; clones are the same.
///
/// A request has no credentials, cookies or other headers than `Host` and `Range`. Stores are used over TLS, at addresses of other
/// hosts, unless the options allow the endpoint.
#[derive(Clone)]
pub struct ObjectReader(Arc<Shared>);

struct Shared {
    options: ReaderOptions,
    tls: OnceLock<Result<TlsConnector, String>>,
    /// Started by the first read, or the first for which the system has a thread.
    worker: Mutex<Option<Worker>>,
    /// The last used is the last.
    pools: Mutex<Vec<(Endpoint, Connections)>>,
}

impl ObjectReader {
    /// # Errors
    /// A file of authorities that was named and cannot be used.
    pub fn new(options: ReaderOptions) -> Result<Self, ConfigError> {
        let shared =
            Shared { tls: OnceLock::new(), worker: Mutex::default(), pools: Mutex::default(), options };
        if let Some(authority) = &shared.options.authority {
            _ = shared.tls.set(Ok(tls::connector(Some(authority))?));
        }
        Ok(Self(Arc::new(shared)))
    }

    /// The bytes of a range that is not empty, all of them. Dropping the reply ends the request.
    ///
    /// # Errors
    /// Why they were not read; nothing that says what the address was.
    pub fn read(
        &self,
        address: &str,
        range: Range<u64>,
    ) -> Pin<Box<dyn Future<Output = Result<Bytes, ReadError>> + Send>> {
        let Some((endpoint, request)) = self.0.request(address, &range) else {
            return Box::pin(async { Err(ReadError::Forbidden) });
        };
        let me = self.0.clone();
        let reading = async move { me.read(endpoint, request, range.end - range.start).await };
        match self.0.run(reading) {
            Ok(running) => {
                Box::pin(async move { running.await.unwrap_or_else(|why| Err(ReadError::Broken(why))) })
            }
            Err(error) => Box::pin(async move { Err(ReadError::Unreachable(error.to_string())) }),
        }
    }
}

impl Shared {
    /// Runs a request on the thread with the sockets.
    fn run<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
        &self,
        request: F,
    ) -> io::Result<impl Future<Output = Result<T, String>> + Send + use<T, F>> {
        let mut worker = self.worker.lock();
        let running = match worker.take() {
            Some(running) => running,
            None => Worker::start()?,
        };
        Ok(worker.insert(running).run(request))
    }

    /// The request for a range, and where it goes; `None` if that is not permitted.
    fn request(&self, address: &str, range: &Range<u64>) -> Option<(Endpoint, HttpRequest)> {
        let (endpoint, uri) = parsed(address)?;
        let is_permitted = endpoint.secure || self.options.allowed.contains(&endpoint);
        let length = range.end.checked_sub(range.start)?;
        if !is_permitted || length == 0 || length > RANGE_MAX {
            return None;
        }
        let request = Request::builder().method(Method::GET).uri(uri).header(RANGE, range_header(range));
        Some((endpoint, request.body(HttpRequestBody::empty()).ok()?))
    }

    async fn read(&self, endpoint: Endpoint, request: HttpRequest, length: u64) -> Result<Bytes, ReadError> {
        let pool = self.pool(endpoint)?;
        let most = usize::try_from(length).unwrap_or(usize::MAX).max(REFUSAL_MAX);
        let exchanged = match pool.exchange(request.clone(), most).await {
            // Perhaps an idle connection that the store was about to close.
            Err(error) if error.kind() != HttpErrorKind::Connect => {
                pool.close_idle();
                pool.exchange(request, most).await
            }
            exchanged => exchanged,
        };
        range_of(exchanged, length)
    }

    /// The connections to an endpoint. For a new one those of the endpoint are dropped that was not used for longest, if there are
    /// too many.
    fn pool(&self, endpoint: Endpoint) -> Result<Connections, ReadError> {
        let mut pools = self.pools.lock();
        if let Some(place) = pools.iter().position(|(known, _)| *known == endpoint) {
            let found = pools.remove(place);
            pools.push(found.clone());
            return Ok(found.1);
        }
        let tls = match endpoint.secure {
            true => Some(self.connector().map_err(ReadError::Unreachable)?),
            false => None,
        };
        let is_allowed = self.options.allowed.contains(&endpoint);
        let reach = if is_allowed { Reach::Any } else { Reach::OtherHosts };
        let pool = Connections::new(endpoint.clone(), tls, reach);
        if pools.len() >= ENDPOINTS_MAX {
            pools.remove(0);
        }
        pools.push((endpoint, pool.clone()));
        Ok(pool)
    }

    fn connector(&self) -> Result<TlsConnector, String> {
        let made = self.tls.get_or_init(|| tls::connector(None).map_err(|error| error.to_string()));
        made.clone()
    }
}

/// The bytes of a range of this length, if they are what was replied.
pub(crate) fn range_of(
    exchanged: Result<(Parts, Bytes), HttpError>,
    length: u64,
) -> Result<Bytes, ReadError> {
    let (head, body) = exchanged.map_err(|error| failed(&error))?;
    match head.status {
        StatusCode::PARTIAL_CONTENT if body.len() as u64 == length => Ok(body),
        StatusCode::PARTIAL_CONTENT => Err(ReadError::Length(body.len())),
        other => Err(ReadError::Status(other.as_u16())),
    }
}

fn failed(error: &HttpError) -> ReadError {
    let innermost = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    let why = innermost.take(20).last().map_or_else(String::new, ToString::to_string);
    match error.kind() {
        HttpErrorKind::Connect => ReadError::Unreachable(why),
        _ => ReadError::Broken(why),
    }
}

/// The endpoint of an address of an object, and the whole of it.
fn parsed(address: &str) -> Option<(Endpoint, Uri)> {
    let is_plain = address.bytes().all(|byte| byte.is_ascii_graphic() && !b"#\\\"<>^`{|}".contains(&byte));
    let (scheme, rest) = address.split_once("://").filter(|_| is_plain)?;
    let (authority, _) = rest.split_once('/')?;
    let endpoint: Endpoint = format!("{scheme}://{authority}").parse().ok()?;
    let uri: Uri = address.parse().ok()?;
    // Two readings of one address must name the same host.
    let host = uri.host()?.trim_matches(['[', ']']);
    (host == endpoint.host && uri.port_u16().is_none_or(|port| port == endpoint.port))
        .then_some((endpoint, uri))
}

/// Reads an address of any bytes, for fuzzing.
#[cfg(feature = "fuzzing")]
pub fn read_any_address(bytes: &[u8]) {
    let Ok(address) = std::str::from_utf8(bytes) else { return };
    if let Some((endpoint, uri)) = parsed(address) {
        assert_eq!(endpoint.secure, uri.scheme_str() == Some("https"), "a scheme is read once");
        assert!(!endpoint.host.contains('@'), "an address has no user");
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn reader(allowed: &[&str]) -> ObjectReader {
        let allowed = allowed.iter().map(|text| text.parse().unwrap()).collect();
        ObjectReader::new(ReaderOptions { authority: None, allowed }).unwrap()
    }

    fn permits(reader: &ObjectReader, address: &str) -> bool {
        reader.0.request(address, &(24..1048)).is_some()
    }

    #[test]
    fn an_address_leads_over_tls_to_an_object_or_nowhere() {
        let by_default = reader(&[]);
        assert!(permits(&by_default, "https://s3.example.org/bucket/key?X-Amz-Signature=1"));
        assert!(permits(&by_default, "https://s3.example.org:9443/bucket/key"));
        for address in [
            "",
            "https://",
            "https:///bucket/key",
            "https://s3.example.org",
            "http://s3.example.org/bucket/key",
            "HTTPS://s3.example.org/bucket/key",
            "ftp://s3.example.org/bucket/key",
            "file:///etc/passwd",
            "https://user:word@s3.example.org/bucket/key",
            "https://s3.example.org@192.0.2.1/bucket/key",
            "https://s3.example.org:0/bucket/key",
            "https://s3.example.org:99999/bucket/key",
            "https://s3.example.org/bucket/key#part",
            "https://s3.example.org/bucket/key\r\nCookie: a",
            "https://s3.example.org\\@192.0.2.1/bucket",
            "https://s3.example.org/a b",
            "https://s3.example.org?/bucket/key",
            "https://s3.exämple.org/bucket/key",
        ] {
            assert!(!permits(&by_default, address), "{address:?}");
        }
        let allowed = reader(&["http://192.0.2.1:9000"]);
        assert!(permits(&allowed, "http://192.0.2.1:9000/bucket/key"));
        for address in ["http://192.0.2.1/bucket/key", "http://192.0.2.2:9000/bucket/key"] {
            assert!(!permits(&allowed, address), "{address:?}");
        }
    }

    #[test]
    fn a_request_names_its_range_and_nothing_of_its_sender() {
        let (_, request) = reader(&[]).0.request("https://s3.example.org/b/k?s=1", &(24..1048)).unwrap();
        assert_eq!(request.headers().len(), 1);
        assert_eq!(request.headers()[RANGE], "bytes=24-1047");
        assert_eq!((request.method(), request.uri().path()), (&Method::GET, "/b/k"));
        let reader = reader(&[]);
        #[allow(clippy::reversed_empty_ranges, reason = "what another host may send")]
        for range in [0..0, 9..5, 0..RANGE_MAX + 1, 0..u64::MAX] {
            assert!(reader.0.request("https://s3.example.org/b/k", &range).is_none(), "{range:?}");
        }
    }

    /// What a read of four bytes gives whose store replies this, to each of at most two requests.
    fn read_of(reply: &'static str) -> Result<Bytes, ReadError> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = format!("http://{}", listener.local_addr().unwrap());
        let served = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            assert!(stream.read(&mut request).unwrap() > 0);
            stream.write_all(reply.as_bytes()).unwrap();
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let read = runtime.block_on(reader(&[&place]).read(&format!("{place}/b/k"), 24..28));
        served.join().unwrap();
        read
    }

    #[test]
    fn a_reply_is_the_range_or_an_error() {
        let good = "HTTP/1.1 206 Partial Content\r\nContent-Length: 4\r\n\r\nabcd";
        assert_eq!(read_of(good), Ok(Bytes::from_static(b"abcd")));
        let short = "HTTP/1.1 206 Partial Content\r\nContent-Length: 3\r\n\r\nabc";
        assert_eq!(read_of(short), Err(ReadError::Length(3)));
        let whole = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd";
        assert_eq!(read_of(whole), Err(ReadError::Status(200)));
        let elsewhere = "HTTP/1.1 302 Found\r\nLocation: /b/k2\r\nContent-Length: 4\r\n\r\nabcd";
        assert_eq!(read_of(elsewhere), Err(ReadError::Status(302)));
        let refused = "HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nabcd";
        assert_eq!(read_of(refused), Err(ReadError::Status(403)));
    }

    #[test]
    fn only_allowed_endpoints_are_at_this_machine_or_its_link() {
        let reach = |allowed: &[&str]| {
            let endpoint = "https://127.0.0.1:9000".parse().unwrap();
            reader(allowed).0.pool(endpoint).unwrap().reach()
        };
        assert_eq!(reach(&[]), Reach::OtherHosts);
        assert_eq!(reach(&["https://127.0.0.1:9000"]), Reach::Any);
    }

    #[test]
    fn connections_are_kept_to_a_bounded_number_of_stores() {
        let reader = reader(&[]);
        for number in 0..20 {
            let endpoint: Endpoint = format!("https://s{number}.example.org").parse().unwrap();
            reader.0.pool(endpoint).unwrap();
            reader.0.pool("https://s0.example.org".parse().unwrap()).unwrap();
        }
        let pools = reader.0.pools.lock();
        assert_eq!(pools.len(), ENDPOINTS_MAX);
        assert!(pools.iter().any(|(endpoint, _)| endpoint.host == "s0.example.org"), "it is used");
    }
}
