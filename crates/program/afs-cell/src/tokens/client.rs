//! Client of the token sockets of the mounts on this machine.

use super::kept::KeptToken;
use super::messages::{CellLocation, HeldToken, MountLocation, Settle, TokenReply, TokenRequest};
use super::session::SessionId;
use super::socket_paths;
use crate::cells::OtherCell;
use crate::process::is_stopped;
use crate::socket::{self, Peer};
use afs_venus::{Activity, Explanation, PinOptions, Pinned, Unsaved, UnsavedPiece};
use afs_wire::ids::CellName;
use rustix::process::getuid;
use std::fs;
use std::io::{self, ErrorKind};
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time-out of a request; a mount replies from memory.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same of a request that follows a path, for which servers may be called.
pub(super) const PATH_PATIENCE: Duration = Duration::from_secs(75);

/// Token sockets of the running mounts that this user trusts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mounts(Vec<PathBuf>);

/// What became of a token that was handed to the mounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandedOver {
    /// Number of mounts that have it.
    pub taken: usize,
    /// The reasons of those that did not accept it, a line each.
    pub refusals: Vec<String>,
    /// Number of mounts that do not know its cell, to which it was not given.
    pub strangers: usize,
}

/// A mount, and the tokens of one owner that it uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldByMount {
    /// The mount; `None`: it does not say.
    pub mount: Option<MountLocation>,
    /// The cells that it knows, the home cell first.
    pub cells: Vec<CellName>,
    /// The tokens.
    pub tokens: Vec<HeldToken>,
    /// Whether this user mounts it.
    pub is_own: bool,
}

impl HeldByMount {
    /// The mount point, if the mount knows a cell and has no token of it. The mount in the process of the servers of its home cell needs none
    /// for the user who runs them.
    #[must_use]
    pub fn lacks(&self, cell: &str) -> Option<&Path> {
        let mount = self.mount.as_ref()?;
        let has = self.tokens.iter().any(|token| token.cell == cell);
        let place = self.cells.iter().position(|known| known.as_str() == cell)?;
        let needs_none = self.is_own && mount.serves && place == 0;
        (!has && !needs_none).then_some(&*mount.directory)
    }
}

impl Mounts {
    /// Those of mounts that run now: root's, and the user's own.
    #[must_use]
    pub fn running() -> Self {
        Self(socket_paths::sockets())
    }

    /// The mounts with these sockets.
    #[must_use]
    pub fn at(sockets: Vec<PathBuf>) -> Self {
        Self(sockets)
    }

    /// Hands a token to the mounts that know its cell.
    pub fn hand_over(&self, session: Option<SessionId>, token: &KeptToken) -> HandedOver {
        let request = TokenRequest::Set { session, token: Box::new(token.clone()) };
        let (of_cell, strangers) = self.of_cell(&token.cell);
        let mut done = HandedOver { strangers, ..HandedOver::default() };
        for answer in of_cell.ask(&request) {
            match answer {
                Ok(TokenReply::Refused(line)) => done.refusals.push(line),
                Ok(_) => done.taken += 1,
                Err(error) => done.refusals.push(error.to_string()),
            }
        }
        done
    }

    /// The mounts that know a cell, and the number of those that do not: they do not learn of the token.
    fn of_cell(&self, cell: &CellName) -> (Self, usize) {
        let (mut of_cell, mut strangers) = (Vec::new(), 0);
        for path in &self.0 {
            match ask(path, &TokenRequest::Cells) {
                Ok(Some(TokenReply::Cells(cells))) if cells.iter().all(|known| known.cell != *cell) => {
                    strangers += 1
                }
                Ok(None) => {}
                // A fault of the mount is reported when it is given the token.
                Ok(Some(_)) | Err(_) => of_cell.push(path.clone()),
            }
        }
        (Self(of_cell), strangers)
    }

    /// Makes all of them remove a cell's token, or all tokens.
    pub fn forget(&self, session: Option<SessionId>, cell: Option<&CellName>) {
        for answer in self.ask(&TokenRequest::Remove { session, cell: cell.cloned() }) {
            if let Err(error) = answer {
                tracing::warn!("a mount did not remove a token: {error}");
            }
        }
    }

