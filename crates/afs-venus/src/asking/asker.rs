//! For whom a call is made, and how much trouble it is worth.

use crate::identity::Who;

/// What a call does about servers that are away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Manner {
    /// It waits for a server that was there until just now.
    Patient,
    /// It waits for no server that is away: nobody waits for it, or much else does.
    Hasty,
    /// Likewise, and it is not made again after an attempt that may have been carried out.
    Once,
}

/// Who asks, and how patiently.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Asker {
    /// Whose tokens prove it.
    pub who: Who,
    pub manner: Manner,
    /// The process that waits for the answer; 0 if none does.
    pub process: u32,
}

impl Asker {
    /// Nobody in particular, for whom no server is waited for.
    pub const NOBODY: Asker = Asker { who: None, manner: Manner::Hasty, process: 0 };

    /// Somebody who waits for servers that were there until just now.
    pub fn patient(who: Who) -> Asker {
        Asker { who, manner: Manner::Patient, process: 0 }
    }

    /// For a task of its own, which no process waits for.
    pub fn alone(self) -> Asker {
        Asker { process: 0, ..self }
    }
}
