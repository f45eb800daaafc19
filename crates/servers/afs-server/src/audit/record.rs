//! Audit record of one call.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use afs_rpc::{Identity, UnixTime};
use afs_wire::error::{AbortCode, Errno};
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
    /// Makes changes that others can see, each of which is recorded by itself.
    List,
}

impl CallKind {
    /// Whether it makes changes.
    pub(crate) fn changes(self) -> bool {
        matches!(self, CallKind::Change | CallKind::List)
    }
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
    /// What it does with its object.
    pub kind: CallKind,
    /// The object of the call.
    pub object: AuditObject,
    /// The outcome; 0 is success.
    pub code: AbortCode,
}

/// A part of the log, with files of its own: what enters one does not displace what is in another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AuditPart {
    /// Changes that were made.
    Changes,
    /// Refusals of authenticated callers, and changes of theirs that failed.
    Refusals,
    /// The same of callers that have not authenticated.
    AnonymousRefusals,
    /// Everything else, where that is recorded.
    Reads,
}

/// Refusals that have no record each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CountedCalls {
    /// Time of the record.
    pub time: UnixTime,
    /// The part in which such calls are recorded.
    pub part: AuditPart,
    /// Who called.
    pub caller: Refused,
    /// The call's name in the protocol's documents.
    pub call: &'static str,
    /// The number of such calls since the last such record.
    pub count: u64,
}

/// A caller whose refusals are counted together.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Refused {
    /// An authenticated one, from any address.
    Named(String),
    /// All that have not authenticated at an address.
    Address(IpAddr),
    /// All that have not authenticated in the /64 that begins here.
    Network(Ipv6Addr),
    /// All of the part that have no place in the table.
    Others,
}

/// An entry of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AuditRecord {
    /// A completed call.
    Call(AuditedCall),
    /// Refusals beyond the first of a caller and call.
    Counted(CountedCalls),
    /// The number of records of a part lost here, because the queue was full or the sink failed.
    Lost(AuditPart, u64),
}

impl AuditPart {
    /// All of them, in their order.
    pub const ALL: [Self; 4] = [Self::Changes, Self::Refusals, Self::AnonymousRefusals, Self::Reads];

    /// The part of a call. A change that failed is among the refusals: whoever may change nothing can cause any number of
    /// them.
    pub(super) fn of(kind: CallKind, identity: &Identity, code: AbortCode) -> Self {
        let has_failed = code != AbortCode::OK;
        let is_among_refusals = match kind {
            CallKind::Change | CallKind::List => has_failed,
            CallKind::Read | CallKind::Probe => is_refusal(code),
        };
        match identity {
            Identity::Anonymous if is_among_refusals => AuditPart::AnonymousRefusals,
            _ if is_among_refusals => AuditPart::Refusals,
            _ if kind == CallKind::Change => AuditPart::Changes,
            _ => AuditPart::Reads,
        }
    }
}

impl AuditedCall {
    /// The part to which the record belongs.
    pub fn part(&self) -> AuditPart {
        AuditPart::of(self.kind, &self.identity, self.code)
    }
}

impl AuditRecord {
    /// The part of the log to which it belongs.
    pub fn part(&self) -> AuditPart {
        match self {
            AuditRecord::Call(call) => call.part(),
            AuditRecord::Counted(counted) => counted.part,
            AuditRecord::Lost(part, _) => *part,
        }
    }
}

/// Whether a code means that the caller lacked permission, as opposed to any other failure.
fn is_refusal(code: AbortCode) -> bool {
    let errno = code.to_errno();
    [Errno::EACCES, Errno::EPERM].iter().any(|refused| errno == Some(refused.number()))
        || code == AbortCode::VICETOKENDEAD
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
