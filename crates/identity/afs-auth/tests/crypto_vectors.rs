//! Encryption types against published vectors: RFC 8009 appendix A, and the test vectors of MIT Kerberos.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use afs_auth::crypto::{CryptoError, EncType, MicKey, prf};
use afs_rpc::{EnvRef, Parts};

const AES128_SHA256_KEY: &str = "3705d96080c17728a0e800eab6e0d23c";
const AES256_SHA384_KEY: &str = "6d404d37faf79f9df0d33568d320669800eb4836472ea8a026d16b7182460c52";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// Returns `hex` as randomness.
fn fixed(hex: &str) -> EnvRef {
    let all = bytes(hex);
    Parts::default().with_random(move |out| out.copy_from_slice(&all)).shared()
}

/// Enctype, key, usage, plain text and cipher text.
type Encrypted<'a> = (EncType, &'a str, u32, &'a str, &'a str);

fn opens(&(enctype, key, usage, plain, cipher): &Encrypted<'_>) {
    let opened = enctype.decrypt(&bytes(key), usage, &bytes(cipher));
    assert_eq!(opened, Ok(plain.as_bytes().to_vec()), "{enctype} {plain:?}");
}

#[test]
fn rfc_8009_encryption() {
    let counted: Vec<u8> = (0..21).collect();
    let samples = [
        (
            EncType::Aes128Sha256,
            0,
            "7e5895eaf2672435bad817f545a37148",
            "ef85fb890bb8472f4dab20394dca781dad877eda39d50c870c0d5a0a8e48c718",
        ),
        (
            EncType::Aes128Sha256,
            6,
            "7bca285e2fd4130fb55b1a5c83bc5b24",
            "84d7f30754ed987bab0bf3506beb09cfb55402cef7e6877ce99e247e52d16ed4421dfdf8976c",
        ),
        (
            EncType::Aes128Sha256,
            16,
            "56ab21713ff62c0a1457200f6fa9948f",
            "3517d640f50ddc8ad3628722b3569d2ae07493fa8263254080ea65c1008e8fc295fb4852e7d83e1e7c48c37eebe6b0d3",
        ),
        (
            EncType::Aes128Sha256,
            21,
            "a7a4e29a4728ce10664fb64e49ad3fac",
            "720f73b18d9859cd6ccb4346115cd336c70f58edc0c4437c5573544c31c813bce1e6d072c186b39a413c2f92ca9b8334\
             a287ffcbfc",
        ),
        (
            EncType::Aes256Sha384,
            0,
            "f764e9fa15c276478b2c7d0c4e5f58e4",
            "41f53fa5bfe7026d91faf9be959195a058707273a96a40f0a01960621ac612748b9bbfbe7eb4ce3c",
        ),
        (
            EncType::Aes256Sha384,
            6,
            "b80d3251c1f6471494256ffe712d0b9a",
            "4ed7b37c2bcac8f74f23c1cf07e62bc7b75fb3f637b9f559c7f664f69eab7b6092237526ea0d1f61cb20d69d10f2",
        ),
        (
            EncType::Aes256Sha384,
            16,
            "53bf8a0d105265d4e276428624ce5e63",
            "bc47ffec7998eb91e8115cf8d19dac4bbbe2e163e87dd37f49beca92027764f68cf51f14d798c2273f35df574d1f932e\
             40c4ff255b36a266",
        ),
        (
            EncType::Aes256Sha384,
            21,
            "763e65367e864f02f55153c7e3b58af1",
            "40013e2df58e8751957d2878bcd2d6fe101ccfd556cb1eae79db3c3ee86429f2b2a602ac86fef6ecb647d6295fae077a\
             1feb517508d2c16b4192e01f62",
        ),
    ];
    for (enctype, len, confounder, cipher) in samples {
        let key = bytes(if enctype == EncType::Aes128Sha256 { AES128_SHA256_KEY } else { AES256_SHA384_KEY });
        let plain = &counted[..len];
        assert_eq!(enctype.encrypt(&key, 2, plain, &fixed(confounder)), Ok(bytes(cipher)), "{enctype} {len}");
        assert_eq!(enctype.decrypt(&key, 2, &bytes(cipher)), Ok(plain.to_vec()), "{enctype} {len}");
    }
}

#[test]
fn rfc_8009_checksums_and_prf() {
    let counted: Vec<u8> = (0..21).collect();
    let samples = [
        (
            EncType::Aes128Sha256,
            AES128_SHA256_KEY,
            "d78367186643d67b411cba9139fc1dee",
            "9d188616f63852fe86915bb840b4a886ff3e6bb0f819b49b893393d393854295",
        ),
        (
            EncType::Aes256Sha384,
            AES256_SHA384_KEY,
            "45ee791567eefca37f4ac1e0222de80d43c3bfa06699672a",
            "9801f69a368c2bf675e59521e177d9a07f67efe1cfde8d3c8d6f6a0256e3b17db3c1b62ad1b8553360d17367eb1514d2",
        ),
    ];
    for (enctype, key, mic, env) in samples {
        assert_mic(enctype, key, 2, &counted, mic);
        assert_eq!(*prf(enctype, &bytes(key), b"test").unwrap(), bytes(env), "{enctype}");
    }
}

