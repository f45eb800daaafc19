//! Join key of a drive: fingerprint of its TLS key and a secret, as one word with a checksum.

use super::DrivesError;
use afs_datapath::capability::Secret;
use afs_datapath::session::Fingerprint;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// First part of the word.
const HEAD: &str = "andrew-drive-1.";
/// Bytes of the checksum: against slips, not against malice.
const SUM: usize = 4;

/// One-time key of a drive, with which a file server joins it.
#[derive(Clone, Debug)]
pub struct JoinKey {
    /// Hash of the drive's TLS key.
    pub fingerprint: Fingerprint,
    /// The secret that the file server proves to have.
    pub secret: Secret,
}

impl JoinKey {
    /// The word that a person carries from one host to the other.
    #[must_use]
    pub fn to_text(&self) -> Zeroizing<String> {
        let body = Zeroizing::new([self.fingerprint.0, *self.secret.expose()].concat());
        let whole = Zeroizing::new([&body[..], &sum(&body)].concat());
        Zeroizing::new(format!("{HEAD}{}", URL_SAFE_NO_PAD.encode(&*whole)))
    }

    /// The key of a word.
    ///
    /// # Errors
    /// [`DrivesError::NoJoinKey`], which does not show the text.
    pub fn parse(text: &str) -> Result<Self, DrivesError> {
        let word = text.trim().strip_prefix(HEAD).ok_or(DrivesError::NoJoinKey)?;
        let whole = Zeroizing::new(URL_SAFE_NO_PAD.decode(word).map_err(|_| DrivesError::NoJoinKey)?);
        let (fingerprint, rest) = whole.split_first_chunk::<32>().ok_or(DrivesError::NoJoinKey)?;
        let (secret, told) = rest.split_first_chunk::<32>().ok_or(DrivesError::NoJoinKey)?;
        if told != sum(&whole[..64]) {
            return Err(DrivesError::NoJoinKey);
        }
        Ok(Self { fingerprint: Fingerprint(*fingerprint), secret: Secret::new(*secret) })
    }
}

fn sum(bytes: &[u8]) -> [u8; SUM] {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    [digest[0], digest[1], digest[2], digest[3]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_word_and_slips_are_noticed() {
        let key = JoinKey { fingerprint: Fingerprint([3; 32]), secret: Secret::new([4; 32]) };
        let text = key.to_text();
        let again = JoinKey::parse(&format!(" {}\n", *text)).unwrap();
        assert_eq!((again.fingerprint, again.secret.expose()), (key.fingerprint, key.secret.expose()));
        assert!(!text.contains(char::is_whitespace));
        for at in HEAD.len()..text.len() {
            let mut wrong = text.to_string().into_bytes();
            wrong[at] = if wrong[at] == b'A' { b'B' } else { b'A' };
            assert!(JoinKey::parse(std::str::from_utf8(&wrong).unwrap()).is_err(), "{at}");
        }
        assert!(JoinKey::parse("").is_err() && JoinKey::parse(HEAD).is_err());
        assert!(!format!("{key:?}").contains("4, 4"));
    }
}
