//! Advisory locks: who uses what, as far as clients tell each other.
//!
//! AFS-3 names no owner in these calls; the owner is the client machine that calls, and clients arbitrate among their own
//! processes (docs/protocol fileserver.md "8. Advisory locks"). Only its holder extends or releases a lock, and each holder's
//! part of a shared lock ends by itself.
//!
//! Who holds what is written down before the client is told, so that it outlives the process: after a restart a lock lasts one
//! lifetime, in which its holder extends it. The row of a lock that was released stays for a few seconds, so that a lock that is
//! taken again and again by the same machine is written once; after a crash in that time the object seems locked to other machines
//! for one lifetime at most. An orderly stop leaves no such rows.

mod holder;

use std::collections::{BTreeMap, BTreeSet};

use afs_wire::error::Errno;
use afs_wire::fs::LOCK_LIFETIME;
use afs_wire::ids::{Fid, UnixSeconds, VolumeId};
use parking_lot::{Mutex, MutexGuard};

pub use holder::Holder;

/// The kind of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockMode {
    /// Shared with other readers.
    Read,
    /// Alone.
    Write,
}

/// What one machine holds of a lock.
#[derive(Clone, Copy, Debug)]
struct Hold {
    mode: LockMode,
    /// How often it took it. A writer did so once.
    count: u32,
    /// Seconds of the server's clock.
    end: u64,
    /// From before a restart, and not heard of since.
    restored: bool,
}

/// Whether a lock that was set is written down already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// It is.
    Yes,
    /// It has to be, before the client is told; then [`Locks::kept`].
    NotYet,
}

/// All locks of a server. At most `locks_max` holds at a time; one more is refused as if it conflicted.
pub struct Locks {
    state: Mutex<State>,
    locks_max: usize,
}

#[derive(Default)]
struct State {
    held: BTreeMap<Fid, BTreeMap<Holder, Hold>>,
    count: usize,
    /// Instances of volumes of which there are locks.
    instances: BTreeMap<VolumeId, UnixSeconds>,
    /// Rows that are on disk.
    rows: BTreeMap<(Fid, Holder), LockMode>,
    /// Those of them that were not needed at the last sweep.
    idle: BTreeSet<(Fid, Holder)>,
    /// Rows that are being deleted.
    leaving: BTreeSet<(Fid, Holder)>,
}

impl Locks {
    /// No locks, and room for `locks_max`.
    pub fn new(locks_max: usize) -> Self {
        Locks { state: Mutex::default(), locks_max }
    }

    /// Takes in a lock that was written down before a restart, for one lifetime from `now`.
    pub fn restore(&self, fid: Fid, holder: Holder, mode: LockMode, now: u64) {
        let mut state = self.lock();
        state.rows.insert((fid, holder), mode);
        if state.count < self.locks_max {
            let hold = Hold { mode, count: 1, end: now + LOCK_LIFETIME.as_secs(), restored: true };
            state.put(fid, holder, hold);
        }
    }

    /// Says when the instance of a volume that is on this server came to be. Locks of an earlier one are gone: the volume has been
    /// elsewhere meanwhile, where others may have locked and changed what is in it.
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
        let holds = state.held.get(&fid);
        let conflicts = |hold: &Hold| hold.mode == LockMode::Write || mode == LockMode::Write;
        let others = holds.into_iter().flatten().any(|(other, hold)| *other != holder && conflicts(hold));
        let own = holds.and_then(|holds| holds.get(&holder)).filter(|own| !own.restored).copied();
        if others || own.is_some_and(|own| conflicts(&own)) || state.leaving.contains(&(fid, holder)) {
            return Err(Errno::EAGAIN);
        }
        if state.count >= self.locks_max || state.rows.len() >= 2 * self.locks_max {
            state.drop_all_ended(now);
            if state.count >= self.locks_max || state.rows.len() >= 2 * self.locks_max {
                return Err(Errno::EAGAIN);
            }
        }
        let (count, end) = (own.map_or(0, |own| own.count) + 1, now + LOCK_LIFETIME.as_secs());
        state.put(fid, holder, Hold { mode, count, end, restored: false });
        let kept = state.rows.get(&(fid, holder)) == Some(&mode);
        Ok(if kept { Kept::Yes } else { Kept::NotYet })
    }

    /// Makes a machine's lock one of another kind for another lifetime: one alone of the only reader, a reader's of one alone.
    /// [`Errno::EAGAIN`] where there are other readers, [`Errno::EINVAL`] where the machine holds no lock any more.
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

    /// A lock has been written down.
    pub fn kept(&self, fid: Fid, holder: Holder, mode: LockMode) {
        self.lock().rows.insert((fid, holder), mode);
    }

    /// Gives a machine what it holds of an object under other names; answers the kind if that was something, which then has to be
    /// written down like a lock that was set.
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

    /// Lets a machine's lock last another lifetime, also one that has ended if nobody took it since. Not locked by that
    /// machine is [`Errno::EINVAL`].
    pub fn extend(&self, fid: Fid, holder: Holder, now: u64) -> Result<(), Errno> {
        let mut state = self.lock();
        let hold = state.held.get_mut(&fid).and_then(|holds| holds.get_mut(&holder)).ok_or(Errno::EINVAL)?;
        (hold.end, hold.restored) = (now + LOCK_LIFETIME.as_secs(), false);
        Ok(())
    }

    /// A machine gives one lock up; answers whether the object has become free, so that those who wait should look again. Not
    /// locked by that machine is no error (docs/protocol fileserver.md "15. Traps", T21), and changes nothing.
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

    /// What a status says: 0 free or ended, n readers, -1 a writer.
    pub fn count(&self, fid: Fid, now: u64) -> i32 {
        let state = self.lock();
        let live = state.held.get(&fid).into_iter().flatten().map(|(_, hold)| hold);
        live.filter(|hold| hold.end >= now).fold(0, |sum, hold| match hold.mode {
            LockMode::Write => -1,
            LockMode::Read => sum + i32::try_from(hold.count).unwrap_or(i32::MAX),
        })
    }

    /// Forgets the locks on an object that exists no longer.
    pub fn forget(&self, fid: Fid) {
        let mut state = self.lock();
        if let Some(holds) = state.held.remove(&fid) {
            state.count -= holds.len();
        }
    }

    /// Forgets holds that ended a lifetime ago; answers the rows that have not been needed since the sweep before. They are to be
    /// deleted, and then [`Locks::deleted`].
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

    /// All rows that are not needed at this moment, however short the time; likewise.
    pub fn sweep_all(&self) -> Vec<(Fid, Holder)> {
        let mut state = self.lock();
        let unneeded = state.unneeded();
        state.leave(unneeded)
    }

    /// Rows have been deleted.
    pub fn deleted(&self, rows: &[(Fid, Holder)]) {
        let mut state = self.lock();
        for key in rows {
            state.leaving.remove(key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
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
