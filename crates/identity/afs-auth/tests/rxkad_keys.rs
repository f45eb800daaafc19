//! Tests of key files: docs/protocol/rxkad.md "11. Key files".

#![allow(clippy::expect_used, clippy::unwrap_used)]

use afs_auth::Secret;
use afs_auth::keys::{CellKey, KeyError, KeyKind, KeyRing, SharedKeys, generate};
use afs_rpc::Parts;
use proptest::prelude::*;

fn key(kind: KeyKind, kvno: u32, enctype: i32, secret: impl Into<Vec<u8>>) -> CellKey {
    CellKey { kind, kvno, enctype, secret: Secret::new(secret.into()) }
}

fn ring(keys: impl IntoIterator<Item = CellKey>) -> KeyRing {
    let mut ring = KeyRing::default();
    keys.into_iter().for_each(|key| ring.add(key).unwrap());
    ring
}

fn numbers(key: Option<&CellKey>) -> Option<(u32, i32)> {
    key.map(|key| (key.kvno, key.enctype))
}

/// Output of `asetkey add rxkad_krb5 7 18`.
fn example() -> Vec<u8> {
    let words: [u32; 6] = [1, 16, 2, 7, 18, 32];
    words.iter().flat_map(|word| word.to_be_bytes()).chain(0..32).collect()
}

#[test]
fn the_example_of_asetkey_is_read_and_written() {
    let keys = KeyRing::from_key_file_ext(&example()).unwrap();
    let found = keys.find(KeyKind::RxkadKrb5, 7, 18).unwrap();
    assert_eq!(found.secret.expose(), (0..32).collect::<Vec<u8>>());
    assert_eq!(keys.to_key_file_ext().expose(), example());
    assert_eq!(keys.find(KeyKind::Rxgk, 7, 18), None);
}

#[test]
fn records_of_later_kinds_and_longer_headers_are_read_past() {
    let mut file = 2_u32.to_be_bytes().to_vec();
    file.extend([20_u32, 99, 1, 2, 3].iter().flat_map(|word| word.to_be_bytes()));
    file.extend(b"more");
    file.extend(b"key");
    file.extend(&example()[4..]);
    assert_eq!(KeyRing::from_key_file_ext(&file).unwrap().iter().count(), 1);
}

#[test]
fn a_damaged_file_is_refused_wherever_it_ends() {
    let file = example();
    for len in 0..file.len() {
        let read = KeyRing::from_key_file_ext(&file[..len]);
        assert!(matches!(read, Err(KeyError::Damaged(_))), "{len}: {read:?}");
    }
    let longer = [&file[..], &[0]].concat();
    assert!(matches!(KeyRing::from_key_file_ext(&longer), Err(KeyError::Damaged(_))));
    let mut shorter_header = file.clone();
    shorter_header[7] = 15;
    assert_eq!(KeyRing::from_key_file_ext(&shorter_header), Err(KeyError::Format("KeyFileExt")));
    let mut long_key = file;
    long_key[23] = 65;
    assert_eq!(KeyRing::from_key_file_ext(&long_key), Err(KeyError::Length(65)));
}

