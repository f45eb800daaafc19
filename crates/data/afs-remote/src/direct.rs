//! A drive to which clients go themselves, as the file server sees it: what their capabilities are sealed with, and revocations.

use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::{
    DriveKey, Generation, Group, GroupTag, HolderId, KeyEpoch, StagingTag, Terms, TransferId,
};
use afs_datapath::frame::{CHUNKS_MAX, ChunkReply, ChunkRequest, Content};
use afs_datapath::session::{Client, Error, Handle, Lost};
use afs_drive::ChunkRef;
use afs_env::{EnvExt, EnvRef, Instant};
use bytes::Bytes;
use parking_lot::Mutex;

use crate::managing::{is_other_epoch, manage};
use crate::options::RemoteOptions;

/// How long the file server waits for a drive that is to be told of a revocation. Clients may use what they have there until it
/// expires, if the drive cannot be told.
pub const TELL_MAX: Duration = Duration::from_secs(3);
/// After a failed attempt nobody waits for another one for this long.
const PAUSE: Duration = Duration::from_secs(10);

/// A drive to which a file server sends clients. Clones are the same.
///
/// The drive alone has the generations of its groups. This end knows a lower bound of the latest one, which is what it seals
/// with: a revocation after that voids what was sealed. What the drive could not be told of, it is told before anything
/// else is sealed, by a revocation of all.
///
/// A key that the drive exchanges voids what was sealed with the earlier one. The later one is sealed with once this end knows that
/// the drive has it, which is before the rights are looked at; so a revocation concerns one key.
#[derive(Clone)]
pub struct DirectDrive(Arc<Inner>);

/// What capabilities and bindings for a drive are sealed with.
#[derive(Clone, Debug)]
pub struct Sealing {
    /// The key that the drive has.
    pub key: Arc<DriveKey>,
    /// The latest generation that it told.
    pub generation: Generation,
    /// It believes no binding of an earlier generation than this one, whatever it is for.
    pub valid_from: Generation,
}

/// A connection, the capability presented on it, and the key that the drive had then.
#[derive(Clone)]
struct Open {
    client: Client,
    handle: Handle,
    key: Arc<DriveKey>,
}

struct Inner {
    env: EnvRef,
    options: RemoteOptions,
    turn: afs_env::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: Option<Open>,
    latest: Generation,
    /// The latest that was told with a revocation of all, or of which this end does not know what else it revoked.
    valid_from: Generation,
    failed: Option<Instant>,
    /// Revocations of which the drive may not know, the start of this process included; and how many of them it was told of since.
    missed: u64,
    made_good: u64,
}

impl Open {
    /// Whether the connection lives, and the drive has the same key as when it was opened, as far as known.
    fn is_good(&self, epoch: KeyEpoch) -> bool {
        self.client.lost().is_none() && self.key.epoch() == epoch
    }

    /// What is sealed with here, as far as the state knows.
    fn sealing(&self, state: &State) -> Sealing {
        Sealing { key: self.key.clone(), generation: state.latest, valid_from: state.valid_from }
    }
}

impl DirectDrive {
    /// A drive that is not connected yet. It does not know what an earlier process gave out.
    #[must_use]
    pub fn new(env: EnvRef, options: RemoteOptions) -> Self {
        let state = Mutex::new(State { missed: 1, ..State::default() });
        Self(Arc::new(Inner { env, options, turn: afs_env::sync::Mutex::new(()), state }))
    }

    /// Where it is, and its keys.
    #[must_use]
    pub fn options(&self) -> &RemoteOptions {
        &self.0.options
    }

    /// Key and generation to seal with, to be asked for before the rights are looked at; `None` while the drive cannot be told of
    /// revocations: then no client is to be sent there. Waits at most [`TELL_MAX`], and not at all after a failure a moment ago.
    pub async fn sealing(&self) -> Option<Sealing> {
        if let Some(known) = self.0.known() {
            return Some(known);
        }
        if self.0.has_failed_recently() {
            return None;
        }
        let ready = self.0.env.timeout(TELL_MAX, self.0.connect()).await;
        ready.ok().flatten()
    }

    /// Revokes capabilities and bindings for groups of files. When this returns `true` the drive sends nothing more by them; otherwise they
    /// may be good there until the capabilities expire, and all of the drive's are revoked before others are sealed.
    pub async fn revoke(&self, groups: &[Group]) -> bool {
        let mut is_told = true;
        for groups in groups.chunks(CHUNKS_MAX) {
            let tags = |key: &DriveKey| groups.iter().map(|group| key.tag(*group)).collect();
            is_told &= self.tell(|key| ChunkRequest::Revoke { groups: tags(key) }).await;
        }
        is_told
    }

    /// As [`DirectDrive::revoke`], for everything.
    pub async fn revoke_all(&self) -> bool {
        let is_told = self.tell(|_| ChunkRequest::RevokeAll).await;
        // What was sealed since then may count as revoked too: it is asked for again.
        let mut state = self.0.state.lock();
        state.valid_from = state.latest;
        drop(state);
        is_told
    }

    /// Commands a transfer to a client that waits for it. `false` if the drive was not told: it is away, or has too many commands.
    /// Takes at most [`TELL_MAX`].
    pub async fn deliver(&self, to: (GroupTag, TransferId), chunk: ChunkRef, terms: Terms) -> bool {
        let (group, transfer) = to;
        self.command(ChunkRequest::Deliver { group, transfer, chunk, terms }).await
    }

