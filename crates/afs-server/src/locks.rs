//! Advisory locks: who uses what, as far as clients tell each other.
//!
//! The server keeps a count and an end for each locked object and no list of owners: clients arbitrate among their own
//! processes (docs/protocol fileserver.md "8. Advisory locks"). Locks are in memory: a restart forgets them, which
//! is harmless after one lifetime.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use afs_wire::error::Errno;
use afs_wire::fs::LOCK_LIFETIME;
use afs_wire::ids::Fid;

/// The kind of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockMode {
    /// Shared with other readers.
    Read,
    /// Alone.
    Write,
}

#[derive(Clone, Copy)]
struct Held {
    /// Readers, or -1 for one writer.
    count: i32,
    /// Seconds of the server's clock.
    end: u64,
}

/// All locks of a server. At most `locks_max` at a time; one more is refused as if it conflicted.
pub struct Locks {
    held: Mutex<BTreeMap<Fid, Held>>,
    locks_max: usize,
}

impl Locks {
    /// No locks, and room for `locks_max`.
    pub fn new(locks_max: usize) -> Self {
        Locks { held: Mutex::default(), locks_max }
    }

    /// Locks an object at `now` for one lifetime, or refuses with [`Errno::EAGAIN`].
    pub fn set(&self, fid: Fid, mode: LockMode, now: u64) -> Result<(), Errno> {
        let mut held = self.lock();
        if held.len() >= self.locks_max && !held.contains_key(&fid) {
            held.retain(|_, lock| lock.end >= now);
            if held.len() >= self.locks_max {
                return Err(Errno::EAGAIN);
            }
        }
        let lock = held.entry(fid).or_insert(Held { count: 0, end: 0 });
        if now > lock.end {
            lock.count = 0;
        }
        match mode {
            LockMode::Read if lock.count >= 0 => lock.count += 1,
            LockMode::Write if lock.count == 0 => lock.count = -1,
            _ => return Err(Errno::EAGAIN),
        }
        lock.end = now + LOCK_LIFETIME.as_secs();
        Ok(())
    }

    /// Makes a lock one of another kind for another lifetime: one alone of the only reader, a reader's of one alone.
    /// [`Errno::EAGAIN`] where there are other readers, [`Errno::EINVAL`] where there is no lock any more.
    pub fn change(&self, fid: Fid, mode: LockMode, now: u64) -> Result<(), Errno> {
        let mut held = self.lock();
        let lock = held.get_mut(&fid).filter(|lock| now <= lock.end).ok_or(Errno::EINVAL)?;
        lock.count = match (mode, lock.count) {
            (LockMode::Write, -1 | 1) => -1,
            (LockMode::Read, -1) => 1,
            (LockMode::Read, readers) => readers,
            (LockMode::Write, _) => return Err(Errno::EAGAIN),
        };
        lock.end = now + LOCK_LIFETIME.as_secs();
        Ok(())
    }

    /// Lets a lock last another lifetime, also one that has ended if nobody took it since. Not locked is
    /// [`Errno::EINVAL`].
    pub fn extend(&self, fid: Fid, now: u64) -> Result<(), Errno> {
        let mut held = self.lock();
        let lock = held.get_mut(&fid).ok_or(Errno::EINVAL)?;
        lock.end = now + LOCK_LIFETIME.as_secs();
        Ok(())
    }

    /// Gives one lock up; answers whether the object is free now, so that those who wait should look again. Not locked
    /// is no error (docs/protocol fileserver.md "15. Traps", T21).
    pub fn release(&self, fid: Fid) -> bool {
        let mut held = self.lock();
        if let Some(lock) = held.get_mut(&fid) {
            lock.count -= 1;
            if lock.count > 0 {
                return false;
            }
            held.remove(&fid);
        }
        true
    }

    /// What a status says: 0 free or ended, n readers, -1 a writer.
    pub fn count(&self, fid: Fid, now: u64) -> i32 {
        self.lock().get(&fid).filter(|lock| lock.end >= now).map_or(0, |lock| lock.count)
    }

    /// Forgets the lock on an object that exists no longer.
    pub fn forget(&self, fid: Fid) {
        self.lock().remove(&fid);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Fid, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use afs_wire::ids::VolumeId;

    use super::*;

    const F: Fid = Fid::root(VolumeId(1));
    const AGAIN: Result<(), Errno> = Err(Errno::EAGAIN);

    #[test]
    fn readers_share_and_writers_do_not() {
        let locks = Locks::new(10);
        assert_eq!(locks.set(F, LockMode::Read, 0), Ok(()));
        assert_eq!(locks.set(F, LockMode::Read, 0), Ok(()));
        assert_eq!((locks.set(F, LockMode::Write, 0), locks.count(F, 0)), (AGAIN, 2));
        assert!(!locks.release(F) && locks.release(F));
        assert_eq!((locks.set(F, LockMode::Write, 0), locks.count(F, 0)), (Ok(()), -1));
        assert_eq!((locks.set(F, LockMode::Write, 0), locks.set(F, LockMode::Read, 0)), (AGAIN, AGAIN));
        assert!(locks.release(F) && locks.release(F));
    }

    #[test]
    fn a_lock_is_changed_without_a_moment_in_which_another_could_take_it() {
        let locks = Locks::new(10);
        assert_eq!(locks.change(F, LockMode::Write, 0), Err(Errno::EINVAL));
        locks.set(F, LockMode::Read, 0).unwrap();
        locks.set(F, LockMode::Read, 0).unwrap();
        assert_eq!((locks.change(F, LockMode::Write, 0), locks.count(F, 0)), (AGAIN, 2));
        locks.release(F);
        assert_eq!((locks.change(F, LockMode::Write, 0), locks.count(F, 0)), (Ok(()), -1));
        assert_eq!((locks.change(F, LockMode::Read, 0), locks.count(F, 0)), (Ok(()), 1));
        assert_eq!(locks.change(F, LockMode::Write, 301), Err(Errno::EINVAL));
    }

    #[test]
    fn locks_end_and_can_be_extended() {
        let locks = Locks::new(10);
        assert_eq!(locks.extend(F, 0), Err(Errno::EINVAL));
        locks.set(F, LockMode::Write, 0).unwrap();
        assert_eq!(locks.set(F, LockMode::Write, 300), AGAIN);
        assert_eq!(locks.count(F, 301), 0);
        locks.extend(F, 301).unwrap();
        assert_eq!((locks.set(F, LockMode::Read, 400), locks.count(F, 400)), (AGAIN, -1));
        locks.set(F, LockMode::Read, 602).unwrap();
        assert_eq!(locks.count(F, 602), 1);
    }

    #[test]
    fn locks_are_bounded_and_ended_ones_make_room() {
        let locks = Locks::new(1);
        locks.set(F, LockMode::Read, 0).unwrap();
        let other = Fid::root(VolumeId(2));
        assert_eq!(locks.set(other, LockMode::Read, 300), AGAIN);
        assert_eq!(locks.set(other, LockMode::Read, 301), Ok(()));
    }
}
