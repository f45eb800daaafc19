//! Counters of an endpoint.

/// Why an arriving packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
#[repr(u8)]
pub enum DropReason {
    /// Fewer than 28 bytes.
    ShortHeader,
    /// The jumbo flag is set but too few bytes follow.
    BrokenJumbogram,
    /// A packet of more than 16384 bytes.
    TooLong,
    /// A payload shorter than its packet type needs.
    ShortPayload,
    /// A type that is not defined outside of a call.
    UnknownType,
    /// A packet for a connection that does not exist.
    NoSuchConnection,
    /// A packet for a client connection from an address that is not its server's.
    WrongAddress,
    /// The service is not offered, or not under this security index; answered with a raw abort.
    NoSuchService,
    /// The connection has another security index.
    WrongSecurityIndex,
    /// The table of connections is full.
    TooManyConnections,
    /// A limit of calls is reached; answered with an abort.
    TooManyCalls,
    /// The channel has no call and the packet is not DATA that begins one.
    NoSuchCall,
    /// The call number is older than the channel's current one.
    OldCall,
    /// The first packet received of a new call is too far into it.
    NewCallTooFar,
    /// The connection has failed; answered with its abort, except for an ABORT.
    ConnectionFailed,
    /// The call has failed; answered with its abort, except for an ABORT.
    CallFailed,
    /// A packet with call number zero that must have another.
    CallNumberZero,
    /// DATA that failed to open under the connection's keys; its retransmission is requested.
    NotOpened,
    /// DATA with sequence number zero.
    SequenceZero,
    /// DATA that was received before.
    Duplicate,
    /// DATA beyond the receive window.
    ExceedsWindow,
    /// DATA after the packet marked last, or a second last packet elsewhere.
    PastEnd,
    /// DATA of a request whose reply has begun.
    RequestAfterReply,
    /// No memory for the payload at the moment.
    BufferFull,
    /// An ACK older than one that was processed.
    StaleAck,
    /// An ACK for packets that were never sent.
    AckBeyondSent,
    /// An ACK, ACKALL, BUSY or other packet that does not fit the call's phase.
    WrongPhase,
    /// A CHALLENGE while no call is active, or for a class that never challenges.
    UnwantedChallenge,
    /// A RESPONSE on an authenticated connection, or without a challenge.
    UnwantedResponse,
    /// More responses in this second than are verified; the next challenge requests them again.
    TooManyResponses,
    /// DEBUG or VERSION without the client's flag, or too short.
    UnansweredQuery,
    /// More queries in this second than are answered.
    TooManyQueries,
    /// The queue of packets without a call is full.
    ControlQueueFull,
    /// A packet to an unvalidated address without credit; not sent. Or DATA of a connection whose client's address is
    /// not validated.
    UnvalidatedAddress,
}

impl DropReason {
    /// Number of reasons.
    pub const COUNT: usize = DropReason::UnvalidatedAddress as usize + 1;
}

/// Counters since the endpoint was made. Monotonic, except for `buffered_bytes`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stats {
    /// Packets read by type; index is type - 1, as in rxdebug.
    pub packets_read: [u64; 13],
    /// Packets sent by type; index is type - 1.
    pub packets_sent: [u64; 13],
    /// Paths that swallow large packets since the middle of a call.
    pub narrow_paths: u64,
    /// DATA packets retransmitted.
    pub data_resent: u64,
    /// Pings sent.
    pub pings_sent: u64,
    /// Packets dropped, by reason: index with `DropReason as usize`.
    pub dropped: [u64; DropReason::COUNT],
    /// Calls begun by clients and reported to the application.
    pub calls_received: u64,
    /// Calls opened here.
    pub calls_opened: u64,
    /// Retransmission timers that fired, probes apart.
    pub timeouts: u64,
    /// Packets sent again to learn whether those in flight have arrived.
    pub probes: u64,
    /// Packets declared lost after later acks.
    pub losses: u64,
    /// Payload bytes received, in order of arrival, duplicates excluded.
    pub bytes_received: u64,
    /// Payload bytes sent, retransmissions excluded.
    pub bytes_sent: u64,
    /// Bytes held for packets received and unread at the moment: their payloads, and 96 for each.
    pub buffered_bytes: usize,
    /// Round trips measured.
    pub rtt_samples: u64,
    /// Server connections that have migrated to another address.
    pub moves: u64,
}

impl Default for Stats {
    fn default() -> Self {
        Stats {
            packets_read: [0; 13],
            packets_sent: [0; 13],
            narrow_paths: 0,
            data_resent: 0,
            pings_sent: 0,
            dropped: [0; DropReason::COUNT],
            calls_received: 0,
            calls_opened: 0,
            timeouts: 0,
            probes: 0,
            losses: 0,
            bytes_received: 0,
            bytes_sent: 0,
            buffered_bytes: 0,
            rtt_samples: 0,
            moves: 0,
        }
    }
}

impl Stats {
    /// Packets dropped for this reason.
    pub fn drops(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }

    pub(crate) fn drop_packet(&mut self, reason: DropReason) {
        self.dropped[reason as usize] += 1;
        tracing::trace!(?reason, "packet dropped");
    }
}

/// Objects that an endpoint holds at the moment: for tests of bounds and for operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Holdings {
    /// Calls not yet released or not yet over.
    pub calls: usize,
    /// Connections opened here.
    pub client_connections: usize,
    /// Connections opened by clients.
    pub server_connections: usize,
    /// Peers known.
    pub peers: usize,
    /// Entries in the timer heap, stale ones included.
    pub timers: usize,
    /// Queued packets that belong to no call.
    pub control_packets: usize,
    /// Events not yet polled.
    pub events: usize,
    /// Bytes held for packets received and unread: their payloads, and 96 for each.
    pub buffered_bytes: usize,
}
