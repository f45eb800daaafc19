use afs_wire::ids::{Uuid, VolumeId};

use super::*;
use std::task::{Context, Waker};

const F: Fid = Fid::root(VolumeId(1));
const A: Holder = Holder::Uuid(Uuid([1; 16]));
const B: Holder = Holder::Uuid(Uuid([2; 16]));
const AGAIN: Result<Kept, Errno> = Err(Errno::EAGAIN);

#[test]
fn readers_share_and_writers_do_not() {
    let locks = Locks::new(10);
    assert_eq!(locks.set(F, A, LockMode::Read, 0), Ok(Kept::NotYet));
    assert_eq!(locks.set(F, B, LockMode::Read, 0), Ok(Kept::NotYet));
    assert_eq!((locks.set(F, A, LockMode::Write, 0), locks.count(F, 0)), (AGAIN, 2));
    assert!(!locks.release(F, A) && locks.release(F, B));
    assert_eq!((locks.set(F, A, LockMode::Write, 0), locks.count(F, 0)), (Ok(Kept::NotYet), -1));
    for holder in [A, B] {
        assert_eq!(locks.set(F, holder, LockMode::Write, 0), AGAIN);
        assert_eq!(locks.set(F, holder, LockMode::Read, 0), AGAIN);
    }
    assert!(locks.release(F, A));
}

#[test]
fn locks_of_an_earlier_instance_of_a_volume_are_gone() {
    let (locks, other) = (Locks::new(10), Fid::root(VolumeId(2)));
    for fid in [F, other] {
        locks.see(fid.volume, UnixSeconds(5));
        locks.set(fid, A, LockMode::Write, 0).unwrap();
    }
    locks.see(F.volume, UnixSeconds(5));
    assert_eq!(locks.set(F, B, LockMode::Write, 0), AGAIN);
    locks.see(F.volume, UnixSeconds(9));
    assert_eq!(locks.extend(F, A, 0), Err(Errno::EINVAL));
    locks.set(F, B, LockMode::Write, 0).unwrap();
    assert_eq!(locks.set(other, B, LockMode::Write, 0), AGAIN);
}

#[test]
fn locks_taken_by_a_machine_under_another_name_become_its_own() {
    let locks = Locks::new(10);
    let (before, elsewhere) =
        (Holder::Address(([10, 0, 0, 1], 9).into()), Holder::Address(([10, 0, 0, 1], 8).into()));
    assert_eq!(locks.adopt(F, &[before], A), None);
    locks.set(F, before, LockMode::Read, 0).unwrap();
    locks.set(F, elsewhere, LockMode::Read, 0).unwrap();
    locks.set(F, A, LockMode::Read, 0).unwrap();
    assert_eq!((locks.adopt(F, &[before], A), locks.adopt(F, &[before], A)), (Some(LockMode::Read), None));
    assert_eq!((locks.count(F, 0), locks.set(F, B, LockMode::Write, 0)), (2, AGAIN));
    assert!(!locks.release(F, A) && locks.release(F, elsewhere));
    locks.set(F, before, LockMode::Write, 5).unwrap();
    assert_eq!((locks.adopt(F, &[before], A), locks.count(F, 5)), (Some(LockMode::Write), -1));
    assert!(!locks.release(F, before) && locks.release(F, A));
}

#[test]
fn a_machine_that_took_a_lock_twice_gives_it_up_twice() {
    let locks = Locks::new(10);
    locks.set(F, A, LockMode::Read, 0).unwrap();
    locks.set(F, A, LockMode::Read, 0).unwrap();
    assert_eq!(locks.count(F, 0), 2);
    assert!(!locks.release(F, A));
    assert_eq!(locks.set(F, B, LockMode::Write, 0), AGAIN);
    assert!(locks.release(F, A));
}

#[test]
fn a_lock_is_changed_without_a_moment_in_which_another_could_take_it() {
    let locks = Locks::new(10);
    assert_eq!(locks.change(F, A, LockMode::Write, 0), Err(Errno::EINVAL));
    locks.set(F, A, LockMode::Read, 0).unwrap();
    locks.set(F, B, LockMode::Read, 0).unwrap();
    assert_eq!((locks.change(F, A, LockMode::Write, 0), locks.count(F, 0)), (AGAIN, 2));
    locks.release(F, B);
    assert_eq!(locks.change(F, B, LockMode::Write, 0), Err(Errno::EINVAL), "it is another's now");
    assert_eq!((locks.change(F, A, LockMode::Write, 0), locks.count(F, 0)), (Ok(Kept::NotYet), -1));
    assert_eq!((locks.change(F, A, LockMode::Read, 0), locks.count(F, 0)), (Ok(Kept::NotYet), 1));
    assert_eq!(locks.change(F, A, LockMode::Write, 301), Err(Errno::EINVAL));
}

