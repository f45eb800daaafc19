//! Table of the tokens of a mount: handed in by its users, renewed, and given to the cache manager.

use super::error::TokenError;
use super::initial_token;
use super::kept::KeptToken;
use super::messages::{CellLocation, HeldToken, MountLocation, Settle, TokenReply, TokenRequest};
use super::mount_files::MountFiles;
use super::mount_properties::{MountProperties, PropertyRequest};
use super::renew::keep;
use super::server::TokenServer;
use super::session::SessionId;
use super::socket_paths::tokens_directory;
use super::store::TokenStore;
use crate::error::CellResult;
use crate::tokens::socket_path;
use afs_auth::rxgk::CallbackOffer;
use afs_net::System;
use afs_rpc::future::{Either, select};
use afs_rpc::sync::Notify;
use afs_rpc::{Env, EnvExt, Rx, Security, UnixTime};
use afs_venus::{KnownCell, Token, TokenOwner, Unsettled, Venus};
use afs_wire::ids::{CellName, Uuid};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

/// Most tokens of one user of the machine, in all sessions together; more are refused. The cache manager bounds the
/// total.
const OF_USER_MAX: usize = 64;
/// Interval of looks at the clock, which may jump, until a token ends.
const END_CHECK: Duration = Duration::from_secs(60);

/// Whose token it is, and of which cell.
type Key = (TokenOwner, CellName);

/// Accepts tokens for a mount, passes them to its cache manager, and renews them.
pub struct MountTokens {
    system: Arc<System>,
    rx: Rx,
    venus: Arc<Venus>,
    callback: Arc<CallbackOffer>,
    properties: MountProperties,
    mount: MountLocation,
    held: Mutex<BTreeMap<Key, MountToken>>,
    /// By which the next process of the mount has them; `None`: there is no place for them.
    files: Option<MountFiles>,
    own: Weak<Self>,
}

struct MountToken {
    kept: KeptToken,
    /// Ends the renewal of the token.
    replaced: Arc<Notify>,
}

impl MountTokens {
    /// Opens the token socket of a mount, for `everybody` on the machine or for this user alone. It begins with the tokens that the last
    /// process of the mount, which has this permanent name, had of others, and with those that this user has kept from earlier logins, and
    /// serves requests until the socket is dropped.
    ///
    /// # Errors
    /// The socket cannot be opened.
    pub fn open(
        rx: &Rx,
        callback: &Arc<CallbackOffer>,
        properties: MountProperties,
        mount: MountLocation,
        everybody: bool,
        name: Uuid,
    ) -> CellResult<TokenServer> {
        let directory = tokens_directory()
            .inspect_err(|error| tracing::warn!("tokens are not kept for a restart of this mount: {error}"));
        let files = directory.ok().map(|directory| MountFiles::at(directory.join(name.to_string())));
        let desk = Arc::new_cyclic(|own| Self {
            system: properties.system().clone(),
            rx: rx.clone(),
            venus: properties.venus().clone(),
            callback: callback.clone(),
            properties,
            mount,
            held: Mutex::default(),
            files,
            own: own.clone(),
        });
        // Before the first login can arrive.
        desk.take_of_last_process();
        desk.take_kept();
        let handler = Arc::new(move |owner, request| desk.answer(owner, request));
        let path = socket_path().map_err(TokenError::Socket)?;
        Ok(TokenServer::start(&path, everybody, handler).map_err(TokenError::Socket)?)
    }

    /// Takes the tokens that the last process of the mount had. Those of the user who mounts only as far as there is a token file of
    /// the same login: that user may have logged out meanwhile.
    fn take_of_last_process(&self) {
        let Some(files) = &self.files else { return };
        let own = TokenOwner::Uid(rustix::process::getuid().as_raw());
        let known: Vec<CellName> = self.cells().into_iter().map(|place| place.cell).collect();
        for (owner, kept) in files.take_valid(self.system.wall()) {
            if owner == own && !is_in_file(&kept) {
                files.remove(owner, &kept.cell);
            } else if known.contains(&kept.cell) {
                self.take_again(owner, kept);
            } else if let Some(desk) = self.own.upgrade() {
                // The cell has to be looked up first.
                self.system.blocking(Box::new(move || desk.take_again(owner, kept)));
            }
        }
    }

    fn take_again(&self, owner: TokenOwner, kept: KeptToken) {
        let cell = kept.cell.clone();
        if let TokenReply::Refused(line) = self.set(owner, kept) {
            tracing::warn!("a token of {owner} for {cell} cannot be used after the restart: {line}");
        }
    }

