//! Advisory locks of client machines.
//!
//! The locking calls of AFS-3 name no owner; the owner is the client machine that calls, and clients
//! arbitrate among their own processes (docs/protocol fileserver.md "8. Advisory locks"). Only its holder
//! extends or releases a lock, and each holder's part of a shared lock ends by itself.
//!
//! A lock is written to disk before the client gets its reply, so it outlives the process: after a restart a
//! lock lasts one lifetime, in which its holder extends it. The row of a released lock stays for a few
//! seconds, so that a lock which the same machine takes again and again is written once; after a crash in
//! that time the object seems locked to other machines for one lifetime at most. An orderly stop leaves no
//! such rows.
//!
//! Who is refused is remembered, and told in the order of asking when the lock is free (docs/protocol extensions.md "A
//! lock that is free").

mod holder;
mod waiters;

use std::collections::{BTreeMap, BTreeSet};

use afs_rpc::sync::Notify;
use afs_wire::error::Errno;
use afs_wire::fs::LOCK_LIFETIME;
use afs_wire::ids::{Fid, UnixSeconds, VolumeId};
use parking_lot::{Mutex, MutexGuard};

use crate::hosts::HostId;
pub use holder::Holder;
use waiters::Waiters;

/// The kind of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockMode {
    /// Shared with other readers.
    Read,
    /// Exclusive.
    Write,
}

impl LockMode {
    /// Whether two machines cannot hold both.
    fn conflicts_with(self, other: LockMode) -> bool {
        self == LockMode::Write || other == LockMode::Write
    }
}

/// One machine's hold on a lock.
#[derive(Clone, Copy, Debug)]
struct Hold {
    mode: LockMode,
    /// How often it was taken. A writer takes it once.
    count: u32,
    /// Expiry, in seconds of the server's clock.
    end: u64,
    /// Whether it is from before a restart, and not heard of since.
    restored: bool,
}

/// What became of a lock that was asked for and that nobody refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// It is set, and on disk.
    Yes,
    /// It is set, and must be written before the client gets its reply; then [`Locks::kept`].
    NotYet,
    /// It is not set: the row of an earlier one of this machine is being deleted. It can be set after the next [`Locks::deleted`].
    Leaving,
}

/// All locks of a server. At most `locks_max` holds at a time; one more is refused as if it conflicted.
pub struct Locks {
    state: Mutex<State>,
    locks_max: usize,
    /// Told by [`Locks::deleted`].
    rows_deleted: Notify,
}

#[derive(Default)]
struct State {
    held: BTreeMap<Fid, BTreeMap<Holder, Hold>>,
    count: usize,
    /// Instances of the volumes that have locks.
    instances: BTreeMap<VolumeId, UnixSeconds>,
    /// Rows that are on disk.
    rows: BTreeMap<(Fid, Holder), LockMode>,
    /// Those rows that were not needed at the last sweep.
    idle: BTreeSet<(Fid, Holder)>,
    /// Rows being deleted.
    leaving: BTreeSet<(Fid, Holder)>,
    /// Who was refused.
    waiters: Waiters,
}

impl Locks {
    /// No locks, and room for `locks_max`.
    pub fn new(locks_max: usize) -> Self {
        Locks { state: Mutex::default(), locks_max, rows_deleted: Notify::new() }
    }

    /// Restores a lock written before a restart, for one lifetime from `now`.
    pub fn restore(&self, fid: Fid, holder: Holder, mode: LockMode, now: u64) {
        let mut state = self.lock();
        state.rows.insert((fid, holder), mode);
        if state.count < self.locks_max {
            let hold = Hold { mode, count: 1, end: now + LOCK_LIFETIME.as_secs(), restored: true };
            state.put(fid, holder, hold);
        }
    }

    /// Records the creation time of the instance of a volume on this server. Locks of an earlier instance are
    /// dropped: the volume has been elsewhere meanwhile, where other machines may have locked and changed its
    /// objects.
    pub fn see(&self, volume: VolumeId, instance: UnixSeconds) {
        let mut state = self.lock();
        let before = state.instances.insert(volume, instance);
        if before.is_some_and(|before| before != instance) {
            state.held.retain(|fid, _| fid.volume != volume);
            state.count = state.held.values().map(BTreeMap::len).sum();
        }
    }

