//! Connections cut at every byte. Calls complete the transfer; where they fail too, nothing is half done and the next one succeeds.

use super::faulty::{Fault, Faulty, SharedFault};
use super::*;
use crate::transfer::{OverPath, Rpc};

#[test]
fn of_reads_whose_connection_breaks_at_any_byte_programs_notice_nothing() {
    for after in 0..460 {
        let over = over(after, Conduct::Right);
        let (from, to) = (over.kit.server, over.kit.client);
        over.kit.cut(from, to, after as usize, after % 5 == 2);
        let what = format!("seed and bytes {after}");
        over.read_new(1, &what);
        over.kit.pass(OPENING);
        for seed in 2..5 {
            over.read_new(seed, &what);
        }
    }
}

#[test]
fn of_stores_whose_connection_breaks_at_any_byte_programs_notice_nothing() {
    for after in 0..700 {
        let over = over(after, Conduct::Right);
        let (client, server) = (over.kit.client, over.kit.server);
        // The replies of the drive are short.
        match after % 3 {
            0 => over.kit.cut(server, client, after as usize / 3, after % 2 == 0),
            _ => over.kit.cut(client, server, after as usize, after % 5 == 2),
        }
        let what = format!("seed and bytes {after}");
        over.store_all(1, &what);
        over.kit.pass(OPENING);
        over.store_ranges(2, &what);
        over.store_all(4, &what);
    }
}

/// A client whose calls for data fail when a test says so, and replies to all its transfers.
struct Troubled {
    over: Over,
    /// Of the calls behind the path.
    calls: SharedFault,
    /// Of transfers by the path and by calls.
    all: SharedFault,
}

fn troubled(seed: u64) -> Troubled {
    let (calls, all) = (SharedFault::default(), SharedFault::default());
    let (behind, around) = (calls.clone(), all.clone());
    let over = over_of(seed, Conduct::Right, clear(), move |config| {
        Venus::start_with(config, move |env, path, counters| {
            let calls = Faulty { inner: Rpc, fault: behind };
            Arc::new(Faulty { inner: OverPath::new(calls, env, path, counters), fault: around })
        })
    });
    Troubled { over, calls, all }
}

impl Troubled {
    fn kit(&self) -> &Kit {
        &self.over.kit
    }

    /// Work during which no data is moved by calls.
    fn without_calls<T>(&self, work: impl FnOnce(&Kit) -> T) -> T {
        *self.calls.lock() = Fault::NotMade;
        let done = work(self.kit());
        *self.calls.lock() = Fault::None;
        done
    }

    fn is_dirty(&self) -> bool {
        self.kit().data().content().is_dirty()
    }
}

#[test]
fn a_cut_fetch_that_no_call_completes_leaves_nothing_cached_and_the_next_one_succeeds() {
    let mut cuts = 0;
    for after in 0..460 {
        let world = troubled(after);
        let (kit, seed, what) = (world.kit(), after + 1, format!("after {after} bytes"));
        kit.cut(kit.server, kit.client, after as usize, after % 50 == 7);
        world.over.read_new(0, &what);
        kit.pass(OPENING);
        kit.change(seed);
        // For writing, since an open for reading would fetch at once.
        let handle = kit.open(OpenFlags::WRITE).unwrap();
        let read = world.without_calls(|kit| kit.read(handle));
        let counters = world.over.counters();
        assert_eq!(read.is_ok(), counters.path_bytes_fetched > 0, "{what}: {read:?}");
        if read.is_err() {
            assert!(kit.data().content().present.is_empty(), "{what}");
            cuts += counters.path_connections;
        }
        assert_eq!(kit.read(handle).unwrap(), pattern(seed), "{what}");
        kit.release(handle);
    }
    assert!(cuts > LENGTH, "{cuts}");
}

/// Cuts of either direction, each one byte later, up to the one that a store does not notice; and how many it has noticed.
fn cut_stores(store: impl Fn(&Troubled, u64, &str) -> bool) -> [u64; 2] {
    [true, false].map(|is_by_client| {
        let noticed = (0..2000).take_while(|after| {
            let world = troubled(*after);
            let Kit { client, server, .. } = *world.kit();
            let (from, to) = if is_by_client { (client, server) } else { (server, client) };
            world.kit().cut(from, to, *after as usize, after % 50 == 7);
            store(&world, *after, &format!("{after} bytes, by the client: {is_by_client}"))
        });
        noticed.count() as u64
    })
}

#[test]
fn a_cut_store_that_no_call_completes_leaves_all_dirty_and_the_next_one_succeeds() {
    let cuts = cut_stores(|world, seed, what| {
        let kit = world.kit();
        let handle = kit.open(OpenFlags::READ_WRITE).unwrap();
        let before = kit.at_server();
        kit.write(handle, 0, pattern(seed + 1));
        let is_cut = world.without_calls(|kit| kit.flush(handle)).is_err();
        assert_eq!((world.is_dirty(), kit.at_server() == before), (is_cut, is_cut), "{what}");
        kit.flush(handle).unwrap();
        assert!(!world.is_dirty(), "{what}");
        assert!(kit.at_server() == (pattern(seed + 1), before.1 + 1), "{what}");
        kit.release(handle);
        is_cut
    });
    assert!((LENGTH..2000).contains(&cuts[0]) && (1..2000).contains(&cuts[1]), "{cuts:?}");
}

#[test]
fn cut_ranges_that_no_call_stores_stay_dirty_and_are_stored_the_next_time() {
    let cuts = cut_stores(|world, seed, what| {
        let kit = world.kit();
        kit.change(seed + 1);
        // Not fetched, so that the ranges are not joined with the bytes between them.
        let handle = kit.open(OpenFlags::WRITE).unwrap();
        let (mut wanted, before) = kit.at_server();
        for range in RANGES {
            let bytes = pattern(seed + 2)[range.start as usize..range.end as usize].to_vec();
            wanted[range.start as usize..range.end as usize].copy_from_slice(&bytes);
            kit.write(handle, range.start, bytes);
        }
        let is_cut = world.without_calls(|kit| kit.flush(handle)).is_err();
        if is_cut {
            assert_eq!(kit.at_server().1, before, "{what}");
            let unsaved: Vec<_> = kit.data().content().dirty.iter().collect();
            assert_eq!(unsaved, RANGES, "{what}");
        }
        kit.flush(handle).unwrap();
        assert_eq!(kit.at_server(), (wanted, before + 1), "{what}");
        kit.release(handle);
        is_cut
    });
    let moved = RANGES.iter().map(|range| range.end - range.start).sum::<u64>();
    assert!((moved..2000).contains(&cuts[0]) && (1..2000).contains(&cuts[1]), "{cuts:?}");
}

/// The store was made, and its reply is lost.
#[test]
fn a_store_whose_reply_is_lost_leaves_all_dirty_and_the_next_one_succeeds() {
    let world = troubled(4);
    let kit = world.kit();
    for seed in 1..8 {
        let handle = kit.open(OpenFlags::READ_WRITE).unwrap();
        kit.write(handle, 0, pattern(seed + 1));
        *world.all.lock() = Fault::ReplyLost;
        kit.flush(handle).unwrap_err();
        *world.all.lock() = Fault::None;
        assert!(world.is_dirty(), "{seed}");
        assert_eq!(kit.at_server().0, pattern(seed + 1), "{seed}");
        kit.flush(handle).unwrap();
        assert!(!world.is_dirty(), "{seed}");
        assert_eq!(kit.at_server().0, pattern(seed + 1), "{seed}");
        kit.release(handle);
    }
    assert_eq!(world.over.counters().path_bytes_stored, 14 * LENGTH);
}
