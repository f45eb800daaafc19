//! The cell's end of the control socket.

use super::frame::{Answer, Question};
use crate::socket;
use std::fs;
use std::io::{self, BufReader};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Owners served at a time; more are turned away.
const CONNECTIONS_MAX: usize = 16;
/// A connection that says nothing for so long is closed.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Answers questions. Called from a thread of its own, and may wait.
pub type Handler = Arc<dyn Fn(Question) -> Answer + Send + Sync>;

/// A listening control socket. Dropping it stops listening and removes the socket.
pub struct ControlServer {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ControlServer {
    /// Listens at `path`. A socket left there by a killed process is replaced: the caller holds the
    /// lock of the directory, so nobody else is listening.
    ///
    /// # Errors
    /// The system refuses the socket or the thread.
    pub fn start(path: &Path, handler: Handler) -> io::Result<Self> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = socket::listen(path)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::Builder::new()
            .name("control".into())
            .spawn(move || accept(&listener, &handler, &stopped))?;
        Ok(Self { path: path.to_owned(), stop, thread: Some(thread) })
    }
}

impl Drop for ControlServer {
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

fn accept(listener: &UnixListener, handler: &Handler, stop: &AtomicBool) {
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        if stop.load(Ordering::Acquire) {
            return;
        }
        match stream {
            Ok(stream) => begin(stream, handler, &open),
            Err(error) => tracing::warn!("the control socket: {error}"),
        }
    }
}

fn begin(stream: UnixStream, handler: &Handler, open: &Arc<AtomicUsize>) {
    let (handler, count) = (handler.clone(), open.clone());
    if count.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS_MAX {
        count.fetch_sub(1, Ordering::AcqRel);
        let _ = Answer::Refused("too many control connections; try again".into()).write(&mut &stream);
        return;
    }
    let serve = move || {
        if let Err(error) = converse(&stream, &handler) {
            tracing::debug!("a control connection: {error}");
        }
        count.fetch_sub(1, Ordering::AcqRel);
    };
    if thread::Builder::new().name("control-1".into()).spawn(serve).is_err() {
        open.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Answers one connection's questions until it ends.
fn converse(stream: &UnixStream, handler: &Handler) -> io::Result<()> {
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    let peer = socket::peer_uid(stream)?;
    if peer != rustix::process::geteuid().as_raw() && peer != 0 {
        return Answer::Refused("only the one who started the cell may give it orders".into())
            .write(&mut &*stream);
    }
    let mut from = BufReader::new(stream);
    while let Some(question) = Question::read(&mut from)? {
        handler(question).write(&mut &*stream)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::client::ControlClient;
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn questions_are_answered_in_order_and_the_socket_is_private() {
        let dir = tempfile::tempdir().unwrap();
        // Longer than a socket's name may be.
        let deep = dir.path().join("d".repeat(120));
        fs::create_dir(&deep).unwrap();
        let path = deep.join("control");
        let handler: Handler = Arc::new(|question| match question {
            Question::Call { service: 4, call } => Answer::Done(call),
            Question::Call { service, .. } => Answer::Aborted(i32::from(service)),
            _ => Answer::Refused("none".into()),
        });
        let server = ControlServer::start(&path, handler.clone()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let mut client = ControlClient::connect(&path).unwrap();
        let ask = |client: &mut ControlClient, service| {
            client.ask(&Question::Call { service, call: vec![1, 2, 3, 4] }).unwrap()
        };
        assert_eq!(ask(&mut client, 4), Answer::Done(vec![1, 2, 3, 4]));
        assert_eq!(ask(&mut client, 52), Answer::Aborted(52));
        assert_eq!(client.ask(&Question::Statistics).unwrap(), Answer::Refused("none".into()));
        drop(server);
        assert!(!path.exists());
        drop(ControlServer::start(&path, handler).unwrap());
    }

    #[test]
    fn more_connections_than_allowed_are_turned_away() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control");
        let _server = ControlServer::start(&path, Arc::new(|_| Answer::Done(vec![]))).unwrap();
        let mut clients: Vec<_> =
            (0..CONNECTIONS_MAX).map(|_| ControlClient::connect(&path).unwrap()).collect();
        for client in &mut clients {
            client.ask(&Question::Statistics).unwrap();
        }
        let mut one_more = ControlClient::connect(&path).unwrap();
        let refused = one_more.ask(&Question::Statistics).unwrap();
        assert_eq!(refused, Answer::Refused("too many control connections; try again".into()));
    }
}
