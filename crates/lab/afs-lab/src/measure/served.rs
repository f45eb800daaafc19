//! Counters of a mount whose server does not tell its own: its processor time comes from its process, packets from the
//! network namespace of this one.

use super::net_probe::of_namespace;
use crate::andrew::{Counters, Probe};
use crate::bulk::Process;

/// A probe with the processor time of a process that the user names.
pub struct Served<'a> {
    /// Counters of the mount.
    pub probe: &'a dyn Probe,
    /// The server's process.
    pub server: &'a Process,
}

impl Probe for Served<'_> {
    fn read(&self) -> Option<Counters> {
        // A server that has ended: the time is not known.
        let time = self.server.time().unwrap_or_default();
        let server_cpu_us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let told = self.probe.read()?;
        let (packets_received, packets_sent) = match told.packets_sent {
            0 => of_namespace()?,
            _ => (told.packets_received, told.packets_sent),
        };
        Some(Counters { server_cpu_us, packets_sent, packets_received, ..told })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;
    use std::fs;

    struct Told(Option<Counters>);

    impl Probe for Told {
        fn read(&self) -> Option<Counters> {
            self.0.clone()
        }
    }

    #[test]
    fn the_time_is_that_of_the_process_and_all_else_that_of_the_mount_if_it_tells() {
        let procfs = tempfile::tempdir().unwrap();
        fs::create_dir(procfs.path().join("7")).unwrap();
        let line = "7 (andrew) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 9 0 100 1 1";
        fs::write(procfs.path().join("7/stat"), line).unwrap();
        let server = Process::in_procfs("server".into(), 7, procfs.path()).unwrap();
        let of = |told| Served { probe: &Told(told), server: &server }.read();
        let counters = Counters { calls: 5, packets_sent: 3, packets_received: 2, ..Counters::default() };
        assert_eq!(of(Some(counters.clone())), Some(Counters { server_cpu_us: 3_000_000, ..counters }));
        assert_eq!(of(None), None);
        let silent = of(Some(Counters { calls: 5, ..Counters::default() })).unwrap();
        let here = of_namespace().unwrap();
        assert!((silent.packets_received, silent.packets_sent) <= here);
        assert_eq!((silent.calls, silent.server_cpu_us), (5, 3_000_000));
    }
}
