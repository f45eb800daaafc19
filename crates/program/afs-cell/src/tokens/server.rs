//! Server of the token socket of a mount, for the users of the mount.

use super::messages::{TokenReply, TokenRequest};
use crate::socket::{Audience, Limits, Peer, Settings, SocketServer};
use afs_venus::TokenOwner;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Most connections served at a time. Programs of a user may run many commands at once, each of which may wait for a server.
const LIMITS: Limits = Limits { all: 1024, of_user: 64 };
/// Time without a request after which a connection is closed.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// Handler of requests about the tokens of a user, as identified by the kernel, or of a session of that user. Called
/// from a thread of the connection; may wait.
pub type TokenHandler = Arc<dyn Fn(TokenOwner, TokenRequest) -> TokenReply + Send + Sync>;

/// A listening token socket. Dropping it closes and removes the socket.
pub struct TokenServer {
    _socket: SocketServer,
}

impl TokenServer {
    /// Listens at `path` (see [`socket_path`](super::socket_path)), for `everybody` on the machine or for this user and
    /// root.
    ///
    /// # Errors
    /// The system refuses the socket or the thread.
    pub fn start(path: &Path, everybody: bool, handler: TokenHandler) -> io::Result<Self> {
        let audience = match everybody {
            true => Audience::Everybody,
            false => Audience::Owner("this mount is not yours"),
        };
        let settings = Settings { name: "token", audience, limits: LIMITS, idle: IDLE_MAX };
        let serve = move |peer: Peer, request| handler(owner(peer.uid, &request), request);
        Ok(Self { _socket: SocketServer::start(path, settings, serve)? })
    }
}

/// The owner of the tokens that a user's request concerns.
fn owner(uid: u32, request: &TokenRequest) -> TokenOwner {
    let session = match request {
        TokenRequest::Set { session, .. }
        | TokenRequest::Remove { session, .. }
        | TokenRequest::List { session }
        | TokenRequest::Explain { session, .. }
        | TokenRequest::Pin { session, .. }
        | TokenRequest::Property { session, .. } => *session,
        TokenRequest::Cells
        | TokenRequest::Activity { .. }
        | TokenRequest::Unsaved { .. }
        | TokenRequest::UnsavedPiece { .. }
        | TokenRequest::SettleUnsaved { .. }
        | TokenRequest::Unpin { .. }
        | TokenRequest::Pins { .. }
        | TokenRequest::AddCell { .. }
        | TokenRequest::SetRanks { .. } => None,
    };
    session.map_or(TokenOwner::Uid(uid), |session| TokenOwner::Session { id: session.number(), uid })
}
