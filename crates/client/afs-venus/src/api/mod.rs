//! Types of the interface between Venus and its callers: nodes, attributes, handles, flags.
//!
//! They depend neither on FUSE nor on the network protocols.

mod activity;
mod attr;
mod bypass;
mod explanation;
mod flags;
mod handle;
mod hole;
mod id;
mod known_cell;
mod lock;
mod node;
mod pin;
mod requester;
mod space;
mod unsaved;

pub use activity::{
    Activity, ActivityCounts, CacheActivity, LeaseActivity, OngoingCall, ServerActivity, SlowCall,
};
pub use attr::{Attr, Kind, NewTime, OpenAttr, SetAttr};
pub use bypass::BypassRequest;
pub use explanation::{
    ExplainedBypass, ExplainedData, ExplainedDrive, ExplainedError, ExplainedFid, ExplainedLock,
    ExplainedLocks, ExplainedPromise, ExplainedRights, ExplainedServer, ExplainedStatus, ExplainedVolume,
    Explanation, Unpromised,
};
pub use flags::{Access, OpenFlags};
pub use handle::{Backing, HandleId, Opened, OpenedDir};
pub use hole::{Allocate, Seek};
pub use id::NodeId;
pub use known_cell::KnownCell;
pub use lock::{LockHolder, LockKind, LockRange};
pub use node::{DirEntry, DirEntryPlus, Entry};
pub use pin::{PinOptions, PinState, Pinned, Unpinned};
pub use requester::{Requester, SessionCallback, SessionLookup, Token, TokenInfo, TokenOwner};
pub use space::Space;
pub use unsaved::{Unsaved, UnsavedPiece, Unsettled};
