//! Benchmark: fetch and store of one large file over loopback, in bytes a second and processor time.
//!
//! `cargo run --release -p afs-net --example bulk -- [MEGABYTES] [RUNS] [PACKET BYTES] [server|client ADDRESS]`
//!
//! Without a role, server and client are two processes: this one, and a child that serves.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use afs_net::{System, Udp};
use afs_rpc::{CallError, Connection, Security, ServerCall, Table};
use afs_rx::Config;
use afs_wire::fs;
use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};
use afs_wire::rpc::ServiceId;
use afs_wire::xdr::Encode;
use bytes::Bytes;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Bytes per read or write.
const PIECE: usize = 1 << 20;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |index: usize, default: u64| arguments.get(index).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (megabytes, runs, packet) = (number(0, 100), number(1, 5), number(2, 16384));
    match arguments.get(3).map(String::as_str) {
        Some("server") => serve(packet),
        Some("client") => {
            let address = arguments.get(4).ok_or("the client wants the server's address")?;
            transfer(address.parse()?, megabytes << 20, runs, packet)
        }
        _ => both(megabytes << 20, runs, packet),
    }
}

fn config(packet: u64) -> Config {
    let mut config = Config::default();
    config.packet_size_loopback = packet as usize;
    config
}

fn both(bytes: u64, runs: u64, packet: u64) -> Outcome<()> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["0", "0", &packet.to_string(), "server"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut said = BufReader::new(child.stdout.take().ok_or("no output")?);
    let mut line = String::new();
    said.read_line(&mut line)?;
    transfer(line.trim().parse()?, bytes, runs, packet)?;
    drop(child.stdin.take());
    line.clear();
    said.read_line(&mut line)?;
    child.wait()?;
    let cpu: f64 = line.trim().parse()?;
    println!("server: {cpu:.2} cpu s, {:.3} cpu s/GB", cpu * 1e9 / (2 * runs * bytes) as f64);
    Ok(())
}

/// Prints its address, serves until its input ends, prints the processor time used.
fn serve(packet: u64) -> Outcome<()> {
    let system = System::new()?;
    let udp = Udp::bind(&system, SocketAddr::from(([127, 0, 0, 1], 0)), config(packet))?;
    let piece = Bytes::from(vec![7; PIECE]);
    let table = Table::new(ServiceId::FILE, Arc::new(piece))
        .streamed(|piece: Arc<Bytes>, call, ask: fs::FetchData64| async move {
            report(fetch(call, ask, &piece).await);
        })
        .streamed(|_, call, ask: fs::StoreData64| async move { report(store(call, ask).await) });
    udp.rx().listen(Arc::new(table))?;
    println!("{}", udp.local_addr());
    std::io::stdout().flush()?;
    let before = cpu_seconds();
    std::io::stdin().read_line(&mut String::new())?;
    println!("{}", cpu_seconds() - before);
    eprintln!("server: {:?}", udp.rx().stats());
    Ok(())
}

fn report(outcome: Result<(), CallError>) {
    if let Err(error) = outcome {
        eprintln!("server: {error}");
    }
}

async fn fetch(mut call: ServerCall, ask: fs::FetchData64, piece: &Bytes) -> Result<(), CallError> {
    let mut left = ask.length as u64;
    call.write(Bytes::from(left.to_bytes())).await?;
    while left > 0 {
        let n = left.min(PIECE as u64);
        call.write(piece.slice(..n as usize)).await?;
        left -= n;
    }
    let status = fs::Status { length: ask.length as u64, ..Default::default() };
    call.reply(&fs::FetchDataReply { status, callback: Default::default(), sync: Default::default() }).await
}

async fn store(mut call: ServerCall, ask: fs::StoreData64) -> Result<(), CallError> {
    let mut left = ask.length;
    while left > 0 {
        let pieces = call.read_pieces((left as usize).min(PIECE)).await?;
        if pieces.is_empty() {
            return Err(CallError::Ended);
        }
        left -= pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
    }
    let status = fs::Status { length: ask.length, ..Default::default() };
    call.reply(&fs::StatusReply { status, sync: Default::default() }).await
}

fn transfer(server: SocketAddr, bytes: u64, runs: u64, packet: u64) -> Outcome<()> {
    let system = System::new()?;
    let udp = Udp::bind(&system, SocketAddr::from(([127, 0, 0, 1], 0)), config(packet))?;
    let connection = udp.rx().connection(server, ServiceId::FILE, Security::null());
    for _ in 0..runs {
        let (start, cpu) = (Instant::now(), cpu_seconds());
        system.block_on(fetch_all(&connection, bytes))?;
        print_rate("fetch", bytes, start, cpu);
        let (start, cpu) = (Instant::now(), cpu_seconds());
        system.block_on(store_all(&connection, bytes))?;
        print_rate("store", bytes, start, cpu);
    }
    println!("client: {:?}", udp.rx().stats());
    Ok(())
}

fn print_rate(what: &str, bytes: u64, start: Instant, cpu: f64) {
    let (took, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let gb = bytes as f64 / 1e9;
    println!("{what}: {:.0} MB/s, {:.3} s, client {:.3} cpu s/GB", gb * 1e3 / took, took, cpu / gb);
}

async fn fetch_all(connection: &Connection, bytes: u64) -> Result<(), CallError> {
    let ask = fs::FetchData64 { fid: fid(), position: 0, length: bytes as i64 };
    let mut call = connection.open(&ask).await?;
    call.finish_request()?;
    let mut left = call.read_exact(8).await?.iter().fold(0, |n: u64, byte| n << 8 | u64::from(*byte));
    while left > 0 {
        let pieces = call.read_pieces((left as usize).min(PIECE)).await?;
        if pieces.is_empty() {
            return Err(CallError::Ended);
        }
        left -= pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
    }
    call.finish::<fs::FetchData64>().await.map(drop)
}

async fn store_all(connection: &Connection, bytes: u64) -> Result<(), CallError> {
    let status = fs::SetStatus::default();
    let ask = fs::StoreData64 { fid: fid(), status, position: 0, length: bytes, file_length: bytes };
    let mut call = connection.open(&ask).await?;
    let piece = Bytes::from(vec![7; PIECE]);
    let mut left = bytes;
    while left > 0 {
        let n = left.min(PIECE as u64);
        call.write(piece.slice(..n as usize)).await?;
        left -= n;
    }
    call.finish_request()?;
    call.finish::<fs::StoreData64>().await.map(drop)
}

fn fid() -> Fid {
    Fid { volume: VolumeId(1), vnode: VnodeId(2), unique: Uniquifier(1) }
}

/// Processor time of this process so far, user and system.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
