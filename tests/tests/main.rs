//! The integration tests of this crate: one program, one module a subject.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod adversary;
mod benchmark_scripts;
mod buckets;
mod channels;
mod cited;
mod clocks;
mod complete;
mod contents;
mod copied_trees;
mod damaged_drives;
mod damaged_files;
mod damaged_stores;
mod decisions;
mod defences;
mod drive_hosts;
mod encrypted_cache;
mod ends_of_mounts;
mod floods;
mod guarded_mounts;
mod hostile;
mod kafs;
mod kafs_token;
mod kept;
mod kerberos;
mod moves;
mod narrow_paths;
mod new_user;
mod no_threads;
mod openafs_auth;
mod openafs_check;
mod openafs_client;
mod openafs_dumps;
mod openafs_import;
mod openafs_mixed;
mod openafs_replicas;
mod openafs_server;
mod openafs_tools;
mod openafs_vos;
mod openafs_words;
mod own_files;
mod own_mounts;
mod partitions;
mod peers;
mod picture;
mod private_homes;
mod programs;
mod real_input;
mod refused_calls;
mod revocation;
mod revoked_tokens;
mod second_user;
#[allow(dead_code, reason = "the tests of afs-s3 use the rest")]
#[path = "../../crates/data/afs-s3/tests/server/mod.rs"]
mod server;
mod shared_directory;
mod silent_strangers;
mod simulated;
mod snapshots;
mod state_persons;
mod suspended_groups;
mod three_hosts;
mod two_servers;
mod volume_paths;
mod working_directories;