#[test]
fn only_the_holder_extends_and_releases() {
    let locks = Locks::new(10);
    locks.set(F, A, LockMode::Write, 0).unwrap();
    assert!(!locks.release(F, B));
    assert_eq!(locks.extend(F, B, 0), Err(Errno::EINVAL));
    assert_eq!(locks.count(F, 0), -1);
    // Nor does one reader keep another's part alive.
    let other = Fid::root(VolumeId(2));
    locks.set(other, A, LockMode::Read, 0).unwrap();
    locks.set(other, B, LockMode::Read, 200).unwrap();
    assert_eq!(locks.count(other, 301), 1);
}

#[test]
fn locks_end_and_can_be_extended() {
    let locks = Locks::new(10);
    assert_eq!(locks.extend(F, A, 0), Err(Errno::EINVAL));
    locks.set(F, A, LockMode::Write, 0).unwrap();
    assert_eq!(locks.set(F, B, LockMode::Write, 300), AGAIN);
    assert_eq!(locks.count(F, 301), 0);
    locks.extend(F, A, 301).unwrap();
    assert_eq!((locks.set(F, B, LockMode::Read, 400), locks.count(F, 400)), (AGAIN, -1));
    locks.set(F, B, LockMode::Read, 602).unwrap();
    assert_eq!(locks.count(F, 602), 1);
    assert_eq!(locks.extend(F, A, 603), Err(Errno::EINVAL), "it has been somebody else's since");
}

#[test]
fn locks_are_bounded_and_ended_ones_make_room() {
    let locks = Locks::new(1);
    locks.set(F, A, LockMode::Read, 0).unwrap();
    let other = Fid::root(VolumeId(2));
    assert_eq!(locks.set(other, A, LockMode::Read, 300), AGAIN);
    assert_eq!(locks.set(other, A, LockMode::Read, 301), Ok(Kept::NotYet));
}

#[test]
fn a_restored_lock_is_its_holders_for_one_lifetime() {
    let locks = Locks::new(10);
    locks.restore(F, A, LockMode::Write, 0);
    assert_eq!(locks.set(F, B, LockMode::Read, 300), AGAIN);
    locks.extend(F, A, 300).unwrap();
    assert_eq!(locks.set(F, B, LockMode::Read, 600), AGAIN);
    let other = Fid::root(VolumeId(2));
    locks.restore(other, A, LockMode::Write, 0);
    assert_eq!(locks.set(other, A, LockMode::Write, 1), Ok(Kept::Yes), "its holder may have begun anew");
    assert_eq!(locks.set(other, A, LockMode::Write, 1), AGAIN);
    let third = Fid::root(VolumeId(3));
    locks.restore(third, A, LockMode::Write, 0);
    assert_eq!(locks.set(third, B, LockMode::Write, 301), Ok(Kept::NotYet));
}

#[test]
fn a_lock_that_is_taken_again_is_written_down_once_and_waits_for_the_deletion_of_its_row() {
    let locks = Locks::new(10);
    assert_eq!(locks.set(F, A, LockMode::Write, 0), Ok(Kept::NotYet));
    locks.kept(F, A, LockMode::Write);
    assert!(locks.sweep(1).is_empty());
    locks.release(F, A);
    assert_eq!(locks.set(F, A, LockMode::Write, 2), Ok(Kept::Yes));
    locks.release(F, A);
    assert!(locks.sweep(3).is_empty(), "it may be wanted again at once");
    assert_eq!(locks.set(F, A, LockMode::Write, 4), Ok(Kept::Yes));
    assert!(locks.sweep(5).is_empty());
    locks.release(F, A);
    assert!(locks.sweep(6).is_empty());
    assert_eq!(locks.sweep(7), [(F, A)]);
    assert_eq!(locks.set(F, A, LockMode::Write, 7), Ok(Kept::Leaving));
    assert_eq!(locks.set(F, B, LockMode::Write, 7), Ok(Kept::NotYet), "the row of another");
    assert!(!locks.release(F, A) && locks.release(F, B), "nothing was set");
    let mut deletion = std::pin::pin!(locks.next_deletion());
    let mut is_over = || deletion.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
    assert!(!is_over());
    locks.deleted(&[(F, A)]);
    assert!(is_over());
    assert_eq!(locks.set(F, A, LockMode::Write, 7), Ok(Kept::NotYet));
    locks.kept(F, A, LockMode::Write);
    assert!(locks.sweep_all().is_empty());
    locks.release(F, A);
    assert_eq!(locks.sweep_all(), [(F, A)]);
}
