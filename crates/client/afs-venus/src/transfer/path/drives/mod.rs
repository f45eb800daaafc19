//! Reads at the drives themselves, in front of those at the file server (docs/protocol/extensions.md "Layouts").
//!
//! The file server tells once in which chunks of which drives a file is, and which bytes of it only it has itself. Bytes of a drive are
//! compared with the checksums that the file server told; whatever fails, the file server is read instead, and the program
//! that reads does not notice. Stores go there in the same way ([`storing`]).

mod asking;
mod buckets;
mod commanded;
mod companions;
mod layout;
mod layouts;
mod links;
mod lists;
mod objects;
mod opening;
mod read;
mod renewing;
mod server_drives;
mod sites;
mod storing;

pub(super) use read::AtServer;
pub(super) use server_drives::ServerDrives;
