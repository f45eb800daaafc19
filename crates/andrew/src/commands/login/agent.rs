//! Client of the SSH agent: its keys, and signatures with them (draft-miller-ssh-agent).

use afs_cell::socket;
use afs_login::Signer;
use ssh_key::{PublicKey, Signature};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;
/// Longest reply read, in bytes: the limit of OpenSSH.
const ANSWER_LEN_MAX: usize = 256 * 1024;
/// Most keys read.
const KEYS_MAX: usize = 64;
/// Time-out of a request: an agent may ask its user for confirmation.
const PATIENCE: Duration = Duration::from_secs(90);

/// A key of an agent.
pub(super) struct AgentKey {
    socket: PathBuf,
    key: PublicKey,
}

/// The keys of the agent in `SSH_AUTH_SOCK`; none without an agent.
pub(super) fn keys() -> io::Result<Vec<AgentKey>> {
    let Some(socket) = std::env::var_os("SSH_AUTH_SOCK").filter(|s| !s.is_empty()).map(PathBuf::from) else {
        return Ok(Vec::new());
    };
    let body = ask(&socket, REQUEST_IDENTITIES, &[], IDENTITIES_ANSWER)?;
    let (count, mut rest) = split_word(&body)?;
    let mut keys = Vec::new();
    for _ in 0..(count as usize).min(KEYS_MAX) {
        let (blob, after) = split_string(rest)?;
        rest = split_string(after)?.1;
        // Keys of unknown types are skipped.
        keys.extend(PublicKey::from_bytes(blob).ok().map(|key| AgentKey { socket: socket.clone(), key }));
    }
    Ok(keys)
}

impl Signer for AgentKey {
    fn key(&self) -> &PublicKey {
        &self.key
    }

    fn sign(&self, data: &[u8]) -> Result<Signature, String> {
        let told = |e: io::Error| format!("the agent did not sign: {e}");
        let blob = self.key.to_bytes().map_err(|e| e.to_string())?;
        let flags = [0; 4];
        let request = [&length(&blob)[..], &blob, &length(data), data, &flags].concat();
        let body = ask(&self.socket, SIGN_REQUEST, &request, SIGN_RESPONSE).map_err(told)?;
        let (signature, _) = split_string(&body).map_err(told)?;
        Signature::try_from(signature).map_err(|e| format!("the agent's signature cannot be read: {e}"))
    }
}

fn ask(path: &Path, kind: u8, body: &[u8], wanted: u8) -> io::Result<Vec<u8>> {
    let stream = socket::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let message = [&[kind], body].concat();
    (&stream).write_all(&[&length(&message)[..], &message].concat())?;
    read_answer(&stream, wanted)
}

fn read_answer(mut stream: &UnixStream, wanted: u8) -> io::Result<Vec<u8>> {
    let mut head = [0; 5];
    stream.read_exact(&mut head)?;
    let [a, b, c, d, kind] = head;
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if kind != wanted || length == 0 || length > ANSWER_LEN_MAX {
        return Err(io::Error::other("it refused"));
    }
    let mut body = Vec::new();
    stream.take(length as u64 - 1).read_to_end(&mut body)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use ssh_key::PrivateKey;
    use ssh_key::private::{Ed25519Keypair, KeypairData};
    use std::thread;

    #[test]
    fn an_agent_signs_and_a_short_answer_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent");
        let listener = socket::listen(&path).unwrap();
        let secret = PrivateKey::new(KeypairData::Ed25519(Ed25519Keypair::from_seed(&[4; 32])), "").unwrap();
        let key = AgentKey { socket: path, key: secret.public_key().clone() };
        let agent = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 5];
            stream.read_exact(&mut head).unwrap();
            let mut body = vec![0; u32::from_be_bytes(head[..4].try_into().unwrap()) as usize - 1];
            stream.read_exact(&mut body).unwrap();
            let (_, rest) = split_string(&body).unwrap();
            let (data, _) = split_string(rest).unwrap();
            let signature: Signature = signature::Signer::try_sign(&secret, data).unwrap();
            let signature = Vec::<u8>::try_from(signature).unwrap();
            let answer = [&[SIGN_RESPONSE], &length(&signature)[..], &signature].concat();
            stream.write_all(&[&length(&answer)[..], &answer].concat()).unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&[0, 0, 0, 9, SIGN_RESPONSE, 1]).unwrap();
        });
        let signature = key.sign(b"data").unwrap();
        signature::Verifier::verify(key.key.key_data(), b"data", &signature).unwrap();
        assert!(key.sign(b"data").is_err());
        agent.join().unwrap();
    }
}
