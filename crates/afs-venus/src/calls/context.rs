//! For whom a call is made, and how much trouble it is worth.

use crate::identity::User;

/// What a call does about servers that are away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WaitPolicy {
    /// It waits for a server that was there until just now.
    Wait,
    /// It waits for no server that is away: nobody waits for it, or much else does.
    NoWait,
    /// Likewise, and it is not made again after an attempt that may have been carried out.
    NoRetry,
}

/// Who asks, and how patiently.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CallContext {
    /// Whose tokens prove it.
    pub user: User,
    pub wait: WaitPolicy,
    /// The process that waits for the answer; 0 if none does.
    pub process: u32,
}

impl CallContext {
    /// Nobody in particular, for whom no server is waited for.
    pub const ANONYMOUS: CallContext = CallContext { user: None, wait: WaitPolicy::NoWait, process: 0 };

    /// Somebody who waits for servers that were there until just now.
    pub fn waiting(user: User) -> CallContext {
        CallContext { user, wait: WaitPolicy::Wait, process: 0 }
    }

    /// For a task of its own, which no process waits for.
    pub fn in_background(self) -> CallContext {
        CallContext { process: 0, ..self }
    }
}
