//! The integration tests of this crate: one program, one module a subject.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod access_lists;
mod addresses;
mod advisories;
mod bootstrap;
mod callback_diversion;
mod callback_proof;
mod callbacks;
mod change_lists;
mod data_path;
mod data_path_audit;
mod data_path_groups;
mod data_path_holders;
mod data_path_hostile;
mod data_path_revocation;
mod data_path_stores;
mod file_service;
mod hostile_clients;
mod kept_locks;
mod layouts;
mod lease_ends;
mod leases;
mod leases_random;
mod location;
mod locks;
mod opcodes;
mod overseer;
mod promises_hold;
mod protection;
mod protection_names;
mod protection_rig;
mod remote_changes;
mod requirements;
mod rig;
mod rights;
mod rooms;
mod scrub;
mod stalled_stores;
mod tokens;
mod volume_paths;
mod volume_streams;
mod volumes;
mod who_may;
mod write_gate;