    /// The tokens that they use.
    #[must_use]
    pub fn held(&self, session: Option<SessionId>) -> Vec<HeldToken> {
        self.held_by_mount(session).into_iter().flat_map(|mount| mount.tokens).collect()
    }

    /// The tokens that each of them uses. Those that do not reply are left out.
    #[must_use]
    pub fn held_by_mount(&self, session: Option<SessionId>) -> Vec<HeldByMount> {
        let one = |socket: &PathBuf| {
            let Ok(Some(TokenReply::Tokens(tokens))) = ask(socket, &TokenRequest::List { session }) else {
                return None;
            };
            let Ok(Some(TokenReply::Cells(cells))) = ask(socket, &TokenRequest::Cells) else { return None };
            let mount = cells.first().and_then(|cell| cell.mount.clone());
            let is_own = fs::metadata(socket).is_ok_and(|meta| meta.uid() == getuid().as_raw());
            let cells = cells.into_iter().map(|cell| cell.cell).collect();
            Some(HeldByMount { mount, cells, tokens, is_own })
        };
        self.0.iter().filter_map(one).collect()
    }

    /// What the mount with this device number knows of a path, from its root. `None`: none of these mounts has the number.
    ///
    /// # Errors
    /// The mount does not reply, or is of a version that does not know the request.
    pub fn explain(
        &self,
        device: &str,
        session: Option<SessionId>,
        path: &[u8],
    ) -> io::Result<Option<Box<Explanation>>> {
        let Some(socket) = self.socket_of(device) else { return Ok(None) };
        match ask(socket, &TokenRequest::Explain { session, path: path.to_vec() })? {
            Some(TokenReply::Explained(told)) => Ok(Some(told)),
            Some(TokenReply::Refused(line)) => Err(io::Error::other(line)),
            Some(_) => Err(io::Error::other("the mount replied to another request")),
            None => Ok(None),
        }
    }

    /// What each of these mounts does, with its cell. Those that do not reply, or are of a version that does not know the
    /// request, are left out; `checks_servers` makes them call the servers first that they think are unreachable.
    #[must_use]
    pub fn activities(&self, checks_servers: bool) -> Vec<(CellLocation, Activity)> {
        let one = |socket: &PathBuf| {
            let Ok(Some(TokenReply::Cells(cells))) = ask(socket, &TokenRequest::Cells) else { return None };
            let cell = cells.into_iter().find(|cell| cell.mount.is_some())?;
            match ask(socket, &TokenRequest::Activity { checks_servers }) {
                Ok(Some(TokenReply::Activity(told))) => Some((cell, *told)),
                _ => None,
            }
        };
        self.0.iter().filter_map(one).collect()
    }

    /// The data of this user (for root, of all users) that each of these mounts could not store. Mounts that do not reply, or
    /// are of a version that does not know the request, are left out.
    #[must_use]
    pub fn unsaved(&self) -> Vec<(UnsavedAt, Unsaved)> {
        let mut all = Vec::new();
        for socket in &self.0 {
            let Ok(Some(TokenReply::Cells(cells))) = ask(socket, &TokenRequest::Cells) else { continue };
            let Some(mount) = cells.into_iter().find_map(|cell| cell.mount) else { continue };
            let mut after = 0;
            while let Ok(Some(TokenReply::Unsaved(told))) = ask(socket, &TokenRequest::Unsaved { after }) {
                // Numbers only rise, so that this ends whatever the mount replies.
                let Some(last) = told.last().map(|it| it.number).filter(|last| *last > after) else { break };
                after = last;
                let at = UnsavedAt { mount: mount.clone(), socket: socket.clone() };
                all.extend(told.into_iter().map(|it| (at.clone(), it)));
            }
        }
        all
    }

    /// The socket of the mount with this device number; `None`: none of these mounts has the number.
    pub(super) fn socket_of(&self, device: &str) -> Option<&Path> {
        self.0.iter().find(|socket| is_mount(socket, device)).map(PathBuf::as_path)
    }

    /// Pins a path, from the root of the mount with this device number. False: none of these mounts has the number.
    ///
    /// # Errors
    /// The mount refuses, does not reply, or is of a version that does not know the request.
    pub fn pin(
        &self,
        device: &str,
        session: Option<SessionId>,
        path: &[u8],
        options: PinOptions,
    ) -> io::Result<bool> {
        self.order(device, &TokenRequest::Pin { session, options, path: path.to_vec() })
    }