    /// Takes the tokens that the user who mounts has kept from earlier logins.
    fn take_kept(&self) {
        for (n, place) in self.cells().into_iter().enumerate() {
            let kept = TokenStore::current()
                .and_then(|store| initial_token::kept_for((&place, n == 0), &store, self.system.wall()));
            match kept {
                Ok(Some(kept)) => self.begin_with(kept),
                Ok(None) => {}
                Err(error) => tracing::warn!("the token file of {} cannot be used: {error}", place.cell),
            }
        }
    }

    fn begin_with(&self, kept: KeptToken) {
        let uid = rustix::process::getuid().as_raw();
        let session = SessionId::current().ok().flatten();
        let in_session = |session: SessionId| TokenOwner::Session { id: session.number(), uid };
        let owner = session.map_or(TokenOwner::Uid(uid), in_session);
        let cell = kept.cell.clone();
        if let TokenReply::Refused(line) = self.set(owner, kept) {
            tracing::warn!("the token file of {cell} cannot be used: {line}");
        }
    }

    fn answer(&self, owner: TokenOwner, request: TokenRequest) -> TokenReply {
        match request {
            TokenRequest::Set { token, .. } => self.set(owner, *token),
            TokenRequest::Remove { cell, .. } => self.remove(owner, cell.as_ref()),
            TokenRequest::List { .. } => TokenReply::Tokens(self.list(owner)),
            TokenRequest::Cells => TokenReply::Cells(self.cells()),
            TokenRequest::Explain { path, .. } => {
                TokenReply::Explained(Box::new(self.venus.explain(owner, &path)))
            }
            TokenRequest::Activity { checks_servers } => {
                if checks_servers {
                    self.system.block_on(self.venus.check_servers());
                }
                TokenReply::Activity(Box::new(self.venus.activity()))
            }
            TokenRequest::Unsaved { after } => TokenReply::Unsaved(self.venus.unsaved(owner, after)),
            TokenRequest::UnsavedPiece { number, offset } => {
                let piece = self.venus.unsaved_piece(owner, number, offset);
                match self.system.block_on(piece) {
                    Ok(piece) => TokenReply::UnsavedPiece(piece),
                    Err(error) => TokenReply::Refused(error.to_string()),
                }
            }
            TokenRequest::SettleUnsaved { number, how } => self.settle(owner, number, how),
            TokenRequest::Pin { options, path, .. } => {
                done(self.system.block_on(self.venus.pin(owner, &path, options)).map(drop))
            }
            TokenRequest::Unpin { path } => done(self.system.block_on(self.venus.unpin(owner, &path))),
            TokenRequest::Property { inode, name, value, .. } => {
                self.properties.answer(owner, PropertyRequest { inode, name, value })
            }
            TokenRequest::Pins { after } => TokenReply::Pins(self.venus.pins(owner, after)),
            TokenRequest::AddCell { cell } => self.ordered(owner, || {
                let added = self.venus.configure_cell(&cell.config(true));
                added.map_err(|error| format!("the mount does not take the cell {}: {error}", cell.name))
            }),
            TokenRequest::SetRanks { ranks } => self.ordered(owner, || {
                let rank = |(address, rank)| (IpAddr::V4(address), Some(rank).filter(|rank| *rank != 0));
                let ranks: Vec<_> = ranks.into_iter().map(rank).collect();
                self.venus
                    .set_ranks(&ranks)
                    .map_err(|error| format!("the mount does not take the ranks: {error}"))
            }),
        }
    }

    /// An order that concerns all users of the mount.
    fn ordered(&self, owner: TokenOwner, order: impl FnOnce() -> Result<(), String>) -> TokenReply {
        if ![0, rustix::process::getuid().as_raw()].contains(&owner.uid()) {
            return TokenReply::Refused(format!(
                "only root and the user who mounted {} may do that",
                self.mount.directory.display()
            ));
        }
        done(order())
    }

    /// The cells that the mount knows, the home cell first.
    fn cells(&self) -> Vec<CellLocation> {
        let mount = with_device(&self.mount);
        let location = |cell: KnownCell| CellLocation {
            servers: cell.location_servers.iter().filter_map(v4).collect(),
            cell: cell.name,
            base_port: cell.file_port,
            mount: Some(mount.clone()),
        };
        self.venus.cells().into_iter().map(location).collect()
    }

