//! Test vectors of rxkad: docs/protocol/rxkad.md "13. Worked example", and the tables before it.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use afs_auth::Secret;
use afs_auth::keys::{CellKey, KeyKind, KeyRing};
use afs_auth::rxkad::cipher::{Fcrypt, compress_triple_des, derive, is_weak, with_odd_parity};
use afs_auth::rxkad::{RxkadError, RxkadToken, SessionKey, TicketFormat, ticket};
use afs_rpc::{Level, Parts, UnixTime};
use afs_rx::{Challenge, Cid, ClientSecurity, Epoch, Instant, PacketContext};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn eight(text: &str) -> [u8; 8] {
    hex(text).try_into().unwrap()
}

/// The cell's key in all examples.
fn cell_key() -> CellKey {
    CellKey { kind: KeyKind::RxkadKrb5, kvno: 7, enctype: 18, secret: Secret::new((0..32).collect()) }
}

fn keys() -> KeyRing {
    let mut keys = KeyRing::default();
    keys.add(cell_key()).unwrap();
    keys
}

#[test]
fn fcrypt_blocks() {
    let cases = [
        ([0; 8], 0, 0x0e09_00c7_3ef7_ed41),
        (eight("114477aadd003366"), 0x1234_5678_9abc_def0, 0xd8ed_7874_77ec_0680),
    ];
    for (key, plain, cipher) in cases {
        let fcrypt = Fcrypt::new(&key);
        assert_eq!((fcrypt.encrypt(plain), fcrypt.decrypt(cipher)), (cipher, plain));
        // The parity bits of a key are ignored.
        assert_eq!(Fcrypt::new(&key.map(|byte| byte ^ 1)).encrypt(plain), cipher);
    }
}

#[test]
fn fcrypt_chained() {
    let (fcrypt, vector) = (Fcrypt::new(&eight("f0e1d2c3b4a59687")), 0xfedc_ba98_7654_3210);
    let plain = b"The quick brown fox jumps over the lazy dogs.\0\0\0";
    let cipher = hex(
        "00f00e1175e62382eeac98624451e484c359d8aa6460aef7d2d9137972a3450323b562d70cf527d1f8913cac442292ef",
    );
    let mut text = plain.to_vec();
    fcrypt.encrypt_pcbc(vector, text.as_chunks_mut().0);
    assert_eq!(text, cipher);
    fcrypt.decrypt_pcbc(vector, text.as_chunks_mut().0);
    assert_eq!(text, plain);
    // Every number of blocks, since some are decrypted interleaved.
    for blocks in 0..12 {
        let original: Vec<u8> = (0..blocks * 8).map(|at| at as u8).collect();
        let mut text = original.clone();
        fcrypt.encrypt_pcbc(vector, text.as_chunks_mut().0);
        fcrypt.decrypt_pcbc(vector, text.as_chunks_mut().0);
        assert_eq!(text, original);
    }
}

#[test]
fn session_keys_from_kerberos_keys() {
    let bytes = |from, to| (from..to).collect::<Vec<u8>>();
    let cases = [
        (17, bytes(0x40, 0x50), "296b0ee0ecb95b19"),
        (18, bytes(0x40, 0x60), "20f4da49921c527c"),
        (18, bytes(0x00, 0x20), "b60db5e30b266b16"),
    ];
    for (keytype, key, derived) in cases {
        assert_eq!(SessionKey::from_kerberos(keytype, &key).unwrap().expose(), &eight(derived));
        assert_eq!(derive(&key), Some(eight(derived)));
        assert!(!is_weak(eight(derived)) && with_odd_parity(eight(derived)) == eight(derived));
    }
    for keytype in 1..=3 {
        assert_eq!(SessionKey::from_kerberos(keytype, &[7; 8]).unwrap().expose(), &[7; 8], "as it is");
        assert_eq!(SessionKey::from_kerberos(keytype, &[7; 9]), Err(RxkadError::BadKey));
    }
    for keytype in [-1, 0, 4, 6, 8, 12, 15] {
        assert_eq!(SessionKey::from_kerberos(keytype, &[7; 16]), Err(RxkadError::BadKey));
    }
    assert_eq!(SessionKey::from_kerberos(17, &[7; 6]), Err(RxkadError::BadKey));
    assert!(
        SessionKey::from_kerberos(23, &[7; 16]).is_ok() && SessionKey::from_kerberos(20, &[7; 32]).is_ok()
    );
}

#[test]
fn new_session_keys_are_not_weak_even_from_bad_randomness() {
    for byte in [0, 1, 0x1f, 0xe0, 0xff] {
        let env = Parts::default().with_random(move |bytes| bytes.fill(byte)).shared();
        let key = *SessionKey::generate(&env).expose();
        assert!(!is_weak(key) && with_odd_parity(key) == key, "{key:02x?}");
    }
}

