//! Test vectors of rxgk: `docs/protocol/rxgk.md` "10.1 Fixed inputs".

#![allow(clippy::unwrap_used, clippy::expect_used)]

use afs_auth::Secret;
use afs_auth::crypto::{EncType, MicKey, SealKey, prf_plus};
use afs_auth::keys::{CellKey, KeyKind, KeyRing};
use afs_auth::rxgk::{
    Authenticator, ConnectionSeed, Lifetime, MasterKey, PacketKeys, Response, RxgkTime, TokenContents,
    Variant, code, open_token, seal_token,
};
use afs_rpc::{EnvRef, Level, Parts};
use afs_rx::{Cid, Epoch, PacketContext, Side};
use bytes::Bytes;

const EPOCH: Epoch = Epoch(0x8123_4567);
const START: RxgkTime = RxgkTime(17_000_000_000_000_000);
const DATA: &str = "000002030000000000000000";
const TK: &str = "e1822e49f54624f5ec1389fe0b6369e6";
const PSEUDO: &str = "81234567 0badcaf0 00000001 00000001 00000004 0000000c";
const AUTH: &str = "3b69108f95c243abedddea97 000002030000000000000000";
const CRYPT: &str = "fb5162c1ca022bb2ddf7870129fbc0cda183dd73f1449e9c9704a62fab0662cc\
                     0e20e77a00dd5ac25c5c8a42ee375fb6d676a659004e753398ee7d850d74bc9f";
const AUTHENTICATOR: &str = "4028c8e5a40535d81595b63dfc88c1c085c0e4219f18116a1e8a06b87ecb68c0\
                             c20eda7e1eec511619e02e8ddb8697c85a710eae3a12a23d33bd91b11a4be9d6\
                             14b80ef91ae42379cbe441285c5eb1e20b4c3ed7";
const CONTAINER: &str = "00000005 00000012 0000004c 7433a8865a5b35643444322376d03c9f8083f2cc\
                         affdf0df45779aad1893e896f2ed9b115815d20fa13846cfc216566cdc4c810458f09cdec024b94657eb152a\
                         b2cfa42aeca92bdfbd3329cf";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// Randomness that counts: 00, 01, 02 and so on.
fn counting() -> EnvRef {
    let random = |out: &mut [u8]| (0..).zip(out.iter_mut()).for_each(|(number, byte)| *byte = number);
    Parts::default().with_random(random).shared()
}

fn seed() -> ConnectionSeed {
    ConnectionSeed { epoch: EPOCH, cid: Cid::of(0x0bad_caf0), start: START }
}

fn master(enctype: EncType) -> MasterKey {
    let secret = (0x20..).take(enctype.key_len()).collect();
    MasterKey::new(enctype.number(), Secret::new(secret)).unwrap()
}

fn transport() -> MasterKey {
    MasterKey::new(17, Secret::new(bytes(TK))).unwrap()
}

fn context(from_client: bool) -> PacketContext {
    PacketContext {
        epoch: EPOCH,
        cid_and_channel: 0x0bad_caf0,
        call: 1,
        seq: 1,
        service: 52,
        security_index: 4,
        from_client,
        checksum: 0,
    }
}

fn cell_keys() -> KeyRing {
    let mut keys = KeyRing::default();
    keys.add(CellKey {
        kind: KeyKind::Rxgk,
        kvno: 5,
        enctype: 18,
        secret: Secret::new((0x60..0x80).collect()),
    })
    .unwrap();
    keys
}

#[test]
fn transport_keys() {
    let key =
        |enctype, number| master(enctype).transport_key(&seed(), number).unwrap().secret().expose().to_vec();
    assert_eq!(key(EncType::Aes128Sha1, 0), bytes(TK));
    assert_eq!(key(EncType::Aes128Sha1, 1), bytes("4b83e09f8567f6a006723f7a963c4c6e"));
    let long = "832e6b708353ff695c21aeacc0969c968728a486be765d31acaa07184da67ae6";
    assert_eq!(key(EncType::Aes256Sha1, 0), bytes(long));
    let input = bytes("81234567 0badcaf0 003c6568f12e8000 00000000");
    let direct = prf_plus(EncType::Aes128Sha1, master(EncType::Aes128Sha1).secret().expose(), &input, 16);
    assert_eq!(*direct.unwrap(), bytes(TK));
}