    /// Commands a transfer from a client that waits for it, into a room. As [`DirectDrive::deliver`].
    pub async fn collect(&self, from: (HolderId, TransferId), tag: StagingTag, content: Content) -> bool {
        let (holder, transfer) = from;
        self.command(ChunkRequest::Collect { holder, tag, transfer, content }).await
    }

    async fn command(&self, what: ChunkRequest) -> bool {
        let Some(open) = self.0.open() else { return false };
        let told = self.0.env.timeout(TELL_MAX, open.client.perform(&open.handle, what, Bytes::new())).await;
        matches!(told, Ok(Ok(ChunkReply::Done)))
    }

    async fn tell(&self, what: impl Fn(&DriveKey) -> ChunkRequest + Send + Sync) -> bool {
        let telling = async {
            // What is revoked with all that a connection begins with need not be told by itself.
            if self.0.known().is_none() {
                self.0.miss();
                return self.0.connect().await.is_some();
            }
            let Some(open) = self.0.open() else { return false };
            let told = open.client.perform(&open.handle, what(&open.key), Bytes::new()).await;
            if told.as_ref().is_err_and(is_other_epoch) {
                // All that the revocation could name is void with the key; what is sealed next, after all is revoked.
                self.0.miss();
                return true;
            }
            self.0.note(&told)
        };
        if self.0.known().is_none() && self.0.has_failed_recently() {
            self.0.miss();
            return false;
        }
        let is_told = self.0.env.timeout(TELL_MAX, telling).await.unwrap_or(false);
        if !is_told {
            self.0.fail("it could not be told of a revocation");
        }
        is_told
    }
}

impl Inner {
    /// The latest generation, where a connection lives and the drive knows of all revocations.
    fn known(&self) -> Option<Sealing> {
        let epoch = self.options.keys.present().epoch();
        let state = self.state.lock();
        let open = state.open.as_ref().filter(|open| open.is_good(epoch))?;
        let sealing = open.sealing(&state);
        (state.missed == state.made_good).then_some(sealing)
    }

    fn open(&self) -> Option<Open> {
        let epoch = self.options.keys.present().epoch();
        self.state.lock().open.clone().filter(|open| open.is_good(epoch))
    }

    fn has_failed_recently(&self) -> bool {
        let now = self.env.now();
        self.state.lock().failed.is_some_and(|at| now.saturating_since(at) < PAUSE)
    }

    fn miss(&self) {
        self.state.lock().missed += 1;
    }

    /// The drive may not know of a revocation, or not be there.
    fn fail(&self, why: &str) {
        let now = self.env.now();
        let mut state = self.state.lock();
        state.missed += 1;
        let was_known = state.failed.replace(now).is_some();
        drop(state);
        if !was_known {
            tracing::warn!(drive = %self.options.name, why, "no client is sent to a drive");
        }
    }

    /// Whether a revocation was made.
    fn note(&self, reply: &Result<ChunkReply, Error>) -> bool {
        let Ok(ChunkReply::Revoked { latest }) = reply else { return false };
        let mut state = self.state.lock();
        state.latest = state.latest.max(*latest);
        true
    }

    /// Connects if need be, and tells the drive what it may have missed.
    async fn connect(&self) -> Option<Sealing> {
        let _turn = self.turn.lock().await;
        if let Some(known) = self.known() {
            return Some(known);
        }
        let first = self.attempt().await;
        let attempted = match first {
            // The drive has exchanged its key since the connection was opened.
            Err(error) if is_other_epoch(&error) => self.attempt().await,
            first => first,
        };
        match attempted {
            Ok(sealing) => Some(sealing),
            Err(error) => {
                self.fail(&error.to_string());
                None
            }
        }
    }

    async fn attempt(&self) -> Result<Sealing, Error> {
        let open = match self.open() {
            Some(open) => open,
            None => self.open_new().await?,
        };
        let (missed, is_unsure) = {
            let state = self.state.lock();
            (state.missed, state.missed != state.made_good)
        };
        let nothing = ChunkRequest::Revoke { groups: Vec::new() };
        let what = if is_unsure { ChunkRequest::RevokeAll } else { nothing };
        let reply = open.client.perform(&open.handle, what, Bytes::new()).await;
        if reply.as_ref().is_err_and(is_other_epoch) {
            self.state.lock().open = None;
        }
        let reply = reply?;
        let ChunkReply::Revoked { latest } = reply else { return Err(Error::Length) };
        let mut state = self.state.lock();
        if is_unsure || latest > state.latest {
            state.valid_from = state.valid_from.max(latest);
        }
        state.latest = state.latest.max(latest);
        state.made_good = missed;
        state.failed = None;
        let sealing = open.sealing(&state);
        state.open = Some(open);
        Ok(sealing)
    }

    async fn open_new(&self) -> Result<Open, Error> {
        let (env, options) = (&self.env, &self.options);
        let stream = env.connect(options.address).await.map_err(Lost::from)?;
        let client = Client::open(env.clone(), stream, options.security, options.patience).await?;
        let (key, handle) = manage(&client, options)?;
        Ok(Open { client, handle, key })
    }
}
