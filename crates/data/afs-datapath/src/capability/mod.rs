//! Capabilities: public arguments and a secret, which only the drive's key makes of them.
//!
//! The form is that of Gibson et al., *File server scaling with network-attached secure disks* (SIGMETRICS 1997):
//! the file manager gives a client arguments and a keyed digest of them; the client proves possession of the digest
//! without sending it.

mod access;
mod arguments;
mod group;
mod group_tag;
mod ids;
mod key;
mod list;
mod proof;
mod range;
mod refusal;
mod revocations;
mod secret;
mod staging;
mod stream_name;
mod terms;

pub use access::Access;
pub use arguments::Capability;
pub use group::Group;
pub use group_tag::GroupTag;
pub use ids::{DriveId, Generation, HolderId, KeyEpoch, StoreNumber, TicketId, TransferId};
pub use key::DriveKey;
pub use list::{ChunkList, LIST_MAX, ListBinding, ListTerms, Listed, ListedChunk, Node};
pub use proof::{Nonce, Nonces, Proof};
pub use range::ByteRange;
pub use refusal::Refusal;
pub use revocations::{Changes, GROUPS_MAX, Revocations};
pub use secret::Secret;
pub use staging::{ClaimId, StagingTag};
pub use stream_name::StreamName;
pub use terms::Terms;
