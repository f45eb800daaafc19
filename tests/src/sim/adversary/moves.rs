//! Moves of the adversary, from which a seed chooses.

/// One kind of move. Packets from a *third address* come from addresses that only the adversary has, at which it answers pings; packets from a
/// *false source* have an address that never replies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Move {
    /// Calls on the connections of honest users from third addresses, with the epochs, connection ids and call numbers
    /// from heard packets and from rxdebug. Calls of the server back to these addresses are aborted.
    Hijack,
    /// Packets of honest users again some seconds later, from third addresses and from their own, while the server
    /// restarts repeatedly.
    Replay,
    /// Packets of honest users again, while so many connections are made that the server forgets old ones.
    ReplayEvicted,
    /// Packets of honest users at once from a third address, so that some arrive before the original.
    Overtake,
    /// Aborts and garbage on the connections of honest users, to the server and to the clients, from third addresses.
    Disturb,
    /// Packets far ahead in the sequence of calls that never become complete, from false sources.
    SequenceGaps,
    /// Calls of which only the first packet arrives, from false sources.
    IncompleteCalls,
    /// Complete calls whose replies are never acknowledged, from false sources.
    UnackedReplies,
    /// First contacts that do not reply to the identity query, from false sources.
    UnknownHosts,
    /// Requests of rxdebug and cmdebug to the server and to clients, from third addresses and from false sources.
    Questions,
    /// Requests with long replies, from a false source.
    Amplify,
    /// Complete calls on new connections from hundreds of the adversary's own addresses, of IPv4 and of sites of IPv6, whose replies are
    /// taken and acknowledged.
    ManyAddresses,
    /// Impersonation of a client without security to the server: its UUID at a third address.
    Divert,
    /// Clients with many UUIDs that take promises, reply to everything else, and ignore breaks or reply to them late.
    IgnoreBreaks,
    /// Breaks and resets of promises that no server has sent, to the clients, from the server's address and from third
    /// addresses.
    FalseBreaks,
    /// A user stores files that contain records of the store's log, and power failures occur repeatedly.
    LogRecords,
    /// Machines are suspended and resumed, for seconds and for hours; some have a clock that stands still meanwhile.
    Suspend,
    /// More files than a client keeps statuses of, accessed by all machines at the same time. Two rules prevent lost
    /// breaks, the client's about what it gives back and the server's about young promises, and either is enough.
    Crowd,
    /// The same while machines are partitioned.
    CrowdCutOff,
    /// Streams to the data service on which nothing follows, from the adversary's own address.
    SilentStreams,
    /// What clients sent on streams of the data path, again, on other streams: capabilities with their proofs, and
    /// requests.
    ReplayedStreams,
    /// Capabilities that nobody has sealed: those of others with a made-up secret, and one of its own that says more.
    ForgedCapabilities,
    /// Streams of honest users are reset, stalled and silenced.
    CutStreams,
}

impl Move {
    /// All kinds, as far as these tests know them.
    pub const ALL: [Move; 23] = [
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
        Move::ManyAddresses,
        Move::Divert,
        Move::IgnoreBreaks,
        Move::FalseBreaks,
        Move::SilentStreams,
        Move::ReplayedStreams,
        Move::ForgedCapabilities,
        Move::CutStreams,
        Move::LogRecords,
        Move::Suspend,
        Move::Crowd,
        Move::CrowdCutOff,
    ];

    /// Those that may be mixed with others, with any faults.
    pub const HELD: &[Move] = &[
        Move::Hijack,
        Move::Replay,
        Move::ReplayEvicted,
        Move::Overtake,
        Move::Disturb,
        Move::SequenceGaps,
        Move::Questions,
        Move::Amplify,
        Move::ManyAddresses,
        Move::IgnoreBreaks,
        Move::FalseBreaks,
        Move::SilentStreams,
        Move::ReplayedStreams,
        Move::ForgedCapabilities,
        Move::CutStreams,
        Move::LogRecords,
    ];

    /// Those on streams of the data path.
    pub const OF_STREAMS: [Move; 4] =
        [Move::SilentStreams, Move::ReplayedStreams, Move::ForgedCapabilities, Move::CutStreams];

    /// Whether users or machines carry it out, and not the adversary.
    #[must_use]
    pub fn is_of_the_world(self) -> bool {
        matches!(self, Move::LogRecords | Move::Suspend | Move::Crowd | Move::CrowdCutOff)
    }

    /// The move with that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Move> {
        Self::ALL.into_iter().find(|one| format!("{one:?}") == name)
    }
}
