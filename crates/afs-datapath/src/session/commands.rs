//! Transfers that a file server commands: each command is matched with the request of the client that waits for it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::time::Duration;

use afs_drive::ChunkRef;
use afs_env::sync::oneshot;
use afs_env::{EnvExt, EnvRef, Instant};
use parking_lot::Mutex;

use crate::capability::{GroupTag, Refusal, Terms, TransferId};
use crate::frame::Failure;

/// Most commands that are kept for clients whose requests have not arrived yet.
const EARLY_MAX: usize = 1024;
/// How long a command is kept for the client's request, and a request waits for its command.
pub(super) const WAIT: Duration = Duration::from_secs(10);

/// Who waits for a transfer: the group of a capability, which only the drive's key makes, and a number that the client has chosen at random. So
/// nobody takes what was commanded for another client, who neither has that capability nor has heard that number.
pub(super) type Receiver = (GroupTag, TransferId);

/// What is to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Command {
    pub chunk: ChunkRef,
    pub terms: Terms,
}

impl Command {
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

/// The commands and requests that have not met. Either may arrive first, as they come over different connections; each command is
/// for one request.
#[derive(Default)]
pub(super) struct Commands(Mutex<Table>);

#[derive(Default)]
struct Table {
    waiting: BTreeMap<Receiver, oneshot::Sender<Command>>,
    early: BTreeMap<Receiver, (Instant, Command)>,
}

impl Commands {
    /// A command has arrived.
    ///
    /// # Errors
    /// [`Failure::Busy`] if too many wait for their clients.
    pub fn command(&self, receiver: Receiver, command: Command, now: Instant) -> Result<(), Failure> {
        let mut table = self.0.lock();
        let unsent = match table.waiting.remove(&receiver) {
            Some(waiting) => waiting.send(command).err(),
            None => Some(command),
        };
        unsent.map_or(Ok(()), |command| table.keep(receiver, command, now))
    }

    /// Waits for the command to a receiver, at most [`WAIT`].
    ///
    /// # Errors
    /// [`Failure::Stalled`] if none comes; [`Failure::Invalid`] if another request waits for it.
    pub async fn wait(&self, env: &EnvRef, receiver: Receiver) -> Result<Command, Failure> {
        let begun = self.0.lock().begin_wait(receiver, env.now())?;
        let commanded = match begun {
            Begun::Early(command) => return Ok(command),
            Begun::Waiting(commanded) => commanded,
        };
        let _leave = Leave { commands: self, receiver };
        let commanded = env.timeout(WAIT, commanded).await;
        commanded.map_err(|_| Failure::Stalled)?.map_err(|_| Failure::Stalled)
    }
}

enum Begun {
    Early(Command),
    Waiting(oneshot::Receiver<Command>),
}

impl Table {
    fn keep(&mut self, receiver: Receiver, command: Command, now: Instant) -> Result<(), Failure> {
        if self.early.len() >= EARLY_MAX {
            self.early.retain(|_, (at, _)| now.saturating_since(*at) < WAIT);
        }
        if self.early.len() >= EARLY_MAX {
            return Err(Failure::Busy);
        }
        self.early.insert(receiver, (now, command));
        Ok(())
    }

    fn begin_wait(&mut self, receiver: Receiver, now: Instant) -> Result<Begun, Failure> {
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
struct Leave<'a> {
    commands: &'a Commands,
    receiver: Receiver,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.commands.0.lock().waiting.remove(&self.receiver);
    }
}
