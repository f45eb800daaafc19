//! HTTP requests to one etcd endpoint, over a pool of connections.

use std::time::Duration;

use afs_db::shared::SharedError;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::Endpoint;

/// Time-out for establishing a connection.
const CONNECT_MAX: Duration = Duration::from_secs(1);
/// Longest reply that is read.
const ANSWER_MAX: usize = 64 << 20;
/// Most idle connections kept.
const IDLE_MAX: usize = 8;

/// One etcd endpoint.
pub(crate) struct Server {
    endpoint: Endpoint,
    tls: Option<TlsConnector>,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

/// A request: path, body, token.
pub(crate) struct HttpRequest {
    pub(crate) path: &'static str,
    pub(crate) body: Bytes,
    pub(crate) token: Option<String>,
}

/// A reply.
pub(crate) struct HttpReply {
    pub(crate) good: bool,
    pub(crate) body: Bytes,
}

impl Server {
    pub(crate) fn new(endpoint: Endpoint, tls: Option<TlsConnector>) -> Self {
        Server { endpoint, tls, idle: Mutex::default() }
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Sends a request, and reads the whole reply.
    pub(crate) async fn ask(
        &self,
        request: &HttpRequest,
        patience: Duration,
    ) -> Result<HttpReply, SharedError> {
        let asked = async {
            let (answer, connection) = self.send(request).await?;
            let good = answer.status().is_success();
            let body = Limited::new(answer.into_body(), ANSWER_MAX).collect().await;
            let body = body.map_err(|error| self.trouble(error))?.to_bytes();
            self.keep(connection);
            Ok(HttpReply { good, body })
        };
        timeout(patience, asked).await.unwrap_or_else(|_| Err(self.trouble("no answer in time")))
    }

    /// Sends a request, and leaves the reply to be streamed. The connection is not reused.
    pub(crate) async fn begin(
        &self,
        request: &HttpRequest,
        patience: Duration,
    ) -> Result<Response<Incoming>, SharedError> {
        match timeout(patience, self.send(request)).await {
            Ok(answer) => answer.map(|(answer, _)| answer),
            Err(_) => Err(self.trouble("no answer in time")),
        }
    }

    pub(crate) fn trouble(&self, why: impl std::fmt::Display) -> SharedError {
        SharedError::Unavailable(format!("{}: {why}", self.endpoint))
    }

    async fn send(
        &self,
        request: &HttpRequest,
    ) -> Result<(Response<Incoming>, SendRequest<Full<Bytes>>), SharedError> {
        let mut connection = match self.kept() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        connection.ready().await.map_err(|error| self.trouble(error))?;
        let request = self.request(request)?;
        let answer = connection.send_request(request).await.map_err(|error| self.trouble(error))?;
        Ok((answer, connection))
    }

    fn request(&self, request: &HttpRequest) -> Result<Request<Full<Bytes>>, SharedError> {
        let builder = Request::post(request.path)
            .header(HOST, self.endpoint.authority())
            .header(CONTENT_TYPE, "application/json");
        let builder = match &request.token {
            Some(token) => builder.header(AUTHORIZATION, token),
            None => builder,
        };
        builder.body(Full::new(request.body.clone())).map_err(|error| SharedError::Refused(error.to_string()))
    }

    /// An idle connection that the server has not closed.
    fn kept(&self) -> Option<SendRequest<Full<Bytes>>> {
        let mut idle = self.idle.lock();
        while let Some(connection) = idle.pop() {
            if !connection.is_closed() {
                return Some(connection);
            }
        }
        None
    }

    fn keep(&self, connection: SendRequest<Full<Bytes>>) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX && !connection.is_closed() {
            idle.push(connection);
        }
    }

    /// Drops idle connections that may be dead.
    pub(crate) fn forget(&self) {
        self.idle.lock().clear();
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, SharedError> {
        let connecting = TcpStream::connect((self.endpoint.host.as_str(), self.endpoint.port));
        let stream = match timeout(CONNECT_MAX, connecting).await {
            Ok(stream) => stream.map_err(|error| self.trouble(error))?,
            Err(_) => return Err(self.trouble("no connection in time")),
        };
        stream.set_nodelay(true).map_err(|error| self.trouble(error))?;
        match (&self.tls, self.endpoint.secure) {
            (_, false) => self.shake(TokioIo::new(stream)).await,
            (None, true) => Err(SharedError::Refused("https without an authority".into())),
            (Some(tls), true) => {
                let name = ServerName::try_from(self.endpoint.host.clone());
                let name = name.map_err(|error| SharedError::Refused(error.to_string()))?;
                let stream = tls.connect(name, stream).await.map_err(|error| self.trouble(error))?;
                self.shake(TokioIo::new(stream)).await
            }
        }
    }

    async fn shake<S>(&self, stream: S) -> Result<SendRequest<Full<Bytes>>, SharedError>
    where
        S: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    {
        let (sender, connection) = handshake(stream).await.map_err(|error| self.trouble(error))?;
        // Ends when the sender is dropped, or the server closes; waiting requests then fail.
        drop(tokio::spawn(connection));
        Ok(sender)
    }
}
