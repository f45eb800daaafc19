//! What a world does to its cell.

use std::time::Duration;

use afs_sim::{LinkConfig, SimRng};

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultClass {
    /// A good network.
    Fair,
    /// A network that loses, doubles and delays.
    Foul,
    /// A good network, and a server that loses its power in the middle of its writes, again and again.
    Crashes,
    /// A good network that is cut between a client and the server for a while, in one direction or both, and wall clocks
    /// that jump.
    Cuts,
}

impl FaultClass {
    /// The faults of a seed: all kinds in turn.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        match seed % 4 {
            0 => Self::Fair,
            1 => Self::Foul,
            2 => Self::Crashes,
            _ => Self::Cuts,
        }
    }

    /// Whether what a user sees while working counts.
    ///
    /// Who is cut off goes on with the promises it has, and is told of what it missed when it can be reached again.
    #[must_use]
    pub fn is_seen_by_all(self) -> bool {
        self != Self::Cuts
    }

    /// Whether every operation must succeed.
    #[must_use]
    pub fn is_without_failures(self) -> bool {
        matches!(self, Self::Fair | Self::Foul)
    }

    /// The network in it.
    #[must_use]
    pub fn link(self, rng: &mut SimRng) -> LinkConfig {
        match self {
            Self::Fair | Self::Crashes | Self::Cuts => LinkConfig {
                latency_min: Duration::from_micros(rng.between(10, 200)),
                latency_max: Duration::from_micros(rng.between(200, 3000)),
                ..LinkConfig::default()
            },
            Self::Foul => LinkConfig {
                latency_min: Duration::from_micros(rng.between(20, 2000)),
                latency_max: Duration::from_micros(rng.between(2000, 30_000)),
                loss_per_million: u32::try_from(rng.below(30_000)).unwrap_or(0),
                duplicate_per_million: u32::try_from(rng.below(20_000)).unwrap_or(0),
                straggle_per_million: u32::try_from(rng.below(5_000)).unwrap_or(0),
            },
        }
    }
}
