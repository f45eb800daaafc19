//! Server of the control socket, for the owner of a cell.

use super::frame::{ControlReply, ControlRequest};
use crate::person;
use crate::socket::{Audience, Limits, Settings, SocketServer};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Most connections served at a time; further ones are refused.
const CONNECTIONS_MAX: usize = 16;
/// Time without a request after which a connection is closed.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// Handler of requests. Gets the user behind the client: its user id, or who logged in where that is root. Called from a thread of the connection; may wait.
pub type Handler = Arc<dyn Fn(u32, ControlRequest) -> ControlReply + Send + Sync>;

/// A listening control socket. Dropping it closes and removes the socket.
pub struct ControlServer {
    _socket: SocketServer,
}

impl ControlServer {
    /// Listens at `path`. A socket left there by a killed process is replaced: the caller holds the lock of the
    /// directory, so no other process listens.
    ///
    /// # Errors
    /// The system refuses the socket or the thread.
    pub fn start(path: &Path, handler: Handler) -> io::Result<Self> {
        let settings = Settings {
            name: "control",
            audience: Audience::Owner("only the user who started the cell may control it"),
            limits: Limits { all: CONNECTIONS_MAX, of_user: CONNECTIONS_MAX },
            idle: IDLE_MAX,
        };
        let _socket = SocketServer::start(path, settings, move |peer, request| {
            handler(person::behind(&peer), request)
        })?;
        Ok(Self { _socket })
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::ControlClient;
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn questions_are_answered_in_order_and_the_socket_is_private() {
        let dir = tempfile::tempdir().unwrap();
        // Longer than the path of a socket address may be.
        let deep = dir.path().join("d".repeat(120));
        fs::create_dir(&deep).unwrap();
        let path = deep.join("control");
        let handler: Handler = Arc::new(|uid, request| match request {
            ControlRequest::Call { service: 4, call } => {
                ControlReply::Done([uid.to_be_bytes().to_vec(), call].concat())
            }
            ControlRequest::Call { service, .. } => ControlReply::Aborted(i32::from(service)),
            _ => ControlReply::Refused("none".into()),
        });
        let server = ControlServer::start(&path, handler.clone()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let own = rustix::process::geteuid().as_raw().to_be_bytes();
        let mut client = ControlClient::connect(&path).unwrap();
        let ask = |client: &mut ControlClient, service| {
            client.ask(&ControlRequest::Call { service, call: vec![1, 2, 3, 4] }).unwrap()
        };
        assert_eq!(ask(&mut client, 4), ControlReply::Done([&own[..], &[1, 2, 3, 4]].concat()));
        assert_eq!(ask(&mut client, 52), ControlReply::Aborted(52));
        assert_eq!(client.ask(&ControlRequest::Statistics).unwrap(), ControlReply::Refused("none".into()));
        drop(server);
        assert!(!path.exists());
        drop(ControlServer::start(&path, handler).unwrap());
    }

    #[test]
    fn more_connections_than_allowed_are_turned_away() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control");
        let _server = ControlServer::start(&path, Arc::new(|_, _| ControlReply::Done(vec![]))).unwrap();
        let mut clients: Vec<_> =
            (0..CONNECTIONS_MAX).map(|_| ControlClient::connect(&path).unwrap()).collect();
        for client in &mut clients {
            client.ask(&ControlRequest::Statistics).unwrap();
        }
        let mut one_more = ControlClient::connect(&path).unwrap();
        let refused = one_more.ask(&ControlRequest::Statistics).unwrap();
        assert_eq!(refused, ControlReply::Refused("too many control connections; try again".into()));
    }
}
