//! Server of framed requests on a Unix socket: one thread accepts, and each connection has a thread that serves its
//! requests in order.

use super::connections::{Connections, Limits};
use super::{Peer, ReplyFrame, RequestFrame};
use afs_net::threads;
use rustix::process::geteuid;
use std::fs::{self, Permissions};
use std::io::{self, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Settings of a socket.
pub(crate) struct Settings {
    /// Name of the socket in the log, in refusals and of its threads.
    pub(crate) name: &'static str,
    /// Which users may connect.
    pub(crate) audience: Audience,
    /// Most connections served at a time; further ones are refused.
    pub(crate) limits: Limits,
    /// Time without a request after which a connection is closed.
    pub(crate) idle: Duration,
}

/// Which users may connect to a socket.
#[derive(Clone, Copy)]
pub(crate) enum Audience {
    /// The user of this process and root; others get this line.
    Owner(&'static str),
    /// Every user of the machine.
    Everybody,
}

/// A listening socket. Dropping it closes and removes the socket.
pub(crate) struct SocketServer {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SocketServer {
    /// Listens at `path`. A socket that a killed process left there is replaced: the caller knows that no other process
    /// listens at the path. `serve` gets the client and a request; it is called from a thread of the
    /// connection, and may wait.
    pub(crate) fn start<Q: RequestFrame, A: ReplyFrame>(
        path: &Path,
        settings: Settings,
        serve: impl Fn(Peer, Q) -> A + Send + Sync + 'static,
    ) -> io::Result<Self> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = super::listen(path)?;
        if matches!(settings.audience, Audience::Everybody) {
            fs::set_permissions(path, Permissions::from_mode(0o666))?;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, name) = (stop.clone(), settings.name);
        let open = Connections::with(settings.limits);
        let acceptor = Arc::new(Acceptor { serve: Box::new(serve), settings, open });
        let thread = threads::start(name, move || acceptor.accept(&listener, &stopped))?;
        Ok(Self { path: path.to_owned(), stop, thread: Some(thread) })
    }
}

impl Drop for SocketServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // A connection of this process wakes the accepting thread.
        let woken = super::connect(&self.path).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
        let _ = fs::remove_file(&self.path);
    }
}

type Serve<Q, A> = Box<dyn Fn(Peer, Q) -> A + Send + Sync>;

struct Acceptor<Q, A> {
    serve: Serve<Q, A>,
    settings: Settings,
    open: Arc<Connections>,
}

impl<Q: RequestFrame, A: ReplyFrame> Acceptor<Q, A> {
    fn accept(self: &Arc<Self>, listener: &UnixListener, stop: &AtomicBool) {
        for stream in listener.incoming() {
            if stop.load(Ordering::Acquire) {
                return;
            }
            match stream {
                Ok(stream) => self.begin(stream),
                Err(error) => tracing::warn!("the {} socket: {error}", self.settings.name),
            }
        }
    }

    fn begin(self: &Arc<Self>, stream: UnixStream) {
        let Settings { name, audience, .. } = self.settings;
        let stream = Arc::new(stream);
        let refuse = |line: String| drop(A::refused(line).write(&mut &*stream));
        let Ok(peer) = super::peer(&stream) else { return };
        if let Some(line) = audience.refusal(peer.uid) {
            return refuse(line.to_owned());
        }
        let Some(slot) = self.open.take(peer.uid) else {
            return refuse(format!("too many {name} connections; try again"));
        };
        let (own, its) = (self.clone(), stream.clone());
        let serve = move || {
            if let Err(error) = own.converse(&its, peer) {
                tracing::debug!("a {name} connection: {error}");
            }
            drop(slot);
        };
        if let Err(error) = threads::start(&format!("{name}-1"), serve) {
            tracing::warn!("the {name} socket: {error}");
            refuse(format!(
                "no thread for a {name} connection: the limit of processes is reached there; try again"
            ));
        }
    }

    /// Serves the requests of one connection until it ends.
    fn converse(&self, stream: &UnixStream, peer: Peer) -> io::Result<()> {
        stream.set_read_timeout(Some(self.settings.idle))?;
        stream.set_write_timeout(Some(self.settings.idle))?;
        let mut from = BufReader::new(stream);
        while let Some(request) = Q::read(&mut from)? {
            (self.serve)(peer, request).write(&mut &*stream)?;
        }
        Ok(())
    }
}

impl Audience {
    /// The refusal of a user who may not connect.
    fn refusal(self, uid: u32) -> Option<&'static str> {
        match self {
            Self::Owner(line) if uid != geteuid().as_raw() && uid != 0 => Some(line),
            Self::Owner(_) | Self::Everybody => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_of_the_owner_is_his_and_roots() {
        let own = geteuid().as_raw();
        let audience = Audience::Owner("no");
        assert_eq!([own, 0, own + 1].map(|uid| audience.refusal(uid)), [None, None, Some("no")]);
        assert_eq!(Audience::Everybody.refusal(own + 1), None);
    }
}
