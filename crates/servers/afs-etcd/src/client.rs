//! Client of an etcd cluster: tries its endpoints in turn.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use afs_db::shared::{Revision, SharedError};
use bytes::Bytes;
use hyper::Response;
use hyper::body::Incoming;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::http::{HttpReply, HttpRequest, Server};
use crate::messages::{AuthenticateReply, AuthenticateRequest, ErrorReply};
use crate::{ConfigError, EtcdConfig, Password, tls};

/// Time-outs of a read, and of a change, which waits for disks.
pub(crate) const READ_MAX: Duration = Duration::from_millis(1500);
pub(crate) const CHANGE_MAX: Duration = Duration::from_secs(3);

/// gRPC codes.
const OUT_OF_RANGE: i32 = 11;
const UNAUTHENTICATED: i32 = 16;
/// Codes on which another endpoint, or a later attempt, may succeed: cancelled, unknown, late, internal,
/// unavailable.
const PASSING: [i32; 5] = [1, 2, 4, 13, 14];

/// The endpoints of an etcd cluster. The one that replied last is tried first.
pub(crate) struct Client {
    servers: Vec<Server>,
    preferred: AtomicUsize,
    user: Option<(String, Password)>,
    token: Mutex<Option<String>>,
}

impl Client {
    pub(crate) fn new(config: &EtcdConfig) -> Result<Self, ConfigError> {
        let tls = tls::connector(&config.tls)?;
        if config.endpoints.is_empty() {
            return Err(ConfigError::NoEndpoint);
        }
        if tls.is_none() && config.endpoints.iter().any(|endpoint| endpoint.secure) {
            return Err(ConfigError::NoAuthority);
        }
        let servers = config.endpoints.iter().map(|endpoint| Server::new(endpoint.clone(), tls.clone()));
        Ok(Client {
            servers: servers.collect(),
            preferred: AtomicUsize::new(0),
            user: config.user.clone(),
            token: Mutex::default(),
        })
    }

    /// Calls one endpoint after the other, each for at most `patience`.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        path: &'static str,
        request: &impl Serialize,
        patience: Duration,
    ) -> Result<T, SharedError> {
        let body = encoded(request)?;
        let mut last = SharedError::Unavailable("no server is known".into());
        for _ in 0..self.servers.len() {
            let (index, server) = self.chosen();
            match self.call_one(server, path, &body, patience).await {
                Err(SharedError::Unavailable(why)) => last = self.leave(index, server, why),
                answer => return answer,
            }
        }
        Err(last)
    }

    /// Starts to read a stream from the endpoint that replied last.
    pub(crate) async fn stream(
        &self,
        path: &'static str,
        request: &impl Serialize,
    ) -> Result<Response<Incoming>, SharedError> {
        let body = encoded(request)?;
        let (index, server) = self.chosen();
        let begun = async {
            let token = self.token(server).await?;
            let answer = server.begin(&HttpRequest { path, body, token }, READ_MAX).await?;
            if answer.status().is_success() {
                return Ok(answer);
            }
            // An expired token is renewed at the next attempt.
            self.forget_token();
            Err(server.trouble(answer.status()))
        };
        begun.await.map_err(|error| match error {
            SharedError::Unavailable(why) => self.leave(index, server, why),
            error => error,
        })
    }

    fn chosen(&self) -> (usize, &Server) {
        let index = self.preferred.load(Ordering::Relaxed) % self.servers.len();
        (index, &self.servers[index])
    }

    /// Switches to the next endpoint, unless another task has.
    fn leave(&self, index: usize, server: &Server, why: String) -> SharedError {
        server.forget();
        let next = (index + 1) % self.servers.len();
        let _ = self.preferred.compare_exchange(index, next, Ordering::Relaxed, Ordering::Relaxed);
        SharedError::Unavailable(why)
    }

    async fn call_one<T: DeserializeOwned>(
        &self,
        server: &Server,
        path: &'static str,
        body: &Bytes,
        patience: Duration,
    ) -> Result<T, SharedError> {
        let mut reply = self.ask(server, path, body, patience).await?;
        if !reply.good && error_of(&reply).code == UNAUTHENTICATED && self.user.is_some() {
            self.forget_token();
            reply = self.ask(server, path, body, patience).await?;
        }
        read(server, &reply)
    }

    async fn ask(
        &self,
        server: &Server,
        path: &'static str,
        body: &Bytes,
        patience: Duration,
    ) -> Result<HttpReply, SharedError> {
        let token = self.token(server).await?;
        server.ask(&HttpRequest { path, body: body.clone(), token }, patience).await
    }

    fn forget_token(&self) {
        *self.token.lock() = None;
    }

    /// The token of the user, if there is one.
    async fn token(&self, server: &Server) -> Result<Option<String>, SharedError> {
        let Some((name, password)) = &self.user else { return Ok(None) };
        if let Some(token) = &*self.token.lock() {
            return Ok(Some(token.clone()));
        }
        let body = encoded(&AuthenticateRequest { name, password: password.expose() })?;
        let reply =
            server.ask(&HttpRequest { path: "/v3/auth/authenticate", body, token: None }, CHANGE_MAX).await?;
        let reply: AuthenticateReply = read(server, &reply)?;
        *self.token.lock() = Some(reply.token.clone());
        Ok(Some(reply.token))
    }
}

fn encoded(request: &impl Serialize) -> Result<Bytes, SharedError> {
    serde_json::to_vec(request).map(Bytes::from).map_err(|error| SharedError::Refused(error.to_string()))
}

fn error_of(reply: &HttpReply) -> ErrorReply {
    serde_json::from_slice(&reply.body).unwrap_or_default()
}

/// Decodes a reply, or classifies an error.
pub(crate) fn read<T: DeserializeOwned>(server: &Server, reply: &HttpReply) -> Result<T, SharedError> {
    if reply.good {
        return serde_json::from_slice(&reply.body).map_err(|error| server.trouble(error));
    }
    let ErrorReply { message, error, code } = error_of(reply);
    let message = if message.is_empty() { error } else { message };
    match code {
        OUT_OF_RANGE => Err(SharedError::Forgotten(Revision(0))),
        // Without a code, an intermediary has replied.
        0 => Err(server.trouble(if message.is_empty() {
            "an answer that is none of etcd's"
        } else {
            &message
        })),
        code if PASSING.contains(&code) => Err(server.trouble(message)),
        _ => Err(SharedError::Refused(format!("{}: {message}", server.endpoint()))),
    }
}