#[test]
fn packets() {
    let auth = |side| PacketKeys::new(Level::Auth, &transport(), side).unwrap();
    let crypt = |side| PacketKeys::new(Level::Crypt, &transport(), side).unwrap();
    let open = |keys: PacketKeys, hex| keys.open(&context(true), bytes(hex).into());
    assert_eq!(open(auth(Side::Server), AUTH), Ok(Bytes::from(bytes(DATA))));
    assert_eq!(open(crypt(Side::Server), CRYPT), Ok(Bytes::from(bytes(DATA))));
    // The server's own packets have other usage numbers.
    assert_eq!(open(auth(Side::Client), AUTH), Err(code::SEALED_INCONSISTENT));
    assert_eq!(open(crypt(Side::Client), CRYPT), Err(code::SEALED_INCONSISTENT));

    let mut mic = [0; 12];
    let signer = MicKey::new(EncType::Aes128Sha1, &bytes(TK), 1027).unwrap();
    signer.sign(&bytes(PSEUDO), &bytes(DATA), &mut mic).unwrap();
    assert_eq!([&mic[..], &bytes(DATA)].concat(), bytes(AUTH));

    let mut message = [&(0..16).collect::<Vec<u8>>()[..], &bytes(PSEUDO), &bytes(DATA), &[0; 12]].concat();
    let sealer = SealKey::new(EncType::Aes128Sha1, &bytes(TK), 1026).unwrap();
    sealer.seal_in_place(&mut message).unwrap();
    assert_eq!(message, bytes(CRYPT));
}

/// A packet is valid at one position only.
#[test]
fn a_packet_elsewhere_is_refused() {
    let moved = [
        PacketContext { epoch: Epoch(EPOCH.0 + 1), ..context(true) },
        PacketContext { cid_and_channel: 0x0bad_caf1, ..context(true) },
        PacketContext { call: 2, ..context(true) },
        PacketContext { seq: 2, ..context(true) },
        PacketContext { security_index: 6, ..context(true) },
    ];
    for (level, payload) in [(Level::Auth, AUTH), (Level::Crypt, CRYPT)] {
        let keys = PacketKeys::new(level, &transport(), Side::Server).unwrap();
        for context in &moved {
            assert_eq!(keys.open(context, bytes(payload).into()), Err(code::SEALED_INCONSISTENT));
        }
        assert_eq!(keys.open(&context(true), Bytes::from(vec![1; 11])), Err(code::PACKET_SHORT));
    }
}

#[test]
fn authenticator() {
    let nonce: Vec<u8> = (0..20).collect();
    let mut proof = Authenticator::new(nonce.try_into().unwrap(), Level::Crypt, EPOCH, Cid::of(0x0bad_caf0));
    proof.call_numbers = [1, 0, 0, 0];
    let sealed = proof.seal(&transport(), &counting()).unwrap();
    assert_eq!(sealed, bytes(AUTHENTICATOR));
    assert_eq!(Authenticator::open(&transport(), &sealed), Ok(proof.clone()));
    assert!(proof.matches(&proof.clone()));
    let others = [
        Authenticator { nonce: [0; 20], ..proof.clone() },
        Authenticator { level: 1, ..proof.clone() },
        Authenticator { epoch: 1, ..proof.clone() },
        Authenticator { cid: 4, ..proof.clone() },
    ];
    assert!(others.iter().all(|other| !proof.matches(other)));
}

#[test]
fn printed_token_and_response() {
    let contents = TokenContents {
        key: master(EncType::Aes128Sha1),
        level: Level::Crypt,
        start: RxgkTime::NEVER,
        lifetime: Lifetime::USUAL,
        expires: RxgkTime::NEVER,
        identities: Vec::new(),
    };
    let keys = cell_keys();
    let sealed = seal_token(Variant::OpenAfs, &contents, keys.iter().next().unwrap(), &counting()).unwrap();
    assert_eq!(sealed, bytes(CONTAINER));
    assert_eq!(open_token(Variant::OpenAfs, &sealed, &keys), Ok(contents.clone()));
    // The other variant has one field more.
    assert_eq!(open_token(Variant::Yfs, &sealed, &keys), Err(code::BAD_TOKEN));
    let other = seal_token(Variant::Yfs, &contents, keys.iter().next().unwrap(), &counting()).unwrap();
    assert_eq!((other.len(), open_token(Variant::Yfs, &other, &keys)), (sealed.len() + 8, Ok(contents)));

    let response = Response { start: START, token: sealed, authenticator: bytes(AUTHENTICATOR) };
    let encoded = response.encode();
    assert_eq!(encoded.len(), 188);
    assert_eq!(encoded[..12], bytes("003c6568f12e8000 00000058"));
    assert_eq!(encoded[100..104], bytes("00000054"));
    assert_eq!(Response::decode(&encoded), Ok(response));
}
