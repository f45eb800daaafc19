//! A mount's end of its token socket.

use super::connections::Connections;
use super::frame::{TokenAnswer, TokenQuestion};
use crate::socket;
use afs_venus::TokenOwner;
use std::fs::{self, Permissions};
use std::io::{self, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A connection that says nothing for so long is closed.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Answers a question about the tokens of the user at the other end of the socket, as the kernel says, or of a session
/// of his. Called from a thread of its own, and may wait.
pub type TokenHandler = Arc<dyn Fn(TokenOwner, TokenQuestion) -> TokenAnswer + Send + Sync>;

/// A listening token socket. Dropping it stops listening and removes the socket.
pub struct TokenServer {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TokenServer {
    /// Listens at `path` (see [`socket_path`](super::socket_path)); for `everybody` on the machine, or for this user
    /// and root.
    ///
    /// # Errors
    /// The system refuses the socket or the thread.
    pub fn start(path: &Path, everybody: bool, handler: TokenHandler) -> io::Result<Self> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = socket::listen(path)?;
        if everybody {
            fs::set_permissions(path, Permissions::from_mode(0o666))?;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let listening = Listening { handler, everybody, open: Arc::default() };
        let thread = thread::Builder::new()
            .name("tokens".into())
            .spawn(move || listening.accept(&listener, &stopped))?;
        Ok(Self { path: path.to_owned(), stop, thread: Some(thread) })
    }
}

impl Drop for TokenServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // A connection of our own wakes the thread that accepts.
        let woken = socket::connect(&self.path).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
        let _ = fs::remove_file(&self.path);
    }
}

#[derive(Clone)]
struct Listening {
    handler: TokenHandler,
    everybody: bool,
    open: Arc<Connections>,
}

impl Listening {
    fn accept(&self, listener: &UnixListener, stop: &AtomicBool) {
        for stream in listener.incoming() {
            if stop.load(Ordering::Acquire) {
                return;
            }
            match stream {
                Ok(stream) => self.begin(stream),
                Err(error) => tracing::warn!("the token socket: {error}"),
            }
        }
    }

    fn begin(&self, stream: UnixStream) {
        let refuse = |why: &str| {
            let _ = TokenAnswer::Refused(why.into()).write(&mut &stream);
        };
        let Ok(uid) = socket::peer_uid(&stream) else { return };
        if !self.everybody && uid != rustix::process::geteuid().as_raw() && uid != 0 {
            return refuse("this mount is not yours");
        }
        let Some(place) = self.open.take(uid) else {
            return refuse("too many token connections; try again");
        };
        let own = self.clone();
        let serve = move || {
            if let Err(error) = own.converse(&stream, uid) {
                tracing::debug!("a token connection: {error}");
            }
            drop(place);
        };
        if let Err(error) = thread::Builder::new().name("tokens-1".into()).spawn(serve) {
            tracing::warn!("the token socket: {error}");
        }
    }

    /// Answers one connection's questions until it ends.
    fn converse(&self, stream: &UnixStream, uid: u32) -> io::Result<()> {
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        stream.set_write_timeout(Some(SILENCE_MAX))?;
        let mut from = BufReader::new(stream);
        while let Some(question) = TokenQuestion::read(&mut from)? {
            let session = match &question {
                TokenQuestion::Set { session, .. }
                | TokenQuestion::Remove { session, .. }
                | TokenQuestion::List { session } => *session,
                TokenQuestion::Cells => None,
            };
            let owner = session
                .map_or(TokenOwner::Uid(uid), |session| TokenOwner::Session { id: session.number(), uid });
            (self.handler)(owner, question).write(&mut &*stream)?;
        }
        Ok(())
    }
}
