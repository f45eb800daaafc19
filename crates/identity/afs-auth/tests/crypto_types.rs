//! Properties of every encryption type.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use afs_auth::crypto::{CryptoError, EncType, OpenKey, SealKey, prf_plus};
use afs_rpc::{EnvRef, Parts};
use proptest::prelude::*;

fn env() -> EnvRef {
    let state = std::sync::atomic::AtomicU64::new(1);
    let random = move |out: &mut [u8]| {
        for byte in out {
            let old = state.fetch_add(0x9e37_79b9_7f4a_7c15, std::sync::atomic::Ordering::Relaxed);
            *byte = (old ^ (old >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9).to_be_bytes()[0];
        }
    };
    Parts::default().with_random(random).shared()
}

#[test]
fn numbers_and_names() {
    for enctype in EncType::ALL {
        assert_eq!(EncType::from_number(enctype.number()), Some(enctype));
        assert_eq!(EncType::from_name(enctype.name()), Some(enctype));
        assert_eq!(enctype.generate(&env()).expose().len(), enctype.key_len());
    }
    assert_eq!(EncType::from_number(16), None);
    assert!(!EncType::Rc4Hmac.is_for_rxgk() && EncType::DEFAULT.is_for_rxgk());
}

#[test]
fn keys_of_a_wrong_length_are_refused() {
    for enctype in EncType::ALL {
        let short = vec![1; enctype.key_len() - 1];
        let refused = CryptoError::KeyLength(short.len());
        assert_eq!(enctype.encrypt(&short, 2, b"", &env()), Err(refused));
        assert_eq!(enctype.decrypt(&short, 2, &[0; 99]), Err(refused));
    }
    assert_eq!(SealKey::new(EncType::Rc4Hmac, &[0; 16], 2).unwrap_err(), CryptoError::Unsupported(23));
}

#[test]
fn random_confounders_differ() {
    let (env, key) = (env(), [7; 32]);
    let seal = || EncType::Aes256Sha384.encrypt(&key, 1026, b"the same", &env).unwrap();
    assert_ne!(seal(), seal());
}

#[test]
fn prf_plus_gives_as_much_as_is_asked_for() {
    for len in [0, 1, 16, 17, 64, 100] {
        assert_eq!(prf_plus(EncType::Aes128Sha1, &[9; 16], b"seed", len).unwrap().len(), len);
    }
}

fn any_type() -> impl Strategy<Value = EncType> {
    prop::sample::select(EncType::ALL.to_vec())
}

proptest! {
    #[test]
    fn encrypted_data_can_be_decrypted(enctype in any_type(), usage: u32, plain: Vec<u8>, key: [u8; 32]) {
        let key = &key[..enctype.key_len()];
        let sealed = enctype.encrypt(key, usage, &plain, &env()).unwrap();
        prop_assert_eq!(enctype.decrypt(key, usage, &sealed).unwrap(), plain);
    }

    #[test]
    fn what_was_changed_is_refused(enctype in any_type(), plain: Vec<u8>, at: prop::sample::Index, bit in 0..8) {
        let key = &[5; 32][..enctype.key_len()];
        let mut sealed = enctype.encrypt(key, 1, &plain, &env()).unwrap();
        let at = at.index(sealed.len());
        sealed[at] ^= 1u8 << bit;
        prop_assert_eq!(enctype.decrypt(key, 1, &sealed), Err(CryptoError::Integrity));
        sealed[at] ^= 1u8 << bit;
        prop_assert_eq!(enctype.decrypt(key, 2, &sealed), Err(CryptoError::Integrity));
    }

    #[test]
    fn garbage_is_refused(enctype in any_type(), garbage: Vec<u8>) {
        prop_assert!(enctype.decrypt(&[5; 32][..enctype.key_len()], 1, &garbage).is_err());
    }

    /// Every length up to a few blocks of the hash, where pieces and stolen blocks meet.
    #[test]
    fn in_place_and_in_one_call_are_the_same(len in 0..600usize, enctype in any_type()) {
        prop_assume!(enctype.is_for_rxgk());
        let key = &[5; 32][..enctype.key_len()];
        let seal = SealKey::new(enctype, key, 1026).unwrap();
        let mut message: Vec<u8> = (0..16 + len + seal.mac_len()).map(|byte| byte as u8).collect();
        seal.seal_in_place(&mut message).unwrap();
        let plain: Vec<u8> = (16..16 + len).map(|byte| byte as u8).collect();
        prop_assert_eq!(enctype.decrypt(key, 1026, &message).unwrap(), &plain[..]);
        let opened = OpenKey::new(enctype, key, 1026).unwrap().open_in_place(&mut message).unwrap();
        prop_assert_eq!(&message[opened], &plain[..]);
    }
}
