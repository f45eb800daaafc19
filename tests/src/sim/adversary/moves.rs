//! What an adversary can do: the moves that a seed chooses from.

/// One kind of move. Where it says *third address*, the packets come from addresses that are nobody's but the adversary's;
/// where it says *false source*, from addresses that never answer, in whose name the adversary sends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Move {
    /// Calls on the connections of honest users from third addresses, with the epochs, connection ids and call numbers that
    /// listening and questions of rxdebug tell. Calls of the server back to these addresses are answered with an abort.
    Hijack,
    /// Packets of honest users some seconds later, from third addresses and from their own, while the server restarts again
    /// and again.
    Replay,
    /// Packets of honest users again, while so many connections are made that the server forgets old ones.
    ReplayEvicted,
    /// Packets of honest users at once from a third address, so that some of them come before the original.
    Overtake,
    /// Aborts and garbage on the connections of honest users, at the server and at the clients, from third addresses.
    Disturb,
    /// Packets far ahead in the sequence of calls that never become complete, from false sources.
    SequenceGaps,
    /// Calls of which only the beginning arrives, from false sources.
    IncompleteCalls,
    /// Complete calls whose replies nobody acknowledges, from false sources.
    UnackedReplies,
    /// First contacts that do not say who they are, from false sources.
    UnknownHosts,
    /// Questions of rxdebug and cmdebug to the server and to clients, from third addresses and from false sources.
    Questions,
    /// Whatever makes a server say much, in the name of an address that never answers.
    Amplify,
    /// A client without security is impersonated towards the server: its name at a third address.
    Divert,
    /// Clients of many names that take promises, answer everything else, and ignore that they are broken, or answer late.
    IgnoreBreaks,
    /// Breaks and resets of promises that no server has sent, to the clients, in the server's name and from third addresses.
    FalseBreaks,
    /// A user stores files that are full of records of the store's log, and the power is cut again and again.
    LogRecords,
    /// Machines are suspended and go on, for seconds and for hours; some have a clock that stands still meanwhile.
    Suspend,
    /// More files than a client keeps the status of, looked at by all machines at the same time. Two rules stand against
    /// it, the client's about what it gives back and the server's about young promises, and either is enough.
    Crowd,
    /// The same while machines are cut off.
    CrowdCutOff,
}

impl Move {
    /// All that the project defends against, as far as these tests know.
    pub const ALL: [Move; 18] = [
        Move::Hijack,
        Move::Replay,
        Move::ReplayEvicted,
        Move::Overtake,
        Move::Disturb,
        Move::SequenceGaps,
        Move::IncompleteCalls,
        Move::UnackedReplies,
        Move::UnknownHosts,
        Move::Questions,
        Move::Amplify,
        Move::Divert,
        Move::IgnoreBreaks,
        Move::FalseBreaks,
        Move::LogRecords,
        Move::Suspend,
        Move::Crowd,
        Move::CrowdCutOff,
    ];

    /// Those that may be mixed with others, in any faults.
    pub const HELD: &[Move] = &[
        Move::Hijack,
        Move::Replay,
        Move::ReplayEvicted,
        Move::Overtake,
        Move::Disturb,
        Move::SequenceGaps,
        Move::Questions,
        Move::Amplify,
        Move::IgnoreBreaks,
        Move::FalseBreaks,
        Move::LogRecords,
    ];

    /// Whether it is of the users or the machines, and not of the adversary.
    #[must_use]
    pub fn is_of_the_world(self) -> bool {
        matches!(self, Move::LogRecords | Move::Suspend | Move::Crowd | Move::CrowdCutOff)
    }

    /// The move of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Move> {
        Self::ALL.into_iter().find(|one| format!("{one:?}") == name)
    }
}
