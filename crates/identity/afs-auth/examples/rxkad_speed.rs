//! Benchmark of rxkad: megabytes of data sealed and opened in a second at each level, on one core.
//!
//!     cargo run --release -p afs-auth --example rxkad_speed

#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use std::time::{Duration, Instant};

use afs_auth::rxkad::{RxkadToken, SessionKey, TicketFormat};
use afs_rpc::{Level, Parts, UnixTime};
use afs_rx::{ClientSecurity, Epoch, PacketContext};
use bytes::Bytes;

/// Data of one packet on an ordinary network.
const DATA_LEN: usize = 1400;
const AT_LEAST: Duration = Duration::from_millis(500);

fn main() {
    for level in [Level::Clear, Level::Auth, Level::Crypt] {
        let client = client(level);
        let header = client.overhead().header;
        let mut packet = packet();
        let mut payload = vec![0; header + DATA_LEN];
        let seal = megabytes_per_second(|| {
            payload.truncate(header + DATA_LEN);
            packet.checksum = client.seal(&packet, &mut payload).unwrap_or_default();
        });
        let open = megabytes_per_second(|| {
            let opened = client.open(&packet, Bytes::copy_from_slice(&payload));
            assert_eq!(opened.map(|data| data.len()), Ok(DATA_LEN));
        });
        println!("{level:?}: seals {seal:.0} MB/s, opens {open:.0} MB/s");
    }
}

fn client(level: Level) -> Box<dyn ClientSecurity> {
    let key = SessionKey::new(*b"\x68\xc8\x7a\x15\xf7\x8c\x4a\xe6");
    match RxkadToken::new(TicketFormat::EncryptedData, &[0; 154], key, None) {
        Ok(token) => {
            token.with_level(level).source(Parts::default().with_wall(UnixTime::default).shared()).session()
        }
        Err(error) => panic!("{error}"),
    }
}

fn packet() -> PacketContext {
    PacketContext {
        epoch: Epoch(0x8000_0001),
        cid_and_channel: 8,
        call: 1,
        seq: 1,
        service: 1,
        security_index: 2,
        from_client: true,
        checksum: 0,
    }
}

fn megabytes_per_second(mut work: impl FnMut()) -> f64 {
    let begin = Instant::now();
    let mut packets = 0_u32;
    while begin.elapsed() < AT_LEAST {
        (0..100).for_each(|_| work());
        packets += 100;
    }
    f64::from(packets) * DATA_LEN as f64 / begin.elapsed().as_secs_f64() / 1e6
}
