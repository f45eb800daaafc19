//! Reads past the cache by the data path, beside writers and over connections that break.

use std::sync::atomic::{AtomicU8, Ordering};

use afs_sim::{StreamConfig, StreamFault, StreamMishap};

use super::*;

const LENGTH: usize = 1 << 20;
/// Long enough for a connection to be opened.
const OPENING: Duration = Duration::from_secs(5);
/// Longer than a path is left alone after a failure.
const PAUSE: Duration = Duration::from_secs(61);

/// [`cell`], with a data path for ranges of 4 KiB and more.
fn cell_with_path(seed: u64) -> (Cell, Client, Client, Arc<MemoryCache>) {
    with_clients(Cell::with_data_path(seed, seed.is_multiple_of(2)))
}

/// Versions of one file, each of one byte value.
#[derive(Clone, Default)]
struct Versions {
    begun: Arc<AtomicU8>,
    stored: Arc<AtomicU8>,
}

impl Versions {
    /// Stores the next one from a machine, in a task of its own.
    fn store_next(&self, machine: &Client) {
        let (me, client) = (self.clone(), machine.clone());
        machine.env.spawn(Box::pin(async move {
            let version = me.begun.fetch_add(1, Ordering::SeqCst) + 1;
            client.put("__film", &vec![version; LENGTH]).await.unwrap();
            me.stored.store(version, Ordering::SeqCst);
        }));
    }

    fn is_stored(&self) -> bool {
        self.stored.load(Ordering::SeqCst) == self.begun.load(Ordering::SeqCst)
    }
}

/// Reads of one open file, which must be of whole versions, none older than the one before.
struct Reader {
    handle: HandleId,
    seen: u8,
}

impl Reader {
    fn open(cell: &Cell, b: &Client, versions: &Versions) -> Reader {
        let stored = versions.stored.load(Ordering::SeqCst);
        Reader { handle: open(cell, b, "__film", OpenFlags::READ), seen: stored }
    }

    fn read(&mut self, cell: &Cell, b: &Client, pos: u64, versions: &Versions, what: &str) {
        let seen = read(cell, b, self.handle, pos, 100_000);
        assert!(!seen.is_empty() && seen.iter().all(|byte| *byte == seen[0]), "{what}: mixed");
        let begun = versions.begun.load(Ordering::SeqCst);
        assert!((self.seen..=begun).contains(&seen[0]), "{what}: {} after {}", seen[0], self.seen);
        self.seen = seen[0];
    }
}

/// Reasons for which bytes went by calls, but for a connection that was being opened.
fn fallbacks(client: &Client) -> u64 {
    let reasons = client.venus.counters().path_fallbacks.into_iter();
    reasons.filter(|(name, _)| *name != "connecting").map(|(_, n)| n).sum()
}

#[test]
fn what_bypasses_the_cache_comes_by_the_path() {
    for seed in [23, 24] {
        let (cell, a, b, cache) = cell_with_path(seed);
        let data = pattern(LENGTH, seed);
        put(&cell, &a, "__film", &data);
        get(&cell, &b, "__film");
        cell.sim.run_for(OPENING);
        let (path, calls) = (b.venus.counters().path_bytes_fetched, b.calls("FetchData64"));
        assert_eq!(ways(&cell, &b, "__film", &data), (0, LENGTH as u64));
        assert_eq!(b.venus.counters().path_bytes_fetched - path, LENGTH as u64);
        assert_eq!((b.calls("FetchData64"), fallbacks(&b)), (calls, 0));
        assert!(cache.bytes_used() <= LITTLE && b.venus.bypass_bytes() == 0);
    }
}

/// One reader reads on and on while another machine stores versions, and the connection is cut at the byte of the round.
#[test]
fn a_reader_past_the_cache_sees_whole_versions_when_its_connection_is_cut_while_another_machine_writes() {
    let (cell, a, b, cache) = cell_with_path(25);
    let versions = Versions::default();
    put(&cell, &a, "__film", &vec![0; LENGTH]);
    let mut reader = Reader::open(&cell, &b, &versions);
    let mut cuts = 0;
    for round in 0..24u64 {
        let what = format!("round {round}");
        let mishap = if round % 4 == 3 { StreamMishap::Silence } else { StreamMishap::Reset };
        cell.sim.break_stream(cell.server, b.node, StreamFault { after: 2000 + round * 37_117, mishap });
        cell.sim.run_for(PAUSE);
        reader.read(&cell, &b, round * 17 % 24 * 40_000, &versions, &what);
        cell.sim.run_for(OPENING);
        let before = fallbacks(&b);
        versions.store_next(&a);
        for n in 0..16u64 {
            reader.read(&cell, &b, (n + round) * 7 % 16 * CHUNK, &versions, &what);
        }
        assert!(b.venus.bypass_bytes() <= 32 * CHUNK && cache.bytes_used() <= LITTLE, "{what}");
        cuts += u64::from(fallbacks(&b) > before);
        cell.sim.run_for(PAUSE);
        assert!(versions.is_stored(), "{what}");
    }
    close(&cell, &b, reader.handle);
    let last = versions.begun.load(Ordering::SeqCst);
    assert!(get(&cell, &b, "__film") == vec![last; LENGTH]);
    assert!(cuts >= 12 && b.venus.counters().path_bytes_fetched > 0, "{cuts} cuts");
}

/// The same with several readers and connections that break at random bytes, in both directions.
#[test]
fn whatever_happens_to_connections_readers_past_the_cache_see_whole_versions() {
    let (mut moved, mut failed) = (0, 0);
    for seed in 40..44 {
        let (cell, a, b, cache) = cell_with_path(seed);
        cell.set_streams(StreamConfig {
            segment_max: 8 << 10,
            reset_per_million: 4000,
            silence_per_million: 1000,
            ..StreamConfig::default()
        });
        let versions = Versions::default();
        put(&cell, &a, "__film", &vec![0; LENGTH]);
        let mut readers: Vec<Reader> = (0..3).map(|_| Reader::open(&cell, &b, &versions)).collect();
        for round in 0..60u64 {
            let what = format!("seed {seed}, round {round}");
            if round % 5 == 0 && versions.is_stored() {
                versions.store_next(&a);
            }
            if round % 7 == 6 {
                cell.sim.run_for(PAUSE);
                let reader = readers.remove(0);
                close(&cell, &b, reader.handle);
                readers.push(Reader::open(&cell, &b, &versions));
            }
            for (n, reader) in (0u64..).zip(&mut readers) {
                reader.read(&cell, &b, (round * 11 + n * 5) % 16 * CHUNK, &versions, &what);
            }
            assert!(b.venus.bypass_bytes() <= 32 * CHUNK && cache.bytes_used() <= LITTLE, "{what}");
        }
        readers.into_iter().for_each(|reader| close(&cell, &b, reader.handle));
        assert_eq!(b.venus.bypass_bytes(), 0, "seed {seed}");
        moved += b.venus.counters().path_bytes_fetched;
        failed += fallbacks(&b);
    }
    assert!(moved > 0 && failed > 0, "{moved} bytes, {failed} fallbacks");
}
