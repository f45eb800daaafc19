//! SSH keys to log in with: from files and from the SSH agent.

use super::agent;
use crate::error::{CommandError, CommandResult};
use afs_cell::state::home;
use afs_login::{Signer, UserKey};
use ssh_key::{PrivateKey, PublicKey, Signature};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use zeroize::Zeroizing;

/// Longest key file, in bytes.
const LEN_MAX: u64 = 64 * 1024;
/// Most keys tried: each costs a round trip and a signature.
const TRIED_MAX: usize = 6;

/// A private key from a file.
struct FileKey(PrivateKey);

impl Signer for FileKey {
    fn key(&self) -> &PublicKey {
        self.0.public_key()
    }

    fn sign(&self, data: &[u8]) -> Result<Signature, String> {
        signature::Signer::try_sign(&self.0, data).map_err(|e| e.to_string())
    }
}

/// Signer for a file: a private key, or the public half of a key of the agent.
///
/// # Errors
/// The file is not a key, is encrypted with a passphrase, or the agent does not have the private half.
pub(super) fn of_file(path: &Path) -> CommandResult<Box<dyn Signer>> {
    let shown = path.display();
    let text = read(path).map_err(|e| CommandError::usage(format!("cannot read {shown}: {e}")))?;
    if let Ok(public) = text_of(&text).and_then(|text| PublicKey::from_openssh(text).map_err(drop)) {
        return of_agent(&public, path);
    }
    let private = PrivateKey::from_openssh(text.as_slice())
        .map_err(|_| CommandError::usage(format!("{shown} is not an SSH key in OpenSSH's form")))?;
    if !private.is_encrypted() {
        return Ok(Box::new(FileKey(private)));
    }
    of_agent(private.public_key(), path)
}

fn text_of(bytes: &[u8]) -> Result<&str, ()> {
    std::str::from_utf8(bytes).map_err(drop)
}

fn of_agent(key: &PublicKey, path: &Path) -> CommandResult<Box<dyn Signer>> {
    let found =
        agent::keys().unwrap_or_default().into_iter().find(|has| has.key().key_data() == key.key_data());
    found.map(|key| Box::new(key) as Box<dyn Signer>).ok_or_else(|| {
        let shown = path.display();
        CommandError::usage(format!(
            "{shown} is locked with a passphrase or only a public key, and the SSH agent does not have it; ssh-add it"
        ))
    })
}

/// Default signers: the agent's keys of supported types, except those that require a touch; then `~/.ssh/id_ed25519`.
pub(super) fn usual() -> Vec<Box<dyn Signer>> {
    let from_agent = agent::keys().unwrap_or_default().into_iter();
    let taken = |key: &PublicKey| UserKey::new(key).is_ok() && !key.algorithm().as_str().starts_with("sk-");
    let mut keys: Vec<Box<dyn Signer>> = Vec::new();
    keys.extend(from_agent.filter(|key| taken(key.key())).map(|key| Box::new(key) as Box<dyn Signer>));
    let file = home().map(|home| home.join(".ssh/id_ed25519")).filter(|file| file.is_file());
    if let Some(key) = file.and_then(|file| of_file(&file).ok())
        && !keys.iter().any(|has| has.key().key_data() == key.key().key_data())
    {
        keys.push(key);
    }
    keys.truncate(TRIED_MAX);
    keys
}

/// The public key in a file with a public or private key.
///
/// # Errors
/// The file is not a key.
pub(in crate::commands) fn public_of_file(path: &Path) -> CommandResult<PublicKey> {
    let shown = path.display();
    let text = read(path).map_err(|e| CommandError::usage(format!("cannot read {shown}: {e}")))?;
    let public = text_of(&text).and_then(|text| PublicKey::from_openssh(text).map_err(drop));
    public
        .or_else(|()| PrivateKey::from_openssh(text.as_slice()).map(|key| key.public_key().clone()))
        .map_err(|_| CommandError::usage(format!("{shown} is not an SSH key in OpenSSH's form")))
}

fn read(path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut text = Zeroizing::new(Vec::with_capacity(8 * 1024));
    File::open(path)?.take(LEN_MAX).read_to_end(&mut text)?;
    Ok(text)
}