    /// Locks an object at `now` for one lifetime, or refuses with [`Errno::EAGAIN`].
    pub fn set(&self, fid: Fid, holder: Holder, mode: LockMode, now: u64) -> Result<Kept, Errno> {
        let mut state = self.lock();
        state.drop_ended(fid, now);
        let own =
            state.held.get(&fid).and_then(|holds| holds.get(&holder)).filter(|own| !own.restored).copied();
        let own_conflicts = own.is_some_and(|own| own.mode.conflicts_with(mode));
        if own_conflicts || state.is_kept_away(fid, holder, mode) {
            return Err(Errno::EAGAIN);
        }
        if state.leaving.contains(&(fid, holder)) {
            return Ok(Kept::Leaving);
        }
        if state.count >= self.locks_max || state.rows.len() >= 2 * self.locks_max {
            state.drop_all_ended(now);
            if state.count >= self.locks_max || state.rows.len() >= 2 * self.locks_max {
                return Err(Errno::EAGAIN);
            }
        }
        let (count, end) = (own.map_or(0, |own| own.count) + 1, now + LOCK_LIFETIME.as_secs());
        state.put(fid, holder, Hold { mode, count, end, restored: false });
        state.waiters.remove(fid, holder);
        let kept = state.rows.get(&(fid, holder)) == Some(&mode);
        Ok(if kept { Kept::Yes } else { Kept::NotYet })
    }

    /// Remembers a client that was refused. Returns false if another one's lock is not in its way any more.
    pub fn wait(&self, fid: Fid, holder: Holder, host: HostId, mode: LockMode) -> bool {
        let mut state = self.lock();
        let is_kept_away = state.is_kept_away(fid, holder, mode);
        if is_kept_away {
            state.waiters.add(fid, holder, host, mode, self.locks_max);
        }
        is_kept_away
    }

    /// The clients to tell that a lock is free for them; others are kept away until [`Locks::replied`].
    pub fn call(&self, fid: Fid) -> Vec<(Holder, HostId)> {
        let state = &mut *self.lock();
        let held = state.held.get(&fid);
        state.waiters.call(fid, |holder, mode| is_held_against(held, holder, mode))
    }

    /// A client has replied that was told: it has taken the lock, or does not want it.
    pub fn replied(&self, fid: Fid, holder: Holder) {
        self.lock().waiters.replied(fid, holder);
    }

    /// Converts a machine's lock to another mode for another lifetime: to an exclusive one for the only
    /// reader, or from exclusive to shared. [`Errno::EAGAIN`] when there are other readers, [`Errno::EINVAL`]
    /// when the machine no longer holds a lock.
    pub fn change(&self, fid: Fid, holder: Holder, mode: LockMode, now: u64) -> Result<Kept, Errno> {
        let mut state = self.lock();
        state.drop_ended(fid, now);
        let holds = state.held.get(&fid).ok_or(Errno::EINVAL)?;
        let own = *holds.get(&holder).ok_or(Errno::EINVAL)?;
        if mode == LockMode::Write && (holds.len() > 1 || own.count > 1) {
            return Err(Errno::EAGAIN);
        }
        let end = now + LOCK_LIFETIME.as_secs();
        state.put(fid, holder, Hold { mode, count: own.count, end, restored: false });
        let kept = state.rows.get(&(fid, holder)) == Some(&mode);
        Ok(if kept { Kept::Yes } else { Kept::NotYet })
    }

    /// Records that a lock has been written to disk.
    pub fn kept(&self, fid: Fid, holder: Holder, mode: LockMode) {
        self.lock().rows.insert((fid, holder), mode);
    }

    /// Transfers to a machine its holds on an object under other names; returns the mode if there were any,
    /// which must then be written to disk like a lock that was set.
    pub fn adopt(&self, fid: Fid, earlier: &[Holder], holder: Holder) -> Option<LockMode> {
        let mut state = self.lock();
        let mut adopted = None;
        for other in earlier {
            let holds = state.held.get(&fid)?;
            let Some(mut hold) = holds.get(other).copied() else { continue };
            if let Some(own) = holds.get(&holder) {
                let is_alone = hold.mode == LockMode::Write || own.mode == LockMode::Write;
                hold.mode = if is_alone { LockMode::Write } else { LockMode::Read };
                (hold.count, hold.end) = (hold.count.max(own.count), hold.end.max(own.end));
            }
            state.take(fid, *other);
            state.put(fid, holder, hold);
            adopted = Some(hold.mode);
        }
        adopted
    }

    /// Extends a machine's lock by another lifetime, also one that has expired if no other machine took it
    /// since. [`Errno::EINVAL`] when the machine does not hold it.
    pub fn extend(&self, fid: Fid, holder: Holder, now: u64) -> Result<(), Errno> {
        let mut state = self.lock();
        let hold = state.held.get_mut(&fid).and_then(|holds| holds.get_mut(&holder)).ok_or(Errno::EINVAL)?;
        (hold.end, hold.restored) = (now + LOCK_LIFETIME.as_secs(), false);
        Ok(())
    }

    /// Releases a machine's lock; returns whether the object has become free. Releasing a lock that the machine does not hold is no error (docs/protocol fileserver.md
    /// "15. Traps", T21), and changes nothing.
    pub fn release(&self, fid: Fid, holder: Holder) -> bool {
        let mut state = self.lock();
        let Some(hold) = state.held.get_mut(&fid).and_then(|holds| holds.get_mut(&holder)) else {
            return false;
        };
        hold.count -= 1;
        if hold.count == 0 {
            state.take(fid, holder);
        }
        !state.held.contains_key(&fid)
    }

