//! HTTP/1.1 requests to one endpoint over a pool of connections, for `object_store` and for reads by signed addresses.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{HOST, HeaderValue};
use hyper::http::response::Parts;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse,
    HttpService,
};
use parking_lot::Mutex;
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::address::Endpoint;
use crate::failure::StatusError;

/// Longest body of a reply: a chunk has 4 MiB, a page of a listing less.
const BODY_MAX: usize = 8 << 20;
/// Most idle connections kept.
const IDLE_MAX: usize = 16;

/// The endpoint, with its idle connections. A clone is a handle.
#[derive(Clone)]
pub(crate) struct Connections(Arc<Inner>);

struct Inner {
    endpoint: Endpoint,
    tls: Option<TlsConnector>,
    reach: Reach,
    idle: Mutex<Vec<SendRequest<HttpRequestBody>>>,
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connections({})", self.0.endpoint)
    }
}

/// Which addresses an endpoint's name may lead to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    /// Any: its owner has named the endpoint.
    Any,
    /// Those of other hosts: another host has named it.
    OtherHosts,
}

impl Reach {
    fn permits(self, address: IpAddr) -> bool {
        self == Reach::Any || is_other_host(address.to_canonical())
    }
}

/// Whether an address can be that of one other host: neither this machine, nor a group, nor what only a link knows, as the services of
/// clouds that give out credentials are (169.254.169.254).
fn is_other_host(address: IpAddr) -> bool {
    let is_special = address.is_loopback() || address.is_unspecified() || address.is_multicast();
    let is_of_link = match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast() || v4.octets()[0] == 0,
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    !is_special && !is_of_link
}

impl Connections {
    /// `tls` is required for an endpoint with https.
    pub(crate) fn new(endpoint: Endpoint, tls: Option<TlsConnector>, reach: Reach) -> Self {
        Self(Arc::new(Inner { endpoint, tls, reach, idle: Mutex::default() }))
    }

    /// The reply to a request, with a body of at most so many bytes. Nothing is followed or tried again.
    pub(crate) async fn exchange(
        &self,
        request: HttpRequest,
        body_max: usize,
    ) -> Result<(Parts, Bytes), HttpError> {
        let request = in_origin_form(request)?;
        let mut connection = self.0.connection().await?;
        let replied = reply(&mut connection, request, body_max).await?;
        self.0.keep(connection);
        Ok(replied)
    }

    #[cfg(test)]
    pub(crate) fn reach(&self) -> Reach {
        self.0.reach
    }

    /// Closes what is idle: the store may have closed it unnoticed.
    pub(crate) fn close_idle(&self) {
        self.0.idle.lock().clear();
    }
}

impl HttpConnector for Connections {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for Connections {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (head, body) = self.exchange(request, BODY_MAX).await?;
        decided(head, body)
    }
}

/// The reply to one request on a connection, with a body of at most so many bytes.
async fn reply(
    connection: &mut SendRequest<HttpRequestBody>,
    request: Request<HttpRequestBody>,
    body_max: usize,
) -> Result<(Parts, Bytes), HttpError> {
    let reply = connection.send_request(request).await.map_err(broken)?;
    let (head, body) = reply.into_parts();
    let body: Response<Limited<Incoming>> = Response::new(Limited::new(body, body_max));
    let body = body.into_body().collect().await;
    let body = body.map_err(|error| HttpError::new_boxed(HttpErrorKind::Interrupted, error))?.to_bytes();
    Ok((head, body))
}

/// A reply for `object_store`; a refusal that it does not distinguish is an error.
fn decided(head: Parts, body: Bytes) -> Result<HttpResponse, HttpError> {
    if is_decided_above(head.status, &body) {
        return Ok(HttpResponse::from_parts(head, body.into()));
    }
    Err(HttpError::new(HttpErrorKind::Unknown, StatusError::new(head.status, &body)))
}

/// Success, and the refusals that `object_store` distinguishes.
fn is_decided_above(status: StatusCode, body: &Bytes) -> bool {
    let no_object = status == StatusCode::NOT_FOUND && StatusError::new(status, body).code != "NoSuchBucket";
    status.is_success() || no_object || status == StatusCode::PRECONDITION_FAILED
}

