//! Fuzzing of the decoders of the files of a state directory.

use super::{identity, inventory, join_file, kept_options, partition_identity, security_file, server_file};
use crate::servers::ImportRequest;

/// Decodes bytes as each of the files; true if one of them succeeds.
pub(crate) fn settings(bytes: &[u8]) -> bool {
    let _ = serde_json::from_slice::<ImportRequest>(bytes);
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let read = [
        identity::fuzz(bytes),
        inventory::fuzz(bytes),
        partition_identity::fuzz(bytes),
        join_file::fuzz(bytes),
        server_file::fuzz(text),
        security_file::fuzz(text),
        kept_options::fuzz(text),
    ];
    read.contains(&true)
}

/// Valid files, as seeds.
pub(crate) const SAMPLES: [&str; 7] = [
    r#"{"format":1,"cell":"example.org","file_server":"07070707-0707-0707-0707-070707070707"}"#,
    r#"{"format":1,"partitions":{"/vicepa":"07070707-0707-0707-0707-070707070707"},"files":["keys/login"]}"#,
    r#"{"format":1,"id":"07070707-0707-0707-0707-070707070707"}"#,
    r#"base_port = 7200
listen = "192.0.2.1"
mount = "/afs"
cache_size = 1000000000
bypass_size = 5000000000
bypass_streams = 50
lease = true
snapshots = "daily=7"
"#,
    r#"[connections]
anonymous = false
minimum = "crypt"
[volumes]
"user.alice" = "rxgk-crypt"
[realms]
local = ["AD.EXAMPLE.ORG"]
except = ["bob@AD.EXAMPLE.ORG"]
[login]
token_hours = 10
[audit]
reads = true
"#,
    r#"cell = "example.org"
listen = "192.0.2.1"
base_port = 7000
roles = ["database", "files"]
anyuser = "rl"
database_servers = ["192.0.2.1", "192.0.2.2"]
[database]
kind = "etcd"
endpoints = ["http://192.0.2.1:2379"]
user = "andrew"
password_file = "pw"
[[partition]]
name = "a"
path = "/vicepa"
"#,
    r#"format = 1
[server]
cell = "example.org"
listen = "192.0.2.1"
[files]
"keys/KeyFileExt" = "a2V5cw=="
"etcd/0" = "YQ=="
"#,
];