    /// Ends the pins of a path, as [`Mounts::pin`].
    ///
    /// # Errors
    /// As [`Mounts::pin`].
    pub fn unpin(&self, device: &str, path: &[u8]) -> io::Result<bool> {
        self.order(device, &TokenRequest::Unpin { path: path.to_vec() })
    }

    /// Adds a cell to all of these mounts, or replaces its location servers. Returns the mounts that did, and the reasons of the others.
    #[must_use]
    pub fn add_cell(&self, cell: &OtherCell) -> (Vec<MountLocation>, Vec<String>) {
        self.order_all(&TokenRequest::AddCell { cell: cell.clone() })
    }

    /// Gives ranks to addresses of file servers in all of these mounts; 0 takes a rank away. As [`Mounts::add_cell`].
    #[must_use]
    pub fn set_ranks(&self, ranks: &[(Ipv4Addr, u16)]) -> (Vec<MountLocation>, Vec<String>) {
        self.order_all(&TokenRequest::SetRanks { ranks: ranks.to_vec() })
    }

    fn order_all(&self, request: &TokenRequest) -> (Vec<MountLocation>, Vec<String>) {
        let (mut taken, mut refused) = (Vec::new(), Vec::new());
        for socket in &self.0 {
            let Ok(Some(TokenReply::Cells(cells))) = ask(socket, &TokenRequest::Cells) else { continue };
            let Some(mount) = cells.into_iter().find_map(|cell| cell.mount) else { continue };
            match ask(socket, request) {
                Ok(Some(TokenReply::Done)) => taken.push(mount),
                Ok(other) => refused.push(refusal(other).to_string()),
                Err(error) => refused.push(format!("{}: {error}", mount.directory.display())),
            }
        }
        (taken, refused)
    }

    fn order(&self, device: &str, request: &TokenRequest) -> io::Result<bool> {
        let Some(socket) = self.socket_of(device) else { return Ok(false) };
        match ask_within(socket, request, PATH_PATIENCE)? {
            Some(TokenReply::Done) => Ok(true),
            other => Err(refusal(other)),
        }
    }

    /// The pins of this user (for root, of all users) on each of these mounts. Mounts that do not reply, or are of a version that
    /// does not know the request, are left out.
    #[must_use]
    pub fn pins(&self) -> Vec<(MountLocation, Pinned)> {
        let mut all = Vec::new();
        for socket in &self.0 {
            let Ok(Some(TokenReply::Cells(cells))) = ask(socket, &TokenRequest::Cells) else { continue };
            let Some(mount) = cells.into_iter().find_map(|cell| cell.mount) else { continue };
            let mut after = 0;
            while let Ok(Some(TokenReply::Pins(told))) = ask(socket, &TokenRequest::Pins { after }) {
                // As of unsaved data: this ends whatever the mount replies.
                let Some(last) = told.last().map(|it| it.number).filter(|last| *last > after) else { break };
                after = last;
                all.extend(told.into_iter().map(|it| (mount.clone(), it)));
            }
        }
        all
    }

    /// Processes of these mounts that are stopped, and therefore do not reply.
    #[must_use]
    pub fn stopped(&self) -> Vec<u32> {
        let listener = |path: &PathBuf| Some(socket::peer(&socket::connect(path).ok()?).ok()?.pid);
        self.0.iter().filter_map(listener).filter(|pid| is_stopped(*pid)).collect()
    }

    fn ask(&self, request: &TokenRequest) -> Vec<io::Result<TokenReply>> {
        self.0.iter().filter_map(|path| ask(path, request).transpose()).collect()
    }
}

/// A mount that has unsaved data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsavedAt {
    /// The mount.
    pub mount: MountLocation,
    socket: PathBuf,
}

impl UnsavedAt {
    /// The first piece of the data at or after `offset`; an empty one at the end.
    ///
    /// # Errors
    /// The data is not there any more, or the mount does not reply.
    pub fn piece(&self, number: u64, offset: u64) -> io::Result<UnsavedPiece> {
        match ask(&self.socket, &TokenRequest::UnsavedPiece { number, offset })? {
            Some(TokenReply::UnsavedPiece(piece)) if piece.at >= offset => Ok(piece),
            other => Err(refusal(other)),
        }
    }

