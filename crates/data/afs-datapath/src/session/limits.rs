//! Bounds of a drive, and how long an end waits for the other.

use std::time::Duration;

/// How long an end of a connection waits. The same on both ends; nothing of it is on the wire, but that [`Patience::alive`] must be
/// well below the other's [`Patience::silence`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// For TLS and both first frames together. Default 10 s.
    pub handshake: Duration,
    /// Without anything to send before an end says that it is alive. Default 15 s.
    pub alive: Duration,
    /// Without a byte from the other end before the connection is given up. Default 45 s.
    pub silence: Duration,
    /// For the other end's next step in a request (bytes, credit, a reply), and for the stream to take a byte. Default 30 s.
    pub stall: Duration,
    /// Without a request before a drive closes the connection. Default 10 minutes.
    pub idle: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            alive: Duration::from_secs(15),
            silence: Duration::from_secs(45),
            stall: Duration::from_secs(30),
            idle: Duration::from_secs(600),
        }
    }
}

impl Patience {
    /// How often an end looks at what it waits for: it gives up late by that much at most.
    pub(super) fn tick(&self) -> Duration {
        (self.alive.min(self.silence).min(self.stall).min(self.idle) / 4).max(TICK_MIN)
    }
}

/// Shortest time between two looks.
const TICK_MIN: Duration = Duration::from_millis(1);

/// Bounds of a drive. What exceeds them is refused at once, and the client uses calls instead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriveLimits {
    /// Connections in all. Default 1,024.
    pub connections: usize,
    /// Connections of one address. Default 64.
    pub connections_per_address: usize,
    /// Requests in progress in all. Each holds at most about 768 KiB. Default 1,024.
    pub requests: usize,
    /// Requests in progress of one address. Default 256.
    pub requests_per_address: usize,
    /// Requests in progress on one connection. Default 32.
    pub requests_per_connection: u32,
    /// Capabilities presented on one connection. Default 1,024.
    pub handles_per_connection: u32,
    /// How long it waits.
    pub patience: Patience,
}

impl Default for DriveLimits {
    fn default() -> Self {
        Self {
            connections: 1024,
            connections_per_address: 64,
            requests: 1024,
            requests_per_address: 256,
            requests_per_connection: 32,
            handles_per_connection: 1024,
            patience: Patience::default(),
        }
    }
}

/// Bytes of a store that have arrived at a drive and wait to be taken. As much of a read waits to be sent at most, beside the piece
/// that its source is reading.
pub(super) const STORE_WINDOW: u32 = 512 << 10;
/// Bytes of a stream of a volume that its receiver takes in advance, at either end. There are few streams, and they are long.
pub(super) const STREAM_WINDOW: u32 = 2 << 20;
/// Bytes of a read that a client takes in advance of its user.
pub(super) const READ_WINDOW: u32 = 1 << 20;
