//! Entry points of fuzz targets: each function takes any bytes and must not panic.

use afs_wire::login::{KeyBlob, SshSignature};

use crate::grant::Grant;
use crate::secret::LoginSecret;
use crate::ssh::{self, UserKey};
use crate::ssh_agent;
use crate::user::UserName;

/// All decoders of the crate for input from outside, without those of `afs-wire`.
pub fn login_values(bytes: &[u8]) {
    if let Ok(grant) = Grant::decode(bytes) {
        assert!(Grant::decode(&grant.encode()).is_ok_and(|again| again == grant));
    }
    if let Ok(secret) = LoginSecret::decode(bytes) {
        assert!(LoginSecret::decode(&secret.encode()).is_ok());
    }
    if let Some(key) = KeyBlob::new(bytes).ok().and_then(|blob| UserKey::from_wire(&blob).ok()) {
        assert!(UserKey::from_wire(key.blob()).is_ok_and(|again| again == key));
    }
    if let Ok(name) = UserName::new(&String::from_utf8_lossy(bytes)) {
        assert!(UserName::new(name.as_str()).is_ok_and(|again| again == name));
    }
    let _ = SshSignature::new(bytes).map(|signature| ssh::from_wire(&signature));
}

/// Replies of an SSH agent: the bytes themselves, and as the body of a reply.
pub fn ssh_agent_replies(bytes: &[u8]) {
    ssh_agent::read_any_reply(bytes);
}
