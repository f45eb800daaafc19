//! Exact mean value analysis of a closed network (Reiser and Lavenberg, JACM 27(2), 1980).

/// What a run of one client needs, in seconds, when it is alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demands {
    /// From its beginning to its end.
    pub elapsed: f64,
    /// Of the server's processor.
    pub processor: f64,
    /// Of the server's disk; 0 if that is not known.
    pub disk: f64,
}

/// A load in the steady state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtLoad {
    /// Seconds of a run.
    pub elapsed: f64,
    /// Part of the time that the server's processor works, 0 to 1.
    pub processor: f64,
    /// Part of the time that its disk works.
    pub disk: f64,
}

impl Demands {
    /// Clients at once, each with a processor of its own. Takes a step for each client.
    #[must_use]
    pub fn at_load(self, clients: u32) -> AtLoad {
        let demands = [self.processor, self.disk];
        let alone = (self.elapsed - self.processor - self.disk).max(0.0);
        let (mut waiting, mut at) = ([0.0; 2], AtLoad { elapsed: 0.0, processor: 0.0, disk: 0.0 });
        for count in 1..=clients {
            // Who arrives sees the queues of a network with one client less.
            let stays = [0, 1].map(|station| demands[station] * (1.0 + waiting[station]));
            let elapsed = alone + stays[0] + stays[1];
            // Runs that end in a second.
            let rate = if elapsed > 0.0 { f64::from(count) / elapsed } else { 0.0 };
            waiting = stays.map(|stay| rate * stay);
            at = AtLoad { elapsed, processor: rate * demands[0], disk: rate * demands[1] };
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_waits_for_nobody_and_many_for_the_slowest() {
        let demands = Demands { elapsed: 100.0, processor: 10.0, disk: 5.0 };
        let one = demands.at_load(1);
        assert_eq!(one, AtLoad { elapsed: 100.0, processor: 0.1, disk: 0.05 });
        let many = demands.at_load(1000);
        assert!((many.elapsed - 10_000.0).abs() < 1.0 && (many.processor - 1.0).abs() < 1e-3, "{many:?}");
        assert!((many.disk - 0.5).abs() < 1e-3, "{many:?}");
    }

    /// A machine and a repairman: by hand for two clients, one station of 1 s and 1 s alone.
    #[test]
    fn two_clients_wait_half_a_service() {
        let two = Demands { elapsed: 2.0, processor: 1.0, disk: 0.0 }.at_load(2);
        assert!((two.elapsed - 2.5).abs() < 1e-12 && (two.processor - 0.8).abs() < 1e-12, "{two:?}");
        assert_eq!(Demands { elapsed: 0.0, processor: 0.0, disk: 0.0 }.at_load(3).elapsed, 0.0);
    }
}
