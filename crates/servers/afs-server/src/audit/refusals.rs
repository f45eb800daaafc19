//! Refusals of each caller and call, of which the first are recorded and the others counted.
//!
//! Callers with a name and those without have tables of their own: neither takes a place from the other.

use std::net::IpAddr;
use std::time::Duration;

use afs_rpc::admission::Origin;
use afs_rpc::{Identity, Instant, RepeatBounds, RepeatKind, Repeats, UnixTime};

use super::record::{AuditPart, AuditedCall, CountedCalls, Refused};

/// Refusals of callers with a name: 65,536 records in ten minutes, and a count for each place and for each call.
const NAMED: RepeatBounds = RepeatBounds { window: WINDOW, told: 64, kinds: 1024 };
/// Those of callers without: 8,192, from however many addresses.
const ANONYMOUS: RepeatBounds = RepeatBounds { kinds: 128, ..NAMED };
const WINDOW: Duration = Duration::from_secs(600);

/// A caller and a call.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct CallerAndCall(Refused, &'static str);

impl RepeatKind for CallerAndCall {
    fn shared(&self) -> Self {
        CallerAndCall(Refused::Others, self.1)
    }
}

pub(super) struct Refusals {
    named: Repeats<CallerAndCall>,
    anonymous: Repeats<CallerAndCall>,
}

impl Default for Refusals {
    fn default() -> Self {
        Refusals { named: Repeats::new(NAMED), anonymous: Repeats::new(ANONYMOUS) }
    }
}

impl Refusals {
    /// Whether a refusal is to be recorded, for which there is `room` or not. It is counted otherwise.
    pub fn is_recorded(&mut self, call: &AuditedCall, now: Instant, room: bool) -> bool {
        let table = match call.part() {
            AuditPart::AnonymousRefusals => &mut self.anonymous,
            _ => &mut self.named,
        };
        let kind = CallerAndCall(refused(call), call.call);
        if !room {
            table.count(kind, now);
            return false;
        }
        table.is_told(kind, now)
    }

    /// When the counts are to be recorded, if there are any.
    pub fn due(&self) -> Option<Instant> {
        [self.named.due(), self.anonymous.due()].into_iter().flatten().min()
    }

    /// Takes the counts.
    pub fn take(&mut self, time: UnixTime) -> impl Iterator<Item = CountedCalls> {
        let of = move |part| {
            move |(CallerAndCall(caller, call), count)| CountedCalls { time, part, caller, call, count }
        };
        let anonymous = self.anonymous.take().into_iter().map(of(AuditPart::AnonymousRefusals));
        self.named.take().into_iter().map(of(AuditPart::Refusals)).chain(anonymous)
    }
}

/// The caller of a call that was refused; of those without a name the address, or the /64, all of whose addresses one host can have.
fn refused(call: &AuditedCall) -> Refused {
    match (call.part(), Origin::of(call.peer.ip()).host()) {
        (AuditPart::AnonymousRefusals, IpAddr::V6(network)) => Refused::Network(network),
        (AuditPart::AnonymousRefusals, address) => Refused::Address(address),
        _ => Refused::Named(who(&call.identity)),
    }
}

/// The name of a caller in the log.
pub(super) fn who(identity: &Identity) -> String {
    match identity {
        Identity::Local => "(this process)".into(),
        identity => identity.principal().map_or_else(|| ANYBODY.into(), ToString::to_string),
    }
}

/// All callers that have not authenticated.
pub(super) const ANYBODY: &str = "(anybody)";