#[test]
fn triple_des_keys_lose_their_parity_bits() {
    // The eighth byte 0b1010_1011 gives, from its second bit up: 1 0 1 0 1 0 1.
    let key = [0x10, 0x21, 0x30, 0x41, 0x50, 0x61, 0x70, 0b1010_1011];
    assert_eq!(compress_triple_des(&key), [0x11, 0x20, 0x31, 0x40, 0x51, 0x60, 0x71]);
    let whole = [key, key, key].concat();
    assert_eq!(compress_triple_des(&whole).len(), 21);
    let session_key = SessionKey::from_kerberos(16, &whole).unwrap();
    assert_eq!(Some(*session_key.expose()), derive(&compress_triple_des(&whole)));
    assert_eq!(SessionKey::from_kerberos(16, &[]), Err(RxkadError::BadKey));
}

/// `vos listaddrs -localauth` in clear.
const PART: &str =
    "63693067a00703050000080000a1133011a003020101a10a040868c87a15f78c4ae6a2021b00a310300ea003020100
    a10730051b03616673a40b3009a003020100a1020400a511180f31393730303130313030303030305a
    a711180f32303338303131393033313430375a";

fn cell_part() -> ticket::TicketPart {
    ticket::TicketPart {
        flags: ticket::TicketPart::TRANSITED_POLICY_CHECKED,
        keytype: 1,
        key: Secret::new(hex("68c87a15f78c4ae6")),
        realm: String::new(),
        client: vec!["afs".to_owned()],
        authtime: 0,
        starttime: None,
        endtime: 0x7fff_ffff,
    }
}

#[test]
fn a_ticket_is_printed_as_openafs_prints_it() {
    let env = Parts::default().with_random(|bytes| bytes.fill(0x5a)).shared();
    let printed = ticket::make(&cell_part(), &cell_key(), &env).unwrap();
    assert_eq!(printed.len(), 154);
    assert_eq!(printed[..19], hex("308197a003020112a103020107a2818a048187"));
    assert_eq!(ticket::open(213, &printed, &keys()), Ok(cell_part()));
    let cipher = &printed[19..];
    let plain = afs_auth::crypto::EncType::Aes256Sha1.decrypt(cell_key().secret.expose(), 2, cipher).unwrap();
    assert_eq!(plain, hex(PART));
}

fn worked_client(level: Level) -> Box<dyn ClientSecurity> {
    let key = SessionKey::new(eight("68c87a15f78c4ae6"));
    let token = RxkadToken::new(TicketFormat::EncryptedData, &[0; 154], key, None).unwrap();
    let env = Parts::default().with_wall(UnixTime::default).shared();
    token.with_level(level).source(env).session()
}

fn first_packet() -> PacketContext {
    PacketContext {
        epoch: Epoch(0xabf0_a21a),
        cid_and_channel: 0x6b5c_8b9c,
        call: 1,
        seq: 1,
        service: 52,
        security_index: 2,
        from_client: true,
        checksum: 0,
    }
}

#[test]
fn the_worked_example_in_clear() {
    let mut client = worked_client(Level::Clear);
    let mut payload = vec![1, 2, 3];
    assert_eq!(client.seal(&first_packet(), &mut payload), Ok(0x3983));
    assert_eq!(payload, [1, 2, 3]);
    let response = client.respond(&Challenge {
        now: Instant::ZERO,
        epoch: Epoch(0xabf0_a21a),
        cid: Cid(0x6b5c_8b9c),
        service: 52,
        payload: &hex("000000023c3ef5ae0000000000000000"),
        call_numbers: [1, 0, 0, 0],
    });
    let payload = response.unwrap().payload;
    let sealed = "700b9e5e54d85d1fb4a684922416e5f805819f02f399ef5b20992d3b6975df567c0ac639dda5bd54";
    assert_eq!(payload.len(), 210);
    assert_eq!(payload[..56], hex(&format!("0000000200000000 {sealed} 000000d5 0000009a")));
}

#[test]
fn the_worked_examples_sealed() {
    let mut payload = vec![0; 4];
    payload.extend(hex("000002030000000000000000"));
    worked_client(Level::Auth).seal(&first_packet(), &mut payload).unwrap();
    assert_eq!(payload, hex("69b9118b88c42ec30000000000000000"));

    let key = SessionKey::new(eight("16dcc2bc46c2e54f"));
    let token = RxkadToken::new(TicketFormat::EncryptedData, &[0; 154], key, None).unwrap();
    let client = token.source(Parts::default().with_wall(UnixTime::default).shared()).session();
    let packet = PacketContext { epoch: Epoch(0x837d_72c7), cid_and_channel: 0x9673_1084, ..first_packet() };
    let mut payload = [vec![0; 8], hex("0000007f")].concat();
    assert_eq!(client.seal(&packet, &mut payload), Ok(0x0191));
    assert_eq!(payload, hex("16fd4de55b22d8447aa0a00dc0de71df"));
    let packet = PacketContext { checksum: 0x0191, ..packet };
    assert_eq!(client.open(&packet, payload.into()).unwrap(), hex("0000007f"));
}
