//! Messages of an SSH agent (draft-miller-ssh-agent), without its socket: keys, and signatures with them.

use std::io::{self, Read};

use ssh_key::{PublicKey, Signature};

const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;
/// Longest reply read, in bytes: the limit of OpenSSH.
const ANSWER_LEN_MAX: usize = 256 * 1024;
/// Most keys read.
const KEYS_MAX: usize = 64;

/// The request for the keys of an agent.
#[must_use]
pub fn keys_request() -> Vec<u8> {
    message(REQUEST_IDENTITIES, &[])
}

/// Reads the reply: the first 64 keys, without those of unknown types.
///
/// # Errors
/// The agent refuses; the reply is longer than 256 KiB, or is none.
pub fn read_keys(from: impl Read) -> io::Result<Vec<PublicKey>> {
    let body = read_answer(from, IDENTITIES_ANSWER)?;
    let (count, mut rest) = split_word(&body)?;
    let mut keys = Vec::new();
    for _ in 0..(count as usize).min(KEYS_MAX) {
        let (blob, after) = split_string(rest)?;
        rest = split_string(after)?.1;
        keys.extend(PublicKey::from_bytes(blob));
    }
    Ok(keys)
}

/// The request for a signature of `data` with the key of this blob.
#[must_use]
pub fn sign_request(blob: &[u8], data: &[u8]) -> Vec<u8> {
    let flags = [0; 4];
    message(SIGN_REQUEST, &[&length(blob)[..], blob, &length(data), data, &flags].concat())
}

/// Reads the reply. The signature may be any: who needs it verifies it.
///
/// # Errors
/// As [`read_keys`].
pub fn read_signature(from: impl Read) -> io::Result<Signature> {
    let body = read_answer(from, SIGN_RESPONSE)?;
    let (signature, _) = split_string(&body)?;
    Signature::try_from(signature).map_err(|e| io::Error::other(format!("the signature cannot be read: {e}")))
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let message = [&[kind], body].concat();
    [&length(&message)[..], &message].concat()
}

fn read_answer(mut from: impl Read, wanted: u8) -> io::Result<Vec<u8>> {
    let mut head = [0; 5];
    from.read_exact(&mut head)?;
    let [a, b, c, d, kind] = head;
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if kind != wanted || length == 0 || length > ANSWER_LEN_MAX {
        return Err(io::Error::other("it refused"));
    }
    let mut body = Vec::new();
    from.take(length as u64 - 1).read_to_end(&mut body)?;
    if body.len() + 1 == length { Ok(body) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn length(bytes: &[u8]) -> [u8; 4] {
    // Requests are far shorter than 2^32 bytes.
    (bytes.len() as u32).to_be_bytes()
}

fn split_word(bytes: &[u8]) -> io::Result<(u32, &[u8])> {
    let (word, rest) = bytes.split_first_chunk().ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok((u32::from_be_bytes(*word), rest))
}

fn split_string(bytes: &[u8]) -> io::Result<(&[u8], &[u8])> {
    let (length, rest) = split_word(bytes)?;
    rest.split_at_checked(length as usize).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// A reply of any bytes, for fuzzing: themselves, and as the body of each kind of reply.
#[cfg(feature = "fuzzing")]
pub(crate) fn read_any_reply(bytes: &[u8]) {
    for kind in [IDENTITIES_ANSWER, SIGN_RESPONSE] {
        for reply in [bytes, &message(kind, bytes)] {
            let keys = read_keys(reply).unwrap_or_default();
            assert!(keys.len() <= KEYS_MAX);
            // The agent identifies a key by its blob.
            keys.iter().for_each(|key| _ = key.to_bytes().map(|blob| sign_request(&blob, b"data")));
            _ = read_signature(reply);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(bytes: &[u8]) -> Vec<u8> {
        [&length(bytes)[..], bytes].concat()
    }

    #[test]
    fn keys_of_unknown_types_are_skipped_and_a_reply_that_is_cut_is_an_error() {
        let point = [&string(b"ssh-ed25519")[..], &string(&[9; 32])].concat();
        let known = [string(&point), string(b"comment")].concat();
        let unknown = [string(&string(b"ssh-new")), string(b"")].concat();
        let reply = message(IDENTITIES_ANSWER, &[&[0, 0, 0, 2][..], &unknown, &known].concat());
        assert_eq!(read_keys(&reply[..]).unwrap().len(), 1);
        for cut in 0..reply.len() {
            assert!(read_keys(&reply[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn the_length_of_a_reply_is_bounded_before_it_is_read() {
        let long = [&(ANSWER_LEN_MAX as u32 + 1).to_be_bytes()[..], &[SIGN_RESPONSE]].concat();
        assert_eq!(read_signature(&long[..]).unwrap_err().to_string(), "it refused");
        let refused = message(5, b"");
        assert_eq!(read_signature(&refused[..]).unwrap_err().to_string(), "it refused");
    }
}
