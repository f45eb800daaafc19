//! Client of the SSH agent: the socket over which it is asked for its keys, and for signatures with them.

use afs_cell::socket;
use afs_login::{Signer, ssh_agent};
use ssh_key::{PublicKey, Signature};
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
    let keys = ssh_agent::read_keys(&asked(&socket, &ssh_agent::keys_request())?)?;
    Ok(keys.into_iter().map(|key| AgentKey { socket: socket.clone(), key }).collect())
}

impl Signer for AgentKey {
    fn key(&self) -> &PublicKey {
        &self.key
    }

    fn sign(&self, data: &[u8]) -> Result<Signature, String> {
        let told = |e: io::Error| format!("the agent did not sign: {e}");
        let blob = self.key.to_bytes().map_err(|e| e.to_string())?;
        let stream = asked(&self.socket, &ssh_agent::sign_request(&blob, data)).map_err(told)?;
        ssh_agent::read_signature(&stream).map_err(told)
    }
}

/// The stream on which the reply to a request comes.
fn asked(path: &Path, request: &[u8]) -> io::Result<UnixStream> {
    let stream = socket::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    (&stream).write_all(request)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ssh_key::PrivateKey;
    use ssh_key::private::{Ed25519Keypair, KeypairData};
    use std::io::Read;
    use std::thread;

    /// The string that bytes begin with, and the rest.
    fn split_string(bytes: &[u8]) -> (&[u8], &[u8]) {
        let (length, rest) = bytes.split_at(4);
        rest.split_at(u32::from_be_bytes(length.try_into().unwrap()) as usize)
    }

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
            let (data, _) = split_string(split_string(&body).1);
            let signature: Signature = signature::Signer::try_sign(&secret, data).unwrap();
            let signature = Vec::<u8>::try_from(signature).unwrap();
            let length = |len: usize| (len as u32).to_be_bytes();
            let answer = [&[14], &length(signature.len())[..], &signature].concat();
            stream.write_all(&[&length(answer.len())[..], &answer].concat()).unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&[0, 0, 0, 9, 14, 1]).unwrap();
        });
        let signature = key.sign(b"data").unwrap();
        signature::Verifier::verify(key.key.key_data(), b"data", &signature).unwrap();
        assert!(key.sign(b"data").is_err());
        agent.join().unwrap();
    }
}
