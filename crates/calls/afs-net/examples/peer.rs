//! Calls to a file server of another implementation: looks a volume up, makes a file in its root, stores and fetches
//! it, compares, removes it.
//!
//! `cargo run --release -p afs-net --example peer -- SERVER-IP VOLUME [MEGABYTES]`
//!
//! The volume's root must let everybody write (`system:anyuser rlidwk`): the calls are anonymous.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use afs_net::{System, Udp};
use afs_rpc::{CallError, CallOptions, Connection, EnvExt, Security, Table};
use afs_rx::Config;
use afs_wire::cb;
use afs_wire::error::AbortCode;
use afs_wire::fs;
use afs_wire::ids::{Fid, Uuid, VolumeKind};
use afs_wire::rpc::ServiceId;
use afs_wire::vl;
use afs_wire::xdr::ByteString;
use bytes::Bytes;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Bytes per read or write.
const PIECE: u64 = 1 << 18;
const FILE: &[u8] = b"andrew-peer-example";

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, volume, rest @ ..] = arguments.as_slice() else {
        return Err("usage: peer SERVER-IP VOLUME [MEGABYTES]".into());
    };
    let megabytes: u64 = rest.first().map_or(Ok(20), |text| text.parse())?;
    let system = System::new()?;
    let udp = Udp::bind(&system, SocketAddr::from(([0, 0, 0, 0], 0)), Config::default())?;
    let at: IpAddr = server.parse()?;
    udp.rx().listen(callbacks(Uuid::from_random(system.random_bytes())))?;
    let patience = CallOptions { dead: Some(Duration::from_secs(20)), hard: None };
    let connection = |port, service| {
        udp.rx().connection(SocketAddr::new(at, port), service, Security::null()).with_options(patience)
    };
    let (location, files) =
        (connection(vl::PORT, ServiceId::LOCATION), connection(fs::PORT, ServiceId::FILE));
    system.block_on(work(&location, &files, volume, megabytes << 20))?;
    println!("{:?}", udp.rx().stats());
    Ok(())
}

/// The callback service, which a file server calls before it serves a client. Nothing is cached here, so breaks
/// change nothing.
fn callbacks(uuid: Uuid) -> Arc<Table<Uuid>> {
    let table = Table::new(ServiceId::CALLBACK, Arc::new(uuid))
        .call(|uuid: Arc<Uuid>, _, _: cb::WhoAreYou| async move {
            let addresses = cb::InterfaceAddr { uuid: *uuid, ..Default::default() };
            Ok::<_, AbortCode>(cb::InterfaceAddrReply { addresses })
        })
        .call(|_: Arc<Uuid>, _, _: cb::InitCallBackState3| async { Ok::<_, AbortCode>(()) })
        .call(|_: Arc<Uuid>, _, _: cb::CallBack| async { Ok::<_, AbortCode>(()) })
        .call(|_: Arc<Uuid>, _, _: cb::Probe| async { Ok::<_, AbortCode>(()) });
    Arc::new(table)
}

async fn work(location: &Connection, files: &Connection, volume: &str, bytes: u64) -> Outcome<()> {
    let entry = location.call(&vl::GetEntryByNameN { name: ByteString::new(volume)? }).await?.entry;
    let root = Fid::root(entry.id(VolumeKind::ReadWrite));
    let status = files.call(&fs::FetchStatus { fid: root }).await?.status;
    println!("{volume}: root {root}, {} bytes, {:?}", status.length, status.kind);
    let directory = fetch(files, root, status.length, |_, _| true).await?;
    println!("read {directory} bytes of directory");
    let name = fs::Name::new(FILE)?;
    let ask = fs::CreateFile { dir: root, name: name.clone(), status: fs::SetStatus::default() };
    let fid = files.call(&ask).await?.fid;
    let worked = store_and_compare(files, fid, bytes).await;
    files.call(&fs::RemoveFile { dir: root, name }).await?;
    worked
}

async fn store_and_compare(files: &Connection, fid: Fid, bytes: u64) -> Outcome<()> {
    let start = Instant::now();
    let length = store(files, fid, bytes).await?;
    println!("stored {length} bytes: {:.0} MB/s", length as f64 / 1e6 / start.elapsed().as_secs_f64());
    let start = Instant::now();
    let length = fetch(files, fid, bytes, is_pattern).await?;
    println!("fetched {length} bytes: {:.0} MB/s", length as f64 / 1e6 / start.elapsed().as_secs_f64());
    if length == bytes { Ok(()) } else { Err("the lengths differ".into()) }
}

async fn store(files: &Connection, fid: Fid, bytes: u64) -> Result<u64, CallError> {
    let status = fs::SetStatus::default();
    let ask = fs::StoreData64 { fid, status, position: 0, length: bytes, file_length: bytes };
    let mut call = files.open(&ask).await?;
    let mut at = 0;
    while at < bytes {
        let n = PIECE.min(bytes - at);
        call.write((at..at + n).map(pattern).collect::<Bytes>()).await?;
        at += n;
    }
    call.finish_request()?;
    Ok(call.finish::<fs::StoreData64>().await?.status.length)
}

async fn fetch(files: &Connection, fid: Fid, bytes: u64, good: fn(u64, &[u8]) -> bool) -> Outcome<u64> {
    let ask = fs::FetchData64 { fid, position: 0, length: i64::try_from(bytes)? };
    let mut call = files.open(&ask).await?;
    call.finish_request()?;
    let count = call.read_exact(8).await?.iter().fold(0, |n: u64, byte| n << 8 | u64::from(*byte));
    let mut at = 0;
    while at < count {
        let data = call.read_some(PIECE.min(count - at) as usize).await?.ok_or("the data ends early")?;
        if !good(at, &data) {
            return Err(format!("other data than were stored, near {at}").into());
        }
        at += data.len() as u64;
    }
    call.finish::<fs::FetchData64>().await?;
    Ok(at)
}

fn pattern(at: u64) -> u8 {
    (at ^ (at >> 8) ^ (at >> 16)) as u8
}

fn is_pattern(at: u64, data: &[u8]) -> bool {
    data.iter().zip(at..).all(|(byte, at)| *byte == pattern(at))
}
