//! Tests of the state of a drive, without a store.

use super::*;

fn packs() -> Packs {
    let mut packs = Packs::new(Bounds { pack: 1000, pending: 1, doomed: 9 });
    packs.begin_run(RunId(3), Salt([1; 8]));
    packs
}

fn add(packs: &mut Packs, len: usize) -> (ChunkRef, Option<Arc<Pack>>) {
    let data = Bytes::from(vec![len as u8; len]);
    match packs.append(&data, crc32c::crc32c(&data)) {
        Ok(Appended::Chunk(chunk, full)) => (chunk, full),
        _ => panic!("there was room"),
    }
}

fn failed(failure: Failure) -> Failed {
    Failed::new(&"far".into(), "put", "packs/1", failure)
}

#[test]
fn a_full_pack_is_put_and_a_second_waits() {
    let mut packs = packs();
    let (first, none) = add(&mut packs, 600);
    assert!(none.is_none());
    let (second, full) = add(&mut packs, 600);
    let full = full.expect("the first pack is full");
    assert!(matches!(packs.append(&Bytes::from(vec![0; 600]), 0), Ok(Appended::Full)));
    for chunk in [first, second] {
        assert!(matches!(packs.find(chunk), Place::Memory(data) if data == vec![88; 600]));
    }
    let (waiting, result) = packs.put_ended(full.id, Ok(()));
    assert!(waiting.is_empty() && result.is_ok());
    assert!(matches!(packs.find(first), Place::Store));
    assert!(matches!(packs.append(&Bytes::from(vec![0; 600]), 0), Ok(Appended::Chunk(_, Some(_)))));
}

#[test]
fn a_pack_that_was_not_put_is_kept_and_put_again() {
    let mut packs = packs();
    let (chunk, _) = add(&mut packs, 10);
    let pack = packs.seal().unwrap();
    let mut told = packs.await_pending();
    let (waiting, result) = packs.put_ended(pack.id, Err(failed(Failure::Busy("slow down".into()))));
    let error = result.unwrap_err().to_string();
    assert!(error.contains("packs/1") && error.contains("slow down"), "{error}");
    assert_eq!((waiting.len(), told.len(), packs.failures().0), (1, 1, 1));
    drop((waiting, told.pop()));
    assert!(matches!(packs.find(chunk), Place::Memory(_)));
    assert_eq!(packs.failed().len(), 1);
    assert!(packs.failed().is_empty(), "it is being put");
    packs.put_ended(pack.id, Ok(())).1.unwrap();
    assert!(matches!(packs.find(chunk), Place::Store));
    assert!(packs.check().is_ok());
}

#[test]
fn a_key_that_another_object_has_ends_writing() {
    let mut packs = packs();
    add(&mut packs, 10);
    let pack = packs.seal().unwrap();
    assert!(packs.put_ended(pack.id, Err(failed(Failure::Exists))).1.is_err());
    assert!(matches!(packs.check(), Err(DriveError::NeedsReopen)));
    assert!(matches!(packs.append(&Bytes::from_static(b"x"), 0), Err(DriveError::NeedsReopen)));
}

#[test]
fn packs_that_cannot_be_put_are_bounded_however_small_they_are() {
    let mut packs = Packs::new(Bounds { pack: 1000, pending: 3, doomed: 9 });
    packs.begin_run(RunId(3), Salt([1; 8]));
    for _ in 0..3 {
        add(&mut packs, 10);
        let pack = packs.seal().unwrap();
        packs.put_ended(pack.id, Err(failed(Failure::Busy("slow down".into())))).1.unwrap_err();
    }
    assert!(matches!(packs.append(&Bytes::from_static(b"x"), 0), Ok(Appended::Full)));
    let again = packs.failed();
    assert_eq!(again.len(), 3);
    packs.put_ended(again[0].id, Ok(())).1.unwrap();
    add(&mut packs, 10);
}

#[test]
fn a_dead_pack_is_dropped_or_deleted() {
    let mut packs = packs();
    // Before it is complete.
    let (chunk, _) = add(&mut packs, 10);
    packs.discard(chunk.id);
    assert!(packs.seal().is_none() && packs.doomed(9).is_empty());
    // While it is being put.
    let (chunk, _) = add(&mut packs, 10);
    let pack = packs.seal().unwrap();
    packs.discard(chunk.id);
    assert!(packs.doomed(9).is_empty());
    packs.put_ended(pack.id, Err(failed(Failure::Broken("cut".into())))).1.unwrap();
    assert_eq!(packs.doomed(9), [pack.id], "it may have been put");
    packs.deleted(pack.id);
    // When it could not be put.
    let (chunk, _) = add(&mut packs, 10);
    let pack = packs.seal().unwrap();
    packs.put_ended(pack.id, Err(failed(Failure::Broken("cut".into())))).1.unwrap_err();
    packs.discard(chunk.id);
    assert_eq!((packs.doomed(9), packs.failed().len()), (vec![pack.id], 0));
    packs.deleted(pack.id);
    // In the store.
    let (chunk, _) = add(&mut packs, 10);
    let pack = packs.seal().unwrap();
    packs.put_ended(pack.id, Ok(())).1.unwrap();
    packs.discard(chunk.id);
    packs.discard(chunk.id);
    assert_eq!(packs.doomed(9), [pack.id]);
}

#[test]
fn packs_to_be_deleted_are_bounded_and_the_others_are_left_to_the_sweep() {
    let mut packs = packs();
    let mut doom = |put: Result<(), Failed>, while_put: bool| {
        let (chunk, _) = add(&mut packs, 10);
        let pack = packs.seal().unwrap();
        if while_put {
            packs.discard(chunk.id);
        }
        drop(packs.put_ended(pack.id, put));
        (0..3).for_each(|_| packs.discard(chunk.id));
        packs.doomed(usize::MAX).len()
    };
    let away = || Err(failed(Failure::Busy("slow down".into())));
    for n in 1..=3 {
        assert_eq!(
            (doom(Ok(()), false), doom(away(), false), doom(away(), true)),
            (3 * n - 2, 3 * n - 1, 3 * n)
        );
    }
    for _ in 0..100 {
        assert_eq!((doom(Ok(()), false), doom(away(), false), doom(away(), true)), (9, 9, 9));
    }
    let first = packs.doomed(1)[0];
    packs.deleted(first);
    let (chunk, _) = add(&mut packs, 10);
    let pack = packs.seal().unwrap();
    packs.put_ended(pack.id, Ok(())).1.unwrap();
    packs.discard(chunk.id);
    assert_eq!((packs.doomed(9).len(), packs.doomed(9).last()), (9, Some(&pack.id)), "there is room again");
}

#[test]
fn a_run_continues_above_the_last_chunk() {
    let mut packs = packs();
    packs.continue_after(RunId(2).first_pack().chunk(24));
    assert_eq!(packs.run(), Some(RunId(3)));
    packs.continue_after(RunId(3).first_pack().chunk(24));
    assert_eq!((packs.run(), packs.above()), (None, RunId(3)));
}