    fn settle(&self, owner: TokenOwner, number: u64, how: Settle) -> TokenReply {
        let settled = match how {
            Settle::Retry => self.system.block_on(self.venus.retry_unsaved(owner, number)),
            Settle::Discard => self.system.block_on(self.venus.discard_unsaved(owner, number)),
        };
        match settled {
            Err(Unsettled::Waiting(why)) => TokenReply::Waiting(why),
            other => done(other),
        }
    }

    fn set(&self, owner: TokenOwner, kept: KeptToken) -> TokenReply {
        let key = (owner, kept.cell.clone());
        if is_full_for(&key, self.held.lock().keys()) {
            return TokenReply::Refused(format!("a user has at most {OF_USER_MAX} tokens on a mount"));
        }
        if let Err(line) = self.system.block_on(self.use_token(owner, &kept)) {
            return TokenReply::Refused(line);
        }
        let replaced = Arc::<Notify>::default();
        let before =
            self.held.lock().insert(key, MountToken { kept: kept.clone(), replaced: replaced.clone() });
        self.keep_in_file(owner, &kept);
        if let Some(before) = before {
            before.replaced.notify_waiters();
        }
        self.keep_alive(owner, kept, &replaced);
        TokenReply::Done
    }

    async fn use_token(&self, owner: TokenOwner, kept: &KeptToken) -> Result<(), String> {
        let source = kept.token().source_with_callback(self.rx.env().clone(), self.callback.clone());
        let token = Token {
            cell: kept.cell.clone(),
            security: Security::new(source),
            expires: kept.token().expires(),
            label: kept.label(),
            is_narrowed: !kept.grant.without.is_empty(),
        };
        self.venus.set_token(owner, token).await.map_err(|error| error.to_string())
    }

    /// Renews a token until it is replaced or removed.
    fn keep_alive(&self, owner: TokenOwner, kept: KeptToken, replaced: &Arc<Notify>) {
        let (rx, desk, replaced) = (self.rx.clone(), self.own.clone(), replaced.clone().notified_owned());
        self.system.spawn(Box::pin(async move {
            let renewed = |kept: &KeptToken| {
                if let Some(desk) = desk.upgrade() {
                    desk.renewed(owner, kept);
                }
            };
            let (env, cell) = (rx.env().clone(), kept.cell.clone());
            let end = || desk.upgrade().and_then(|desk| desk.end_of(owner, &cell));
            let to_the_end = async {
                keep(&rx, kept, renewed).await;
                while end().is_some_and(|end| end > env.wall()) {
                    env.sleep(END_CHECK).await;
                }
            };
            if let Either::Right(()) = select(to_the_end, replaced).await {
                tracing::debug!("a token of {owner} was replaced or removed");
            } else if let Some(desk) = desk.upgrade() {
                desk.ended(owner, cell.clone());
            }
        }));
    }

    fn renewed(&self, owner: TokenOwner, kept: &KeptToken) {
        match self.held.lock().get_mut(&(owner, kept.cell.clone())) {
            Some(held) if kept.is_renewal_of(&held.kept) => held.kept = kept.clone(),
            // It was replaced while it was renewed, perhaps by one with fewer groups.
            _ => return,
        }
        let (Some(desk), cell) = (self.own.upgrade(), kept.cell.clone()) else { return };
        self.system.spawn(Box::pin(async move { desk.use_held(owner, cell).await }));
        let uid = rustix::process::getuid().as_raw();
        let (desk, kept) = (self.own.clone(), kept.clone());
        self.system.blocking(Box::new(move || {
            if let Some(desk) = desk.upgrade() {
                desk.keep_in_file(owner, &kept);
            }
            if owner == TokenOwner::Uid(uid) {
                update_file(&kept);
            }
        }));
    }

    /// Passes the token that is held to the cache manager, and again if it was replaced meanwhile.
    async fn use_held(&self, owner: TokenOwner, cell: CellName) {
        let key = (owner, cell);
        let held = || self.held.lock().get(&key).map(|held| held.kept.clone());
        let mut used = None;
        while let Some(kept) = held().filter(|kept| used.as_ref() != Some(kept)) {
            if let Err(error) = self.use_token(owner, &kept).await {
                tracing::warn!("a renewed token of {owner} cannot be used: {error}");
            }
            used = Some(kept);
        }
    }

    /// Writes a token for the next process of the mount, unless it was replaced or removed meanwhile.
    fn keep_in_file(&self, owner: TokenOwner, kept: &KeptToken) {
        let Some(files) = &self.files else { return };
        let key = (owner, kept.cell.clone());
        files.put(owner, kept, || self.held.lock().get(&key).is_some_and(|held| held.kept == *kept));
    }

