//! Audit record of one call.

use std::fmt;
use std::net::SocketAddr;

use afs_rpc::{Identity, UnixTime};
use afs_wire::error::AbortCode;
use afs_wire::ids::{Fid, Uuid, ViceId, VolumeId};
use afs_wire::vol::TransactionId;

/// What a call does with its object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallKind {
    /// Probes the server: liveness or capabilities.
    Probe,
    /// Reads.
    Read,
    /// Makes a change that others can see.
    Change,
}

/// The object of a call, as the call named it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum AuditObject {
    /// No particular object.
    #[default]
    Nothing,
    /// A file, directory or link.
    Fid(Fid),
    /// A name in a directory.
    Entry(Fid, AuditName),
    /// A name that becomes another: old and new.
    Moved([(Fid, AuditName); 2]),
    /// A volume by its id.
    Volume(VolumeId),
    /// The volume of a transaction of the volume service.
    Transaction(TransactionId),
    /// A volume, user or group by its name.
    Name(AuditName),
    /// A user or group by its id.
    Id(ViceId),
    /// A membership: user, then group.
    Member(ViceId, ViceId),
    /// A server.
    Server(Uuid),
}

/// A name as a caller sent it, for display: at most 256 bytes of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AuditName(Box<str>);

impl AuditName {
    /// The beginning of a name, with replacement characters where it is not valid UTF-8.
    pub fn new(name: &[u8]) -> Self {
        const LONGEST: usize = 256;
        AuditName(String::from_utf8_lossy(name.get(..LONGEST).unwrap_or(name)).into())
    }

    /// The text. The caller chose it: control characters are possible.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A completed call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditedCall {
    /// Time of completion.
    pub time: UnixTime,
    /// The authenticated identity, with class and level.
    pub identity: Identity,
    /// The address it came from.
    pub peer: SocketAddr,
    /// The call's name in the protocol's documents.
    pub call: &'static str,
    /// The object of the call.
    pub object: AuditObject,
    /// The outcome; 0 is success.
    pub code: AbortCode,
}

/// An entry of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AuditRecord {
    /// A completed call.
    Call(AuditedCall),
    /// The number of records lost here, because the queue was full or the sink failed.
    Lost(u64),
}

impl fmt::Display for AuditObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuditObject::Nothing => Ok(()),
            AuditObject::Fid(fid) => write!(f, "{fid}"),
            AuditObject::Entry(dir, name) => write!(f, "{dir}/{}", name.as_str()),
            AuditObject::Moved([(from, old), (to, new)]) => {
                write!(f, "{from}/{} -> {to}/{}", old.as_str(), new.as_str())
            }
            AuditObject::Volume(volume) => write!(f, "volume {volume}"),
            AuditObject::Transaction(transaction) => write!(f, "transaction {transaction}"),
            AuditObject::Name(name) => f.write_str(name.as_str()),
            AuditObject::Id(id) => write!(f, "id {id}"),
            AuditObject::Member(user, group) => write!(f, "id {user} in {group}"),
            AuditObject::Server(uuid) => write!(f, "server {uuid}"),
        }
    }
}

impl From<Fid> for AuditObject {
    fn from(fid: Fid) -> Self {
        AuditObject::Fid(fid)
    }
}

impl From<VolumeId> for AuditObject {
    fn from(volume: VolumeId) -> Self {
        AuditObject::Volume(volume)
    }
}

impl From<TransactionId> for AuditObject {
    fn from(transaction: TransactionId) -> Self {
        AuditObject::Transaction(transaction)
    }
}

impl From<(Fid, &[u8])> for AuditObject {
    fn from((dir, name): (Fid, &[u8])) -> Self {
        AuditObject::Entry(dir, AuditName::new(name))
    }
}

impl From<&[u8]> for AuditObject {
    fn from(name: &[u8]) -> Self {
        AuditObject::Name(AuditName::new(name))
    }
}

impl From<()> for AuditObject {
    fn from((): ()) -> Self {
        AuditObject::Nothing
    }
}