#[test]
fn an_old_key_file_has_room_behind_its_keys() {
    let mut file = 2_u32.to_be_bytes().to_vec();
    file.extend([0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
    file.extend([0, 0, 0, 3, 2, 2, 2, 2, 2, 2, 2, 2]);
    file.resize(100, 0xaa);
    let keys = KeyRing::from_key_file(&file).unwrap();
    assert_eq!(keys.find(KeyKind::RxkadDes, 3, 0).unwrap().secret.expose(), [2; 8]);
    assert_eq!(numbers(keys.best(KeyKind::RxkadDes)), Some((3, 0)));
    assert_eq!(KeyRing::from_key_file(&[0; 4]), Ok(KeyRing::default()));
    assert!(KeyRing::from_key_file(&file[..27]).is_err());
    assert_eq!(KeyRing::from_key_file(&[0, 0, 0, 9]), Err(KeyError::Format("KeyFile")));
}

/// A keytab entry in the form of MIT Kerberos.
fn keytab_entry(path: &[&str], (kvno, long_kvno): (u8, Option<u32>), enctype: u16, key: &[u8]) -> Vec<u8> {
    let counted = |bytes: &[u8]| [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat();
    let mut out = (path.len() as u16).to_be_bytes().to_vec();
    out.extend(counted(b"EXAMPLE.ORG"));
    path.iter().for_each(|part| out.extend(counted(part.as_bytes())));
    out.extend([0, 0, 0, 1, 0x60, 0, 0, 0, kvno]);
    out.extend(enctype.to_be_bytes());
    out.extend(counted(key));
    out.extend(long_kvno.iter().flat_map(|kvno| kvno.to_be_bytes()));
    [&(out.len() as u32).to_be_bytes()[..], &out].concat()
}

#[test]
fn a_keytab_gives_the_keys_of_afs_alone() {
    let hole = [&(-5_i32).to_be_bytes()[..], &[9; 5]].concat();
    let pieces = [
        keytab_entry(&["afs", "example.org"], (4, None), 18, &[1; 32]),
        hole,
        keytab_entry(&["host", "x.example.org"], (9, None), 18, &[2; 32]),
        keytab_entry(&["afs"], (1, Some(257)), 17, &[3; 16]),
        keytab_entry(&["afs"], (2, Some(0)), 1, &[4; 8]),
    ];
    let file = [vec![5, 2], pieces.concat()].concat();
    let keys = KeyRing::from_keytab(&file).unwrap();
    let found: Vec<_> = keys.iter().map(|key| (key.kind, key.kvno, key.enctype)).collect();
    let krb5 = KeyKind::RxkadKrb5;
    assert_eq!(found, [(KeyKind::RxkadDes, 2, 0), (krb5, 4, 18), (krb5, 257, 17)]);
    let ends: Vec<usize> =
        (0..=file.len()).filter(|len| KeyRing::from_keytab(&file[..*len]).is_ok()).collect();
    assert_eq!(ends.len(), 1 + pieces.len(), "only between two entries is what is left a whole file");
    assert!(matches!(KeyRing::from_keytab(&[5, 1, 0, 0]), Err(KeyError::Format(_))));
}

#[test]
fn the_best_key_is_the_one_the_class_prefers() {
    let keys = ring([
        key(KeyKind::RxkadKrb5, 9, 17, [1; 16]),
        key(KeyKind::RxkadKrb5, 3, 18, [1; 32]),
        key(KeyKind::RxkadKrb5, 4, 18, [2; 32]),
        key(KeyKind::RxkadKrb5, 12, 20, [2; 32]),
        key(KeyKind::Rxgk, 1, 20, [1; 32]),
        key(KeyKind::Rxgk, 2, 17, [1; 16]),
        key(KeyKind::Rxgk, 2, 18, [1; 32]),
        key(KeyKind::Rxgk, 3, 77, [1; 32]),
    ]);
    assert_eq!(numbers(keys.best(KeyKind::RxkadKrb5)), Some((4, 18)));
    assert_eq!(numbers(keys.best(KeyKind::Rxgk)), Some((2, 18)));
    assert_eq!(keys.best(KeyKind::RxkadDes), None);
    assert_eq!(keys.latest(KeyKind::RxkadKrb5), Some(12));
}

#[test]
fn two_keys_never_have_the_same_numbers() {
    let mut keys = ring([key(KeyKind::Rxgk, 1, 18, [1; 32])]);
    assert_eq!(keys.add(key(KeyKind::Rxgk, 1, 18, [1; 32])), Ok(()), "the same again");
    let twice = KeyError::Twice { kind: KeyKind::Rxgk, kvno: 1, enctype: 18 };
    assert_eq!(keys.add(key(KeyKind::Rxgk, 1, 18, [2; 32])), Err(twice));
    let more = ring([key(KeyKind::Rxgk, 0, 18, [7; 32]), key(KeyKind::Rxgk, 1, 18, [2; 32])]);
    assert_eq!(keys.merge(&more), Err(twice));
    assert_eq!(keys.iter().count(), 1, "all or nothing");
    assert!(keys.remove(KeyKind::Rxgk, 1, 18) && !keys.remove(KeyKind::Rxgk, 1, 18));
    assert_eq!(keys.add(key(KeyKind::RxkadDes, 1, 0, [1; 9])), Err(KeyError::Length(9)));
    assert_eq!(keys.add(key(KeyKind::Rxgk, 1, 18, [])), Err(KeyError::Length(0)));
}

#[test]
fn new_keys_fit_their_encryption_type() {
    let env = Parts::default().with_random(|bytes| bytes.fill(7)).shared();
    for (enctype, len) in [(17, 16), (18, 32), (19, 16), (20, 32), (23, 16)] {
        let made = generate(KeyKind::Rxgk, enctype, 3, &env).unwrap();
        assert_eq!((made.kvno, made.enctype, made.secret.expose()), (3, enctype, &[7; 32][..len]));
    }
    assert!(generate(KeyKind::RxkadKrb5, 16, 1, &env).is_err());
    assert!(generate(KeyKind::RxkadDes, 1, 1, &env).is_err());
}

#[test]
fn shared_keys_are_exchanged_for_all_who_hold_them() {
    let shared = SharedKeys::default();
    let other = shared.clone();
    shared.set(ring([key(KeyKind::Rxgk, 1, 18, [0x5a; 32])]));
    assert_eq!(other.get().iter().count(), 1);
    let shown = format!("{other:?} {:?}", other.get());
    assert!(!shown.contains("90") && !shown.to_lowercase().contains("5a"), "{shown}");
}

proptest! {
    #[test]
    fn any_ring_survives_its_file(entries in proptest::collection::btree_map(
        (1_u32..3, any::<u32>(), any::<i32>()), proptest::collection::vec(any::<u8>(), 1..64), 0..20)) {
        let keys = ring(entries.into_iter().map(|((kind, kvno, enctype), secret)| {
            key(KeyKind::from_number(kind).unwrap(), kvno, enctype, secret)
        }));
        prop_assert_eq!(KeyRing::from_key_file_ext(keys.to_key_file_ext().expose()), Ok(keys));
    }

    #[test]
    fn random_bytes_are_no_key_file(bytes in proptest::collection::vec(prop_oneof![0_u8..20, any::<u8>()], 0..200)) {
        let _ = KeyRing::from_key_file(&bytes);
        let _ = KeyRing::from_key_file_ext(&bytes);
        let _ = KeyRing::from_keytab(&[&[5, 2][..], &bytes].concat());
    }
}
