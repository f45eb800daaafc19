//! Classes of faults of a world.

use std::time::Duration;

use afs_sim::{LinkConfig, SimRng, StreamConfig};

/// Class of faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultClass {
    /// No faults.
    None,
    /// A network that loses, duplicates and delays packets.
    LossyNetwork,
    /// A good network, and a server with power failures in the middle of its writes.
    PowerFailures,
    /// A good network that is partitioned between a client and the server for a while, in one direction or both, and
    /// wall clocks that jump.
    Partitions,
}

impl FaultClass {
    /// The class of a seed: all of them in turn.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        match seed % 4 {
            0 => Self::None,
            1 => Self::LossyNetwork,
            2 => Self::PowerFailures,
            _ => Self::Partitions,
        }
    }

    /// Whether observations of a working user count.
    ///
    /// A partitioned client continues to trust its promises, and is notified of what it missed when it can be reached
    /// again.
    #[must_use]
    pub fn is_seen_by_all(self) -> bool {
        self != Self::Partitions
    }

    /// Whether every operation must succeed.
    #[must_use]
    pub fn is_without_failures(self) -> bool {
        matches!(self, Self::None | Self::LossyNetwork)
    }

    /// The streams of this class.
    #[must_use]
    pub fn streams(self, rng: &mut SimRng) -> StreamConfig {
        let mut per_million = |most| u32::try_from(rng.below(most)).unwrap_or(0);
        match self {
            Self::None | Self::PowerFailures | Self::Partitions => StreamConfig::default(),
            Self::LossyNetwork => StreamConfig {
                segment_max: 1460,
                reset_per_million: per_million(20_000),
                silence_per_million: per_million(5_000),
                stall_per_million: per_million(50_000),
                ..StreamConfig::default()
            },
        }
    }

    /// The network of this class.
    #[must_use]
    pub fn link(self, rng: &mut SimRng) -> LinkConfig {
        match self {
            Self::None | Self::PowerFailures | Self::Partitions => LinkConfig {
                latency_min: Duration::from_micros(rng.between(10, 200)),
                latency_max: Duration::from_micros(rng.between(200, 3000)),
                ..LinkConfig::default()
            },
            Self::LossyNetwork => LinkConfig {
                latency_min: Duration::from_micros(rng.between(20, 2000)),
                latency_max: Duration::from_micros(rng.between(2000, 30_000)),
                loss_per_million: u32::try_from(rng.below(30_000)).unwrap_or(0),
                duplicate_per_million: u32::try_from(rng.below(20_000)).unwrap_or(0),
                straggle_per_million: u32::try_from(rng.below(5_000)).unwrap_or(0),
            },
        }
    }
}