    /// When a token that is in use ends; `None`: it is not, or has no end.
    fn end_of(&self, owner: TokenOwner, cell: &CellName) -> Option<UnixTime> {
        self.held.lock().get(&(owner, cell.clone())).and_then(|held| held.kept.token().expires())
    }

    /// Removes the file of a token that has ended.
    fn ended(&self, owner: TokenOwner, cell: CellName) {
        let desk = self.own.clone();
        self.system.blocking(Box::new(move || {
            if let Some(desk) = desk.upgrade()
                && desk.end_of(owner, &cell).is_some_and(|end| end <= desk.system.wall())
            {
                desk.files.iter().for_each(|files| files.remove(owner, &cell));
            }
        }));
    }

    fn remove(&self, owner: TokenOwner, cell: Option<&CellName>) -> TokenReply {
        let mut removed = Vec::new();
        self.held.lock().retain(|key, held| {
            let goes = key.0 == owner && cell.is_none_or(|cell| *cell == key.1);
            if goes {
                removed.push((key.1.clone(), held.replaced.clone()));
            }
            !goes
        });
        removed.iter().for_each(|(cell, replaced)| {
            replaced.notify_waiters();
            self.files.iter().for_each(|files| files.remove(owner, cell));
        });
        match self.system.block_on(self.venus.remove_token(owner, cell)) {
            Ok(_) => TokenReply::Done,
            Err(error) => TokenReply::Refused(error.to_string()),
        }
    }

    fn list(&self, owner: TokenOwner) -> Vec<HeldToken> {
        let held = self.held.lock();
        let of_owner = held.iter().filter(|((of, _), _)| *of == owner);
        let show = |((_, cell), held): (&(TokenOwner, CellName), &MountToken)| HeldToken {
            cell: cell.to_string(),
            user: held.kept.user.clone(),
            without: held.kept.grant.without.clone(),
            expires: held.kept.token().expires().map(|end: UnixTime| end.secs),
        };
        of_owner.map(show).collect()
    }
}

/// Whether the user of a token has as many others as a user may have.
fn is_full_for<'a>(key: &Key, held: impl Iterator<Item = &'a Key>) -> bool {
    held.filter(|other| *other != key && other.0.uid() == key.0.uid()).count() >= OF_USER_MAX
}

/// Whether a token file of this user has a token of the same login with the same groups.
fn is_in_file(kept: &KeptToken) -> bool {
    let in_file = TokenStore::current().and_then(|store| store.get(&kept.cell));
    in_file.is_ok_and(|in_file| in_file.is_some_and(|in_file| kept.is_renewal_of(&in_file)))
}

fn done<E: std::fmt::Display>(outcome: Result<(), E>) -> TokenReply {
    outcome.map_or_else(|error| TokenReply::Refused(error.to_string()), |()| TokenReply::Done)
}

/// The mount with the device number that the kernel has for the mount point by now.
fn with_device(mount: &MountLocation) -> MountLocation {
    let all = crate::mounts::list().unwrap_or_default();
    let found = all.into_iter().rev().find(|found| found.directory == mount.directory);
    MountLocation { device: found.map(|found| found.device).unwrap_or_default(), ..mount.clone() }
}

fn v4(peer: &SocketAddr) -> Option<Ipv4Addr> {
    match peer.ip() {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    }
}

/// Writes a renewed token to its user's file, if the file still has the token of the same login with the same groups.
fn update_file(kept: &KeptToken) {
    let update = || -> CellResult {
        let store = TokenStore::current()?;
        match store.get(&kept.cell)? {
            Some(in_file) if kept.is_renewal_of(&in_file) => store.put(kept),
            _ => Ok(()),
        }
    };
    if let Err(error) = update() {
        tracing::warn!("a renewed token was not written to its file: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_so_many_tokens_whatever_the_sessions_and_others_have_theirs() {
        let cell = |n: usize| CellName::new(&format!("cell{n}.org")).unwrap();
        let session = |n: usize| TokenOwner::Session { id: n as u128, uid: 5 };
        let mut held: Vec<Key> = (0..OF_USER_MAX - 1).map(|n| (session(n), cell(n))).collect();
        let next = (TokenOwner::Uid(5), cell(0));
        assert!(!is_full_for(&next, held.iter()));
        held.push(next.clone());
        assert!(!is_full_for(&next, held.iter()), "in the place of an earlier one");
        assert!(is_full_for(&(TokenOwner::Uid(5), cell(1)), held.iter()));
        assert!(!is_full_for(&(TokenOwner::Uid(6), cell(1)), held.iter()));
    }
}
