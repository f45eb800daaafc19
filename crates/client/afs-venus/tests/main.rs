//! The integration tests of this crate: one program, one module a subject.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod absence;
mod activity;
mod allocating;
mod bypass;
mod cold_open;
mod common;
mod data_path;
mod disk;
mod distance;
mod drives;
mod economy;
mod explaining;
mod files;
mod full_cache;
mod fuzzing;
mod groups;
mod growing;
mod holes;
mod hostile_server;
mod kept_unsaved;
mod kernel;
mod leases;
mod lies;
mod location;
mod locks;
mod lost_locks;
mod moves;
mod new_names;
mod once;
mod parallel_fetches;
mod picture;
mod pins;
mod promises;
mod recovering;
mod refused_tokens;
mod release;
mod removed;
mod replicas;
mod rights;
mod same_names;
mod sharing;
mod snapshots;
mod staleness;
mod together;
mod trouble;
mod users;
mod waiting_locks;
mod writers;

/// The memory of a world is counted where its servers lie.
#[global_allocator]
static ALLOCATOR: afs_testkit::allocated::Counting = afs_testkit::allocated::Counting;
