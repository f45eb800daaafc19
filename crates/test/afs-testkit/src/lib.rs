//! Test kit: cells in a simulated world, the machines of their clients, users, and scripted servers.
//!
//! | A test wants | It takes |
//! | --- | --- |
//! | a server machine with services of its choice on a disk that crashes | [`Server`], set up by a [`ServerPlan`] |
//! | databases on one machine and file servers on others | [`Cell`] |
//! | the data of a server machine on other drives, of a kind and in an organisation | [`DrivePlan`], [`DriveHost`] |
//! | the tool of an administrator, and what resumes its operations | [`administrator`] |
//! | a cache manager on a machine of its own | [`ClientMachine`] |
//! | users, groups, and calls in their names | [`UserDirectory`], [`Claim`] |
//! | a server that replies as the test says | [`scripted`] |
//! | a real server whose replies are replaced by lies, by a seed | [`relay`] |
//! | the memory that all machines of a world hold | [`allocated`] |
//!
//! No shipped crate depends on this one. A crate's own unit tests may use only what names no type of that crate: they are
//! compiled with a second copy of it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "what the kit cannot set up is a failed test")]

pub mod administrator;
pub mod allocated;
mod cell;
mod claim;
mod client_machine;
mod drives;
mod fencing;
pub mod net;
mod plan;
pub mod relay;
pub mod scripted;
mod server;
mod signed_store;
mod stores;
mod user_directory;
mod volumes;

pub use cell::Cell;
pub use claim::{BAD_PROOF, Claim, ClaimServer, EXPIRED, WORD};
pub use client_machine::{ClientMachine, cell_of};
pub use drives::{
    BUCKET, Conduct, DriveHost, DrivePlan, HostPlan, Planned, Staging, drive_address, placement,
    run_again_over,
};
pub use plan::{Classes, FileCalls, ServerPlan, Service};
pub use server::{Processes, Server};
pub use signed_store::{SignedStore, StoreConduct};
pub use stores::Sizes;
pub use user_directory::{AllAdministrators, UntoldNames, UserDirectory};
pub use volumes::NewVolume;

/// Why something of a cell could not be set up.
pub type StartError = Box<dyn std::error::Error + Send + Sync>;