fn assert_mic(enctype: EncType, key: &str, usage: u32, text: &[u8], expected: &str) {
    let signer = MicKey::new(enctype, &bytes(key), usage).unwrap();
    let mut mic = vec![0; signer.mac_len()];
    let (first, second) = text.split_at(text.len() / 3);
    signer.sign(first, second, &mut mic).unwrap();
    assert_eq!(mic, bytes(expected), "{enctype}");
    assert_eq!(signer.verify(text, b"", &mic), Ok(()));
    mic[3] ^= 1;
    assert_eq!(signer.verify(text, b"", &mic), Err(CryptoError::Integrity));
    assert_eq!(signer.verify(text, b"", &mic[..3]), Err(CryptoError::Integrity));
}

#[test]
fn sha1_checksums_and_prf() {
    assert_mic(
        EncType::Aes128Sha1,
        "9062430c8cda3388922e6d6a509f5b7a",
        3,
        b"eight nine ten eleven twelve thirteen",
        "01a4b088d45628f6946614e3",
    );
    assert_mic(
        EncType::Aes256Sha1,
        "b1ae4cd8462aff1677053cc9279aac30b796fb81ce21474dd3ddbcfea4ec76d7",
        4,
        b"fourteen",
        "e08739e3279e2903ec8e3836",
    );
    let key = bytes("ae272e7cdec86ac5138cdb196d8e297d");
    assert_eq!(*prf(EncType::Aes128Sha1, &key, b"\x01a").unwrap(), bytes("77b39a37a868920f2a51f9dd150c5717"));
    let key = bytes("9d520d2d980aa7cb6b693682b62da258b333867951642ce647ae62b1e5e0b5e9");
    assert_eq!(*prf(EncType::Aes256Sha1, &key, b"\x02b").unwrap(), bytes("0d674dd0f9a6806525a4d92e828bd15a"));
}

#[test]
fn sha1_decryption() {
    let samples = [
        (
            EncType::Aes128Sha1,
            "5a5c0f0ba54f3828b2195e66ca24a289",
            0,
            "",
            "49ff8e11c173d9583a3254fbe7b1f1df36c538e8416784a1672e6676",
        ),
        (
            EncType::Aes128Sha1,
            "98450e3f3baa13f5c99beb936981b06f",
            1,
            "1",
            "f86742f537b35dc2174a4dbaa920faf9042090b065e1ebb1cad9a65394",
        ),
        (
            EncType::Aes128Sha1,
            "9062430c8cda3388922e6d6a509f5b7a",
            2,
            "9 bytesss",
            "68fb9679601f45c78857b2bf820fd6e53eca8d42fd4b1d7024a09205abb7cd2ec26c355d2f",
        ),
        (
            EncType::Aes128Sha1,
            "033ee6502c54fd23e27791e987983827",
            3,
            "13 bytes byte",
            "ec366d0327a933bf49330e650e49bc6b974637fe80bf532fe51795b4809718e6194724db948d1fd637",
        ),
        (
            EncType::Aes128Sha1,
            "dceeb70b3de76562e689226c76429148",
            4,
            "30 bytes bytes bytes bytes byt",
            "c96081032d5d8eeb7e32b4089f789d0faa481dea74c0f97cbf3146ddfcf8e800156ecb532fc203e30ff600b63b350939\
             fece510f02d7ff1e7bac",
        ),
        (
            EncType::Aes256Sha1,
            "17f275f2954f2ed1f90c377ba7f4d6a369aa0136e0bf0c927ad6133c693759a9",
            0,
            "",
            "e5094c55ee7b38262e2b044280b069379a95bf95bd8376fb3281b435",
        ),
        (
            EncType::Aes256Sha1,
            "b9477e1ff0329c0050e20ce6c72d2dff27e8fe541ab0954429a9cb5b4f7b1e2a",
            1,
            "1",
            "406150b97aeb76d43b36b62cc1ecdfbe6f40e95755e0beb5c27825f3a4",
        ),
    ];
    samples.iter().for_each(opens);
}

#[test]
fn rc4_decryption() {
    let samples = [
        (
            EncType::Rc4Hmac,
            "f81fec39255f5784e850c4377c88bd85",
            0,
            "",
            "02c1eb15586144122ec717763dd348bf00434ddc6585954c",
        ),
        (
            EncType::Rc4Hmac,
            "67d1300d281223867f9647ff48721273",
            1,
            "1",
            "6156e0cc04e0a0874f9fda008f498a7adbbc80b70b14dddbc0",
        ),
        (
            EncType::Rc4Hmac,
            "3e40ab6093695281b3ac1a9304224d98",
            2,
            "9 bytesss",
            "0f9ad121d99d4a09448e4f1f718c4f5cbe6096262c66f29df232a87c9f98755d55",
        ),
        (
            EncType::Rc4Hmac,
            "4ba2fbf0379faed87a254d3b353d5a7e",
            3,
            "13 bytes byte",
            "612c57568b17a70352bae8cf26fb9459a6f3353cd35fd439db3107cbec765d326dfc04c1dd",
        ),
        (
            EncType::Rc4Hmac,
            "68f263db3fce15d031c9eab02d67107a",
            4,
            "30 bytes bytes bytes bytes byt",
            "95f9047c3ad75891c2e9b04b16566dc8b6eb9ce4231afb2542ef87a7b5a0f260a99f0460508de0cecc632d07c354124e\
             46c5d2234eb8",
        ),
    ];
    samples.iter().for_each(opens);
}