impl Inner {
    /// An idle connection that the store has not closed, or a new one.
    async fn connection(&self) -> Result<SendRequest<HttpRequestBody>, HttpError> {
        while let Some(mut connection) = { self.idle.lock().pop() } {
            if !connection.is_closed() && connection.ready().await.is_ok() {
                return Ok(connection);
            }
        }
        let mut connection = self.connect().await?;
        connection.ready().await.map_err(broken)?;
        Ok(connection)
    }

    fn keep(&self, connection: SendRequest<HttpRequestBody>) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX && !connection.is_closed() {
            idle.push(connection);
        }
    }

    async fn connect(&self) -> Result<SendRequest<HttpRequestBody>, HttpError> {
        let Endpoint { secure, host, port } = &self.endpoint;
        let found = lookup_host((host.as_str(), *port)).await.map_err(unreachable)?;
        let addresses: Vec<_> = found.filter(|address| self.reach.permits(address.ip())).collect();
        // No address at all is an error, too.
        let stream = TcpStream::connect(&*addresses).await.map_err(unreachable)?;
        stream.set_nodelay(true).map_err(broken)?;
        match (&self.tls, secure) {
            (_, false) => shake(TokioIo::new(stream)).await,
            (Some(tls), true) => {
                let name = ServerName::try_from(host.clone()).map_err(broken)?;
                shake(TokioIo::new(tls.connect(name, stream).await.map_err(unreachable)?)).await
            }
            (None, true) => Err(broken(std::io::Error::other("https without authorities"))),
        }
    }
}

/// The request as a server that is no proxy gets it: the path alone, and the host in a header.
fn in_origin_form(request: HttpRequest) -> Result<Request<HttpRequestBody>, HttpError> {
    let (mut head, body) = request.into_parts();
    let invalid = |error: String| HttpError::new(HttpErrorKind::Unknown, std::io::Error::other(error));
    if let Some(authority) = head.uri.authority() {
        let host = HeaderValue::from_str(authority.as_str()).map_err(|error| invalid(error.to_string()))?;
        head.headers.entry(HOST).or_insert(host);
    }
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    head.uri = path.parse::<Uri>().map_err(|error| invalid(error.to_string()))?;
    Ok(Request::from_parts(head, body))
}

async fn shake<S>(stream: S) -> Result<SendRequest<HttpRequestBody>, HttpError>
where
    S: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(stream).await.map_err(broken)?;
    // Ends when the sender is dropped, or the store closes; waiting requests then fail.
    drop(tokio::spawn(connection));
    Ok(sender)
}

fn unreachable(error: std::io::Error) -> HttpError {
    HttpError::new(HttpErrorKind::Connect, error)
}

fn broken(error: impl std::error::Error + Send + Sync + 'static) -> HttpError {
    HttpError::new(HttpErrorKind::Interrupted, error)
}

/// A store in memory that replies the same bytes to every request, each on a connection of its own, for fuzzing.
#[cfg(feature = "fuzzing")]
#[derive(Clone, Debug)]
pub(crate) struct Canned(pub(crate) Bytes);

#[cfg(feature = "fuzzing")]
impl Canned {
    /// As [`Connections::exchange`].
    pub(crate) async fn exchange(
        &self,
        request: HttpRequest,
        body_max: usize,
    ) -> Result<(Parts, Bytes), HttpError> {
        let stream = crate::canned::CannedStream::new(self.0.clone());
        let mut connection = shake(stream).await?;
        reply(&mut connection, in_origin_form(request)?, body_max).await
    }
}

#[cfg(feature = "fuzzing")]
impl HttpConnector for Canned {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[cfg(feature = "fuzzing")]
#[async_trait]
impl HttpService for Canned {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (head, body) = self.exchange(request, BODY_MAX).await?;
        decided(head, body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_that_another_host_names_is_at_another_host() {
        for own in [
            "127.0.0.1",
            "127.9.9.9",
            "::1",
            "::ffff:127.0.0.1",
            "0.0.0.0",
            "::",
            "169.254.169.254",
            "fe80::1",
            "224.0.0.1",
        ] {
            let own = own.parse().unwrap();
            assert!(!Reach::OtherHosts.permits(own) && Reach::Any.permits(own), "{own}");
        }
        for other in ["192.0.2.1", "10.1.2.3", "2001:db8::1"] {
            assert!(Reach::OtherHosts.permits(other.parse().unwrap()), "{other}");
        }
    }
}