    /// Stores the data now, or drops it. A store that takes longer than a few seconds goes on: the same request waits for it again.
    ///
    /// # Errors
    /// The mount refuses, or does not reply.
    pub fn settle(&self, number: u64, how: Settle) -> io::Result<Settled> {
        match ask(&self.socket, &TokenRequest::SettleUnsaved { number, how })? {
            Some(TokenReply::Done) => Ok(Settled::Done),
            Some(TokenReply::Waiting(why)) if how == Settle::Retry => Ok(Settled::Waiting(why)),
            other => Err(refusal(other)),
        }
    }
}

/// How far an order about unsaved data has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It was carried out.
    Done,
    /// The store is in progress: what it waits for, in one line for the user.
    Waiting(String),
}

fn refusal(reply: Option<TokenReply>) -> io::Error {
    io::Error::other(match reply {
        Some(TokenReply::Refused(line)) => line,
        Some(_) => "the mount replied to another request".into(),
        None => "the mount has ended".into(),
    })
}

/// The cells that running mounts know.
#[must_use]
pub fn known_cells() -> Vec<CellLocation> {
    cells_by_mount().flatten().collect()
}

/// The home cells of running mounts.
#[must_use]
pub fn home_cells() -> Vec<CellLocation> {
    cells_by_mount().filter_map(|cells| cells.into_iter().next()).collect()
}

/// The home cell of a mount is the first in its list.
fn cells_by_mount() -> impl Iterator<Item = Vec<CellLocation>> {
    let cells = |answer| if let Ok(TokenReply::Cells(cells)) = answer { cells } else { Vec::new() };
    Mounts::running().ask(&TokenRequest::Cells).into_iter().map(cells)
}

/// Whether a socket is that of the mount with a device number.
fn is_mount(socket: &Path, device: &str) -> bool {
    let Ok(Some(TokenReply::Cells(cells))) = ask(socket, &TokenRequest::Cells) else { return false };
    cells.iter().filter_map(|cell| cell.mount.as_ref()).any(|mount| mount.device == device)
}

/// Sends a request; `None` if no mount of this user's listens: a killed process leaves its socket.
fn ask(path: &Path, request: &TokenRequest) -> io::Result<Option<TokenReply>> {
    ask_within(path, request, PATIENCE)
}

pub(super) fn ask_within(
    path: &Path,
    request: &TokenRequest,
    patience: Duration,
) -> io::Result<Option<TokenReply>> {
    let stream = match socket::connect(path) {
        Ok(stream) => stream,
        // No process listens there any more, or the mount belongs to another user.
        Err(e)
            if matches!(
                e.kind(),
                ErrorKind::ConnectionRefused | ErrorKind::NotFound | ErrorKind::PermissionDenied
            ) =>
        {
            return Ok(None);
        }
        Err(e) => return Err(e),
    };
    converse(&stream, request, patience).map(Some)
}

fn converse(stream: &UnixStream, request: &TokenRequest, patience: Duration) -> io::Result<TokenReply> {
    let Peer { uid: listener, pid } = socket::peer(stream)?;
    if listener != 0 && listener != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other(format!(
            "user {listener} listens where root's or one's own mounts should"
        )));
    }
    if is_stopped(pid) {
        return Err(io::Error::other(format!(
            "process {pid} of a mount is stopped; `kill -CONT {pid}` continues it"
        )));
    }
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    socket::ask(stream, request)
}

#[cfg(test)]
mod tests {
    use super::super::samples::kept;
    use super::super::server::{TokenHandler, TokenServer};
    use super::*;
    use afs_venus::TokenOwner;
    use std::sync::{Arc, Mutex};

    fn place(cell: &str) -> CellLocation {
        CellLocation { cell: CellName::new(cell).unwrap(), servers: vec![], base_port: 7000, mount: None }
    }