    /// The lock count of a status: 0 free or expired, n readers, -1 a writer.
    pub fn count(&self, fid: Fid, now: u64) -> i32 {
        let state = self.lock();
        let live = state.held.get(&fid).into_iter().flatten().map(|(_, hold)| hold);
        live.filter(|hold| hold.end >= now).fold(0, |sum, hold| match hold.mode {
            LockMode::Write => -1,
            LockMode::Read => sum + i32::try_from(hold.count).unwrap_or(i32::MAX),
        })
    }

    /// Whether a machine holds a lock on an object under one of these names.
    pub fn is_held_by(&self, fid: Fid, names: impl IntoIterator<Item = Holder>) -> bool {
        let state = self.lock();
        let holds = state.held.get(&fid);
        holds.is_some_and(|holds| names.into_iter().any(|name| holds.contains_key(&name)))
    }

    /// Drops the locks on a deleted object.
    pub fn forget(&self, fid: Fid) {
        let mut state = self.lock();
        if let Some(holds) = state.held.remove(&fid) {
            state.count -= holds.len();
        }
        state.waiters.forget(fid);
    }

    /// Drops holds that expired a lifetime ago; returns the rows that have not been needed since the previous
    /// sweep. The caller deletes them, then calls [`Locks::deleted`].
    pub fn sweep(&self, now: u64) -> Vec<(Fid, Holder)> {
        let mut state = self.lock();
        state.drop_all_ended(now.saturating_sub(LOCK_LIFETIME.as_secs()));
        let State { held, instances, .. } = &mut *state;
        let volumes: BTreeSet<VolumeId> = held.keys().map(|fid| fid.volume).collect();
        instances.retain(|volume, _| volumes.contains(volume));
        let (unneeded, before) = (state.unneeded(), std::mem::take(&mut state.idle));
        let (leaving, idle): (Vec<_>, Vec<_>) = unneeded.into_iter().partition(|key| before.contains(key));
        state.idle = idle.into_iter().collect();
        state.leave(leaving)
    }

    /// All rows that are not needed now, however briefly; otherwise as [`Locks::sweep`].
    pub fn sweep_all(&self) -> Vec<(Fid, Holder)> {
        let mut state = self.lock();
        let unneeded = state.unneeded();
        state.leave(unneeded)
    }

    /// The next [`Locks::deleted`].
    pub fn next_deletion(&self) -> impl Future<Output = ()> + Send {
        self.rows_deleted.notified()
    }

    /// Records that rows have been deleted.
    pub fn deleted(&self, rows: &[(Fid, Holder)]) {
        let mut state = self.lock();
        for key in rows {
            state.leaving.remove(key);
        }
        drop(state);
        self.rows_deleted.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Whether the lock of another machine is in the way.
fn is_held_against(held: Option<&BTreeMap<Holder, Hold>>, holder: Holder, mode: LockMode) -> bool {
    held.into_iter().flatten().any(|(other, hold)| *other != holder && hold.mode.conflicts_with(mode))
}

impl State {
    /// Whether another machine's lock is in the way, or another machine that was told that the lock is free.
    fn is_kept_away(&self, fid: Fid, holder: Holder, mode: LockMode) -> bool {
        is_held_against(self.held.get(&fid), holder, mode) || self.waiters.keeps_away(fid, holder, mode)
    }

    fn unneeded(&self) -> Vec<(Fid, Holder)> {
        let needed =
            |key: &(Fid, Holder)| self.held.get(&key.0).is_some_and(|holds| holds.contains_key(&key.1));
        self.rows.keys().filter(|key| !needed(key)).copied().collect()
    }

    fn leave(&mut self, rows: Vec<(Fid, Holder)>) -> Vec<(Fid, Holder)> {
        for key in &rows {
            self.rows.remove(key);
            self.leaving.insert(*key);
        }
        rows
    }

    fn put(&mut self, fid: Fid, holder: Holder, hold: Hold) {
        let old = self.held.entry(fid).or_default().insert(holder, hold);
        self.count += usize::from(old.is_none());
    }

    fn take(&mut self, fid: Fid, holder: Holder) {
        let Some(holds) = self.held.get_mut(&fid) else { return };
        self.count -= usize::from(holds.remove(&holder).is_some());
        if holds.is_empty() {
            self.held.remove(&fid);
        }
    }

    fn drop_ended(&mut self, fid: Fid, now: u64) {
        let holds = self.held.get(&fid).into_iter().flatten();
        let ended: Vec<Holder> =
            holds.filter(|(_, hold)| hold.end < now).map(|(holder, _)| *holder).collect();
        for holder in ended {
            self.take(fid, holder);
        }
    }

    fn drop_all_ended(&mut self, now: u64) {
        let fids: Vec<Fid> = self.held.keys().copied().collect();
        for fid in fids {
            self.drop_ended(fid, now);
        }
    }
}

#[cfg(test)]
mod tests;
