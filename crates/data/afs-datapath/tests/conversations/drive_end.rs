//! The end of a drive, against clients that say what a script says.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use afs_datapath::capability::{DriveId, DriveKey, KeyEpoch, Revocations};
use afs_datapath::session::{Counts, Drive, DriveLimits, Offer, Patience, accept};
use afs_sim::Sim;

use super::at;
use super::drive_player::Player;
use super::reached::Reached;
use super::script::Script;
use super::watched::{Files, Manner, Watched};

/// Small, so that scripts come to them.
pub const LIMITS: DriveLimits = DriveLimits {
    connections: 4,
    connections_per_address: 3,
    requests: 6,
    requests_per_address: 5,
    requests_per_connection: 3,
    handles_per_connection: 6,
    patience: Patience {
        handshake: Duration::from_secs(10),
        alive: Duration::from_secs(15),
        silence: Duration::from_secs(45),
        stall: Duration::from_secs(30),
        idle: Duration::from_secs(600),
    },
};

/// Plays a script to a drive.
///
/// # Panics
/// If the drive breaks the protocol, its limits or a capability, or keeps anything after its clients have gone.
pub fn play_to_drive(bytes: &[u8], reached: &Reached) {
    let mut script = Script::new(bytes);
    let sim = Sim::new(u64::from(script.byte()));
    let drive_node = sim.node("drive", Ipv4Addr::new(10, 0, 0, 1).into());
    let client_node = sim.node("client", Ipv4Addr::new(10, 0, 0, 2).into());
    let env = sim.env(drive_node);
    let watched = Watched::new(env.clone(), manner(&mut script), reached.clone());
    let key = DriveKey::new(DriveId(0xd1), KeyEpoch(5), [7; 32]);
    let objects = Arc::new(Files(watched.clone()));
    let drive = Drive::new(key, Revocations::default(), objects, LIMITS);
    let listener = env.listen(at()).unwrap();
    env.spawn(Box::pin(accept(env.clone(), listener, Offer::clear(), drive.clone())));

    let player = Player {
        env: sim.env(client_node),
        drive: drive.clone(),
        watched: watched.clone(),
        reached: reached.clone(),
        lines: Vec::new(),
        at: 0,
    };
    // Each move ends by itself: a wait of the script, or a write that the drive takes or refuses.
    if let Err(hang) = sim.block_on(client_node, Duration::from_secs(1 << 20), player.play(script)) {
        panic!("{hang}");
    }
    sim.run_for(Duration::from_secs(3600));
    let counts = drive.counts();
    assert_eq!((counts.connected, counts.in_progress), (0, 0), "connections and requests are left");
    assert_eq!(watched.held.load(Ordering::Relaxed), 0, "bytes of reads are left");
    assert!(sim.task_count() <= 1, "a task beside that of the listener is left");
    assert_eq!(sim.stream_count(), 0, "a stream is left that nobody has");
    note(&counts, reached);
}

fn note(counts: &Counts, reached: &Reached) {
    let all = [
        ("connections", counts.connections),
        ("turned away", counts.turned_away),
        ("violations", counts.violations),
        ("reads", counts.reads),
        ("stores", counts.stores),
        ("streams", counts.streams),
        ("bytes sent", counts.bytes_sent),
        ("bytes received", counts.bytes_received),
        ("failed", counts.failed),
    ];
    let refused = counts.refused_by_name();
    all.into_iter()
        .chain(refused)
        .filter(|(_, count)| *count > 0)
        .for_each(|(name, count)| reached.add(name, count));
}

fn manner(script: &mut Script) -> Manner {
    Manner {
        piece_max: script.pick(&[usize::MAX, usize::MAX, 100_000, 7000]),
        pause: Duration::from_millis(script.pick(&[0, 0, 0, 1, 300])),
        first_pause: Duration::from_secs(script.pick(&[0, 0, 20])),
        fails_after: script.pick(&[None, None, None, Some(1500), Some(400_000)]),
    }
}
