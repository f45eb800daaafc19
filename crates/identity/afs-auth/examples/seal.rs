//! Benchmark of rxgk: megabytes of data sealed and opened in a second of one core's time, by encryption type, level
//! and size. Run with `cargo run --release -p afs-auth --example seal`.

use std::error::Error;
use std::time::Duration;

use afs_auth::crypto::{Confounders, EncType};
use afs_auth::rxgk::{ConnectionSeed, MasterKey, PacketKeys, RxgkTime};
use afs_rpc::{Level, Parts};
use afs_rx::{Cid, Epoch, PacketContext, Side};
use bytes::Bytes;
use rustix::time::{ClockId, clock_gettime};

const TYPES: [EncType; 4] =
    [EncType::Aes128Sha1, EncType::Aes256Sha1, EncType::Aes128Sha256, EncType::Aes256Sha384];
const SIZES: [usize; 3] = [1400, 8192, 16000];
/// Duration of each measurement.
const SPAN: Duration = Duration::from_millis(300);

fn main() -> Result<(), Box<dyn Error>> {
    println!("{:<28} {:<6} {:>6} {:>10} {:>10}", "type", "level", "bytes", "seal MB/s", "open MB/s");
    for enctype in TYPES {
        for level in [Level::Auth, Level::Crypt] {
            for size in SIZES {
                let pair = Pair::new(enctype, level)?;
                let (seal, open) = (pair.seal_speed(size)?, pair.open_speed(size)?);
                println!("{:<28} {level:<6?} {size:>6} {seal:>10.0} {open:>10.0}", enctype.name());
            }
        }
    }
    Ok(())
}

/// Both ends of a connection.
struct Pair {
    client: PacketKeys,
    server: PacketKeys,
    confounders: Confounders,
}

impl Pair {
    fn new(enctype: EncType, level: Level) -> Result<Self, Box<dyn Error>> {
        // Speed does not depend on the key.
        let env = Parts::default().with_random(|out| out.fill(7)).shared();
        let master = MasterKey::new(enctype.number(), enctype.generate(&env))?;
        let seed = ConnectionSeed { epoch: Epoch(1), cid: Cid::of(4), start: RxgkTime(1) };
        let transport = master.transport_key(&seed, 0)?;
        let keys = |side| PacketKeys::new(level, &transport, side);
        let confounders = Confounders::seeded_by(&env)?;
        Ok(Self { client: keys(Side::Client)?, server: keys(Side::Server)?, confounders })
    }

    /// A payload as the endpoint hands it over.
    fn payload(&self, size: usize) -> Vec<u8> {
        let overhead = self.client.overhead();
        let mut payload = Vec::with_capacity(overhead.header + size + overhead.trailer);
        payload.resize(overhead.header + size, 3);
        payload
    }

    fn seal_speed(&self, size: usize) -> Result<f64, Box<dyn Error>> {
        let mut payload = self.payload(size);
        let len = payload.len();
        let (mut packets, start) = (0, used());
        while used() - start < SPAN {
            for _ in 0..64 {
                payload.truncate(len);
                self.client.seal(&context(), &mut payload, &self.confounders)?;
                packets += 1;
            }
        }
        Ok(speed(packets * size, used() - start))
    }

    /// Includes one copy of the packet, since opening it destroys it.
    fn open_speed(&self, size: usize) -> Result<f64, Box<dyn Error>> {
        let mut sealed = self.payload(size);
        self.client.seal(&context(), &mut sealed, &self.confounders)?;
        let (mut packets, start) = (0, used());
        while used() - start < SPAN {
            for _ in 0..64 {
                let data = self.server.open(&context(), Bytes::copy_from_slice(&sealed))?;
                packets += usize::from(data.len() == size);
            }
        }
        Ok(speed(packets * size, used() - start))
    }
}

/// Processor time of this thread.
fn used() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

fn context() -> PacketContext {
    PacketContext {
        epoch: Epoch(1),
        cid_and_channel: 4,
        call: 1,
        seq: 1,
        service: 1,
        security_index: 4,
        from_client: true,
        checksum: 0,
    }
}

fn speed(bytes: usize, took: Duration) -> f64 {
    bytes as f64 / took.as_secs_f64() / 1e6
}
