//! Context of a call: its user, the process that waits for it, and how it treats unreachable servers.

use crate::identity::User;

/// How a call treats unreachable servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WaitPolicy {
    /// Waits for a server that was reachable until recently.
    Wait,
    /// Does not wait for unreachable servers: no process waits for the call, or other work would be delayed.
    NoWait,
    /// As `NoWait`; and a server that does not reply to a probe is given up long before the dead time, since there is
    /// another answer.
    Glance,
    /// As `NoWait`; and not retried after an attempt that may have been executed.
    NoRetry,
}

/// Context of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CallContext {
    /// The user whose token authenticates it.
    pub user: User,
    pub wait: WaitPolicy,
    /// The process that waits for the reply; 0 if none.
    pub process: u32,
    /// It is for an operation that only reads, and something is pinned for that: it may be as it was last promised.
    pub may_be_old: bool,
}

impl CallContext {
    /// An anonymous call that does not wait for unreachable servers.
    pub const ANONYMOUS: CallContext =
        CallContext { user: None, wait: WaitPolicy::NoWait, process: 0, may_be_old: false };

    /// A call for a user that waits for servers that were reachable until recently.
    pub const fn waiting(user: User) -> CallContext {
        CallContext { user, wait: WaitPolicy::Wait, process: 0, may_be_old: false }
    }

    /// The same context for a background task, which no process waits for.
    pub fn in_background(self) -> CallContext {
        CallContext { process: 0, may_be_old: false, ..self }
    }
}
