//! The connection to a remote drive: opened when it is needed, opened again when it was lost.

use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::KeyEpoch;
use afs_datapath::frame::{ChunkReply, ChunkRequest};
use afs_datapath::session::{Client, Error, Handle, Lost};
use afs_drive::{ChunkId, Returned, Usage};
use afs_env::{EnvExt, EnvRef, Instant};
use bytes::Bytes;
use parking_lot::Mutex;

use crate::managing::{is_other_epoch, manage};
use crate::options::RemoteOptions;

/// Time-out of one attempt to connect.
const ATTEMPT: Duration = Duration::from_secs(5);
/// After a failed attempt no other is made for this long.
const PAUSE: Duration = Duration::from_secs(1);
/// Between two attempts to reach a drive of which nobody wants anything while it is away.
const WATCH: Duration = Duration::from_secs(5);

/// A connection with the capability presented on it, and the store begun.
#[derive(Clone)]
pub(crate) struct Open {
    pub client: Client,
    pub handle: Handle,
    epoch: KeyEpoch,
}

pub(crate) struct Connection {
    env: EnvRef,
    options: RemoteOptions,
    /// One attempt at a time: who waits for it takes its outcome.
    turn: afs_env::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: Option<Open>,
    failed: Option<(Instant, Arc<str>)>,
    away_since: Option<Instant>,
    /// Whether a task makes attempts until the drive is there.
    is_watched: bool,
    returned: Option<Returned>,
    after: Option<ChunkId>,
    mark: Option<ChunkId>,
    /// Where the last sweep of what was left began and ended: nothing before the former is claimed.
    begun: Option<ChunkId>,
    swept: Option<ChunkId>,
    /// Whether something may be left that no sweep was begun for.
    is_unclear: bool,
    run: Option<u64>,
    usage: Option<Usage>,
}

impl Connection {
    pub fn new(env: EnvRef, options: RemoteOptions) -> Self {
        Self { env, options, turn: afs_env::sync::Mutex::new(()), state: Mutex::default() }
    }

    pub fn options(&self) -> &RemoteOptions {
        &self.options
    }

    pub fn env(&self) -> &EnvRef {
        &self.env
    }

    /// New chunks get greater ids than this one.
    pub fn continue_after(&self, last: ChunkId) {
        let mut state = self.state.lock();
        state.after = state.after.max(Some(last));
    }

    /// Greater than the ids of all chunks that were there before this file server wrote its first one; known once there
    /// was a connection.
    pub fn mark(&self) -> Option<ChunkId> {
        self.state.lock().mark
    }

    /// Chunks before this one are not claimed: a sweep may free them.
    pub fn claimed_from(&self) -> Option<ChunkId> {
        let state = self.state.lock();
        state.begun.max(state.mark)
    }

    /// Has the drive tell a mark: a later one than those before, where something was written since.
    pub fn begin_request(&self) -> ChunkRequest {
        ChunkRequest::Begin { after: self.state.lock().after.unwrap_or(ChunkId::MIN) }
    }

    /// An operation may have left something on the drive.
    pub fn note_unclear(&self) {
        self.state.lock().is_unclear = true;
    }

    /// Whether an operation may have left something since the last time.
    pub fn take_unclear(&self) -> bool {
        std::mem::take(&mut self.state.lock().is_unclear)
    }

    /// Begins a sweep of what was left before a mark: no chunk before it is claimed any more. Returns where the last one ended.
    pub fn begin_sweep(&self, mark: ChunkId) -> ChunkId {
        let mut state = self.state.lock();
        state.begun = state.begun.max(Some(mark));
        state.swept.or(state.mark).unwrap_or(mark)
    }

    /// Everything before a mark is swept.
    pub fn end_sweep(&self, mark: ChunkId) {
        let mut state = self.state.lock();
        state.swept = state.swept.max(Some(mark));
    }

    /// The latest that is known of the space on the drive.
    pub fn usage(&self) -> Option<Usage> {
        self.state.lock().usage
    }

    pub fn set_usage(&self, usage: Usage) {
        self.state.lock().usage = Some(usage);
    }

    /// Until when an operation makes attempts that began at a time: for so long, unless the drive has been away for a part of it.
    /// One that is away for longer costs each operation one attempt.
    pub fn patience(&self, began: Instant, wait: Duration) -> Instant {
        let away_since = self.state.lock().away_since.unwrap_or(began);
        (away_since + wait).max(began + PAUSE)
    }

    /// The drive has not replied to an operation that began at a time. It is watched from now on until it is there.
    pub fn note_away(self: &Arc<Self>, began: Instant) {
        let was_watched = {
            let mut state = self.state.lock();
            state.away_since.get_or_insert(began);
            std::mem::replace(&mut state.is_watched, true)
        };
        if !was_watched {
            self.watch();
        }
    }

