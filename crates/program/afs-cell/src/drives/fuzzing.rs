//! Fuzzing of the join key, the state file of a drive's daemon, and the registry of drives.

use super::bucket::BucketSettings;
use super::daemon_state::DaemonState;
use super::{DriveKind, JoinKey, Registry};
use afs_files::Versioned;
use afs_wire::ids::PartitionId;
use std::path::Path;

/// Reads bytes as each of the three, and uses what they say as far as no connection is needed; true if one of them is sound.
pub(crate) fn read(bytes: &[u8]) -> bool {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    [join_key(text), state(bytes), registry(bytes)].contains(&true)
}

/// # Panics
/// If a key is not written as it was read: two words would stand for one key.
fn join_key(text: &str) -> bool {
    let Ok(key) = JoinKey::parse(text) else { return false };
    assert_eq!(key.to_text().as_str(), text.trim());
    true
}

fn state(bytes: &[u8]) -> bool {
    let Ok(state) = DaemonState::decode(Path::new("drive.toml"), bytes) else { return false };
    let directory = Path::new("/nowhere");
    state.identity(directory).is_ok() & state.key(directory).is_ok()
}

fn registry(bytes: &[u8]) -> bool {
    let Ok(registry) = Registry::decode(Path::new("drives.toml"), bytes) else { return false };
    registry.drives().iter().all(|entry| match &entry.kind {
        DriveKind::Remote(settings) => {
            settings.security().is_ok() & settings.key().is_ok() & settings.next_key().is_ok()
        }
        DriveKind::Bucket(BucketSettings { place, .. }) => place.config(PartitionId(0)).is_ok(),
    })
}

/// Valid ones, as seeds.
pub(crate) const SAMPLES: [&str; 3] = [
    "andrew-drive-1.AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBFBanGo",
    r#"format = 1
drive = "0123456789abcdef0123456789abcdef"
tls_seed = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc="
run = 3
key = "CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQk="
epoch = 2
"#,
    r#"format = 2
next_id = 3
[in_use]
0 = 2
[draining.1]
rate = 1000000
[[drive]]
id = 1
name = "big"
kind = "remote"
address = "192.0.2.1:7010"
fingerprint = "abababababababababababababababababababababababababababababababab"
drive = "d1"
key = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc="
epoch = 3
since = 1700000000
next = "CAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg="
[[drive]]
id = 2
name = "cold"
kind = "bucket"
bucket = "s3://andrew/example.org"
endpoint = "https://s3.example.org"
region = "us-east-1"
credentials = "/root/s3"
allow_clear = false
owner = "0123456789abcdef0123456789abcdef"
joined = true
"#,
];