    #[test]
    fn a_mount_takes_tokens_of_the_user_the_kernel_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1.sock");
        let seen: Arc<Mutex<Vec<(TokenOwner, TokenRequest)>>> = Arc::default();
        let sink = seen.clone();
        let handler: TokenHandler = Arc::new(move |owner, request| {
            sink.lock().unwrap().push((owner, request.clone()));
            match request {
                TokenRequest::List { .. } => TokenReply::Tokens(vec![HeldToken {
                    cell: "example.org".into(),
                    user: "alice".into(),
                    without: Vec::new(),
                    expires: None,
                }]),
                TokenRequest::Remove { .. } => TokenReply::Refused("no".into()),
                TokenRequest::Cells => TokenReply::Cells(vec![place("example.org")]),
                _ => TokenReply::Done,
            }
        });
        let server = TokenServer::start(&path, true, handler).unwrap();
        let mounts = Mounts::at(vec![path.clone(), dir.path().join("gone.sock")]);
        let session = Some(SessionId([1; 16]));
        let handed = |taken, strangers| HandedOver { taken, refusals: Vec::new(), strangers };
        assert_eq!(mounts.hand_over(session, &kept("example.org", 9)), handed(1, 0));
        assert_eq!(mounts.held(None).len(), 1);
        mounts.forget(None, None);
        // A token of another cell is not shown to the mount.
        assert_eq!(mounts.hand_over(session, &kept("example.net", 9)), handed(0, 1));
        let is_cells = |request: &TokenRequest| matches!(request, TokenRequest::Cells);
        seen.lock().unwrap().retain(|(_, request)| !is_cells(request));
        let owners: Vec<TokenOwner> = seen.lock().unwrap().iter().map(|(owner, _)| *owner).collect();
        let uid = rustix::process::getuid().as_raw();
        let in_session = TokenOwner::Session { id: u128::from_be_bytes([1; 16]), uid };
        assert_eq!(owners, [in_session, TokenOwner::Uid(uid), TokenOwner::Uid(uid)]);
        drop(server);
        assert!(!path.exists());
        assert_eq!(mounts.hand_over(None, &kept("example.org", 9)), handed(0, 0));
    }

    #[test]
    fn unsaved_data_is_listed_to_its_end_and_a_refusal_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1.sock");
        let mount = MountLocation { directory: "/a".into(), device: "0:7".into(), pid: 1, serves: false };
        let one = |number| Unsaved {
            number,
            path: None,
            cell: "example.org".into(),
            fid: afs_venus::ExplainedFid { volume: 1, vnode: 2, unique: 3 },
            uid: None,
            length_bytes: 5,
            unsaved_bytes: 5,
            missing_bytes: 0,
            is_set_aside: false,
            is_kept: true,
            error: None,
            advice: String::new(),
            since: None,
        };
        let handler: TokenHandler = Arc::new(move |_, request| match request {
            TokenRequest::Cells => {
                TokenReply::Cells(vec![CellLocation { mount: Some(mount.clone()), ..place("example.org") }])
            }
            // The last number is repeated for ever.
            TokenRequest::Unsaved { after } => TokenReply::Unsaved(vec![one((after + 1).min(3))]),
            TokenRequest::UnsavedPiece { offset: 0, .. } => {
                TokenReply::UnsavedPiece(UnsavedPiece { at: 2, bytes: b"abc".to_vec() })
            }
            // Before the offset that was asked for.
            TokenRequest::UnsavedPiece { .. } => {
                TokenReply::UnsavedPiece(UnsavedPiece { at: 1, bytes: Vec::new() })
            }
            TokenRequest::SettleUnsaved { how: Settle::Retry, number: 1 } => TokenReply::Done,
            TokenRequest::SettleUnsaved { number: 3, .. } => TokenReply::Waiting("for it".into()),
            _ => TokenReply::Refused("it is open".into()),
        });
        let _server = TokenServer::start(&path, true, handler).unwrap();
        let all = Mounts::at(vec![path]).unsaved();
        assert_eq!(all.iter().map(|(_, it)| it.number).collect::<Vec<_>>(), [1, 2, 3]);
        let at = &all[0].0;
        assert_eq!(at.mount.directory, Path::new("/a"));
        assert_eq!(at.piece(1, 0).unwrap().bytes, b"abc");
        assert!(at.piece(1, 5).is_err());
        assert_eq!(at.settle(1, Settle::Retry).unwrap(), Settled::Done);
        assert_eq!(at.settle(3, Settle::Retry).unwrap(), Settled::Waiting("for it".into()));
        assert!(at.settle(3, Settle::Discard).is_err());
        assert_eq!(at.settle(1, Settle::Discard).unwrap_err().to_string(), "it is open");
    }
}