    /// What is called when the drive is there again.
    pub fn on_return(&self, told: Returned) {
        self.state.lock().returned = Some(told);
    }

    fn watch(self: &Arc<Self>) {
        let (env, connection) = (self.env.clone(), Arc::downgrade(self));
        self.env.spawn(Box::pin(async move {
            loop {
                env.sleep(WATCH).await;
                let Some(connection) = connection.upgrade() else { return };
                // What fails after the attempt has a task of its own.
                connection.state.lock().is_watched = false;
                if connection.open().await.is_ok() || connection.is_watched_again() {
                    return;
                }
            }
        }));
    }

    /// Whether another task has begun to watch the drive; if not, the one that asks goes on.
    fn is_watched_again(&self) -> bool {
        std::mem::replace(&mut self.state.lock().is_watched, true)
    }

    /// Why there is no connection, where an attempt failed just now.
    pub fn why_away(&self) -> Arc<str> {
        self.state
            .lock()
            .failed
            .as_ref()
            .map_or_else(|| "it was not reached yet".into(), |(_, why)| why.clone())
    }

    /// The connection, or why there is none. Takes at most the time of an attempt.
    pub async fn open(&self) -> Result<Open, Arc<str>> {
        let _turn = self.turn.lock().await;
        if let Some(known) = self.known() {
            return known;
        }
        let attempts = async {
            match self.attempt().await {
                // The drive has exchanged its key meanwhile.
                Err(error) if is_other_epoch(&error) => self.attempt().await,
                first => first,
            }
        };
        let attempt = self.env.timeout(ATTEMPT, attempts).await;
        let why: Arc<str> = match attempt {
            Ok(Ok(open)) => return Ok(open),
            Ok(Err(error)) => error.to_string().into(),
            Err(_) => "no answer within 5 s".into(),
        };
        self.note_failure(&why);
        Err(why)
    }

    /// Uses a connection no longer on which the drive has another key now.
    pub fn forget(&self, open: &Open) {
        self.state.lock().open.take_if(|known| known.epoch == open.epoch);
    }

    /// A connection that lives, or a failure that is not long ago.
    fn known(&self) -> Option<Result<Open, Arc<str>>> {
        let (now, epoch) = (self.env.now(), self.options.keys.present().epoch());
        let mut state = self.state.lock();
        let is_good = |open: &Open| open.client.lost().is_none() && open.epoch == epoch;
        state.open = state.open.take().filter(is_good);
        if let Some(open) = &state.open {
            return Some(Ok(open.clone()));
        }
        let recent = state.failed.as_ref().filter(|(at, _)| now - *at < PAUSE);
        recent.map(|(_, why)| Err(why.clone()))
    }

    async fn attempt(&self) -> Result<Open, Error> {
        let client = self.connect().await?;
        let (key, handle) = manage(&client, &self.options)?;
        let begun = client.perform(&handle, self.begin_request(), Bytes::new()).await?;
        let open = Open { client, handle, epoch: key.epoch() };
        self.note_success(begun, &open);
        Ok(open)
    }

    async fn connect(&self) -> Result<Client, Lost> {
        let (env, options) = (&self.env, &self.options);
        let stream = env.connect(options.address).await?;
        Client::open(env.clone(), stream, options.security, options.patience).await
    }

    fn note_success(&self, begun: ChunkReply, open: &Open) {
        let mut state = self.state.lock();
        let mut returned = None;
        if let ChunkReply::Begun { run, mark, usage } = begun {
            // What was asked for on the connection before, and not answered, may have been done.
            state.is_unclear |= state.mark.is_some();
            state.mark.get_or_insert(mark);
            let before = state.run.replace(run);
            state.usage = Some(usage);
            state.away_since = None;
            let is_back = state.failed.take().is_some();
            // A connection that was lost and opened at once is not enough: it may be lost in the same way by the next operation.
            if is_back || before.is_some_and(|before| before != run) {
                tracing::info!(drive = %self.options.name, run, "the drive is back");
                returned = state.returned.clone();
            }
        }
        state.open = Some(open.clone());
        drop(state);
        returned.iter().for_each(|told| told());
    }

    fn note_failure(&self, why: &Arc<str>) {
        let now = self.env.now();
        let was_known = self.state.lock().failed.replace((now, why.clone())).is_some();
        if !was_known {
            let (drive, address) = (&self.options.name, self.options.address);
            tracing::warn!(%drive, %address, %why, "a drive is away: its files cannot be read, and nothing stored there");
        }
    }
}
