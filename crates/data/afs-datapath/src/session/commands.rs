//! Transfers that a file server commands: each command is matched with the request of the client that waits for it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::time::Duration;

use afs_drive::ChunkRef;
use afs_env::sync::oneshot;
use afs_env::{EnvExt, EnvRef, Instant};
use parking_lot::Mutex;

use crate::capability::{GroupTag, HolderId, Refusal, StagingTag, StoreNumber, Terms, TransferId};
use crate::frame::{Content, Failure};

/// Most commands of a kind that are kept for clients whose requests have not arrived yet.
const EARLY_MAX: usize = 1024;
/// Of them, most to collect bytes of one holder: as many as a client of ours has in progress at a drive, four times over.
const HOLDER_EARLY_MAX: usize = 64;
/// How long a command is kept for the client's request, and a request waits for its command.
pub(super) const WAIT: Duration = Duration::from_secs(10);

/// Transfers to clients. Who waits for one is known by the group of a capability, which only the drive's key makes, and a number that the
/// client has chosen at random. So nobody takes what was commanded for another client, who neither has that capability nor has
/// heard that number.
pub(super) type Deliveries = Commands<GroupTag, Delivery>;

/// Transfers from clients, which are known by the holder of a capability for the same reason. Many groups have many clients, so that a
/// group has no share of the table; a holder is one.
pub(super) type Collections = Commands<HolderId, Collection>;

/// What is to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Delivery {
    pub chunk: ChunkRef,
    pub terms: Terms,
}

impl Delivery {
    /// Whether a client asks for what was commanded.
    ///
    /// # Errors
    /// [`Refusal::OtherObject`], [`Refusal::OutOfRange`].
    pub fn permits(&self, chunk: ChunkRef, range: &Range<u32>) -> Result<(), Refusal> {
        if chunk != self.chunk {
            return Err(Refusal::OtherObject);
        }
        let is_inside = self.terms.start <= range.start && range.end <= self.terms.end;
        if is_inside { Ok(()) } else { Err(Refusal::OutOfRange) }
    }
}

/// What is to be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Collection {
    pub room: (StoreNumber, StagingTag),
    pub content: Content,
}

impl Collection {
    /// Whether a client sends what was commanded.
    ///
    /// # Errors
    /// [`Refusal::OtherObject`] for another room or other bytes, [`Refusal::OutOfRange`] for more or fewer.
    pub fn permits(&self, room: (StoreNumber, StagingTag), content: Content) -> Result<(), Refusal> {
        if room != self.room {
            return Err(Refusal::OtherObject);
        }
        if content.length != self.content.length {
            return Err(Refusal::OutOfRange);
        }
        if content == self.content { Ok(()) } else { Err(Refusal::OtherObject) }
    }
}

/// The commands and requests that have not met, by group and number. Either may arrive first, as they come over different connections;
/// each command is for one request.
pub(super) struct Commands<G, C> {
    /// Most commands of a group without their requests.
    early_of_group: usize,
    table: Mutex<Table<G, C>>,
}

struct Table<G, C> {
    waiting: BTreeMap<(G, TransferId), oneshot::Sender<C>>,
    early: BTreeMap<(G, TransferId), (Instant, C)>,
}

impl Deliveries {
    /// None yet.
    pub fn new() -> Self {
        Self::with_share(EARLY_MAX)
    }
}

impl Collections {
    /// None yet.
    pub fn new() -> Self {
        Self::with_share(HOLDER_EARLY_MAX)
    }
}

impl<G: Copy + Ord, C: Send> Commands<G, C> {
    fn with_share(early_of_group: usize) -> Self {
        let (waiting, early) = (BTreeMap::new(), BTreeMap::new());
        Self { early_of_group, table: Mutex::new(Table { waiting, early }) }
    }

    /// A command has arrived.
    ///
    /// # Errors
    /// [`Failure::Busy`] if too many wait for their clients.
    pub fn command(&self, receiver: (G, TransferId), command: C, now: Instant) -> Result<(), Failure> {
        let mut table = self.table.lock();
        let unsent = match table.waiting.remove(&receiver) {
            Some(waiting) => waiting.send(command).err(),
            None => Some(command),
        };
        unsent.map_or(Ok(()), |command| table.keep(receiver, command, now, self.early_of_group))
    }

    /// Waits for the command to a receiver, at most [`WAIT`].
    ///
    /// # Errors
    /// [`Failure::Stalled`] if none comes; [`Failure::Invalid`] if another request waits for it.
    pub async fn wait(&self, env: &EnvRef, receiver: (G, TransferId)) -> Result<C, Failure> {
        let begun = self.table.lock().begin_wait(receiver, env.now())?;
        let commanded = match begun {
            Begun::Early(command) => return Ok(command),
            Begun::Waiting(commanded) => commanded,
        };
        let _leave = Leave { commands: self, receiver };
        let commanded = env.timeout(WAIT, commanded).await;
        commanded.map_err(|_| Failure::Stalled)?.map_err(|_| Failure::Stalled)
    }
}

enum Begun<C> {
    Early(C),
    Waiting(oneshot::Receiver<C>),
}

impl<G: Copy + Ord, C> Table<G, C> {
    fn keep(
        &mut self,
        receiver: (G, TransferId),
        command: C,
        now: Instant,
        of_group: usize,
    ) -> Result<(), Failure> {
        if self.is_full(receiver.0, of_group) {
            self.early.retain(|_, (at, _)| now.saturating_since(*at) < WAIT);
        }
        if self.is_full(receiver.0, of_group) {
            return Err(Failure::Busy);
        }
        self.early.insert(receiver, (now, command));
        Ok(())
    }

    /// Whether as many commands are kept as may be, in all or of a group.
    fn is_full(&self, group: G, of_group: usize) -> bool {
        let numbers = (group, TransferId(0))..=(group, TransferId(u128::MAX));
        self.early.len() >= EARLY_MAX
            || of_group < EARLY_MAX && self.early.range(numbers).take(of_group).count() >= of_group
    }

    fn begin_wait(&mut self, receiver: (G, TransferId), now: Instant) -> Result<Begun<C>, Failure> {
        if let Some((at, command)) = self.early.remove(&receiver)
            && now.saturating_since(at) < WAIT
        {
            return Ok(Begun::Early(command));
        }
        let (command, commanded) = oneshot::channel();
        match self.waiting.entry(receiver) {
            Entry::Occupied(_) => Err(Failure::Invalid),
            Entry::Vacant(place) => {
                place.insert(command);
                Ok(Begun::Waiting(commanded))
            }
        }
    }
}

/// Takes a request out of the table that does not wait any more.
struct Leave<'a, G: Copy + Ord, C> {
    commands: &'a Commands<G, C>,
    receiver: (G, TransferId),
}

impl<G: Copy + Ord, C> Drop for Leave<'_, G, C> {
    fn drop(&mut self) {
        self.commands.table.lock().waiting.remove(&self.receiver);
    }
}
