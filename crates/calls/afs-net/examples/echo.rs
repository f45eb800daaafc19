//! Benchmark: small calls over loopback, in calls a second and processor time.
//!
//! `cargo run --release -p afs-net --example echo -- [SECONDS] [OUTSTANDING] [server|client ADDRESS]`
//!
//! Without a role, server and client are two processes: this one, and a child that serves.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use afs_net::{System, Udp};
use afs_rpc::{EnvExt, Security, Table};
use afs_rx::Config;
use afs_wire::error::AbortCode;
use afs_wire::fs;
use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};
use afs_wire::rpc::ServiceId;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |index: usize, default: u64| arguments.get(index).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (seconds, outstanding) = (number(0, 3), number(1, 64));
    match arguments.get(2).map(String::as_str) {
        Some("server") => serve(),
        Some("client") => {
            let address = arguments.get(3).ok_or("the client wants the server's address")?;
            ask(address.parse()?, seconds, outstanding).map(drop)
        }
        _ => both(seconds, outstanding),
    }
}

fn both(seconds: u64, outstanding: u64) -> Outcome<()> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["0", "0", "server"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut said = BufReader::new(child.stdout.take().ok_or("no output")?);
    let mut line = String::new();
    said.read_line(&mut line)?;
    let calls = ask(line.trim().parse()?, seconds, outstanding)?;
    drop(child.stdin.take());
    line.clear();
    said.read_line(&mut line)?;
    child.wait()?;
    let server: f64 = line.trim().parse()?;
    println!(
        "server: {server:.2} cpu s, {:.2} us/call, {:.0} calls per cpu s",
        server * 1e6 / calls as f64,
        calls as f64 / server
    );
    Ok(())
}

/// Prints its address, serves until its input ends, prints the processor time used.
fn serve() -> Outcome<()> {
    let system = System::new()?;
    let udp = Udp::bind(&system, SocketAddr::from(([127, 0, 0, 1], 0)), Config::default())?;
    let status = |_: Arc<()>, _, ask: fs::FetchStatus| async move {
        let status = fs::Status { length: ask.fid.vnode.0.into(), ..Default::default() };
        Ok::<_, AbortCode>(fs::FetchStatusReply {
            status,
            callback: fs::CallBack::default(),
            sync: Default::default(),
        })
    };
    udp.rx().listen(Arc::new(Table::new(ServiceId::FILE, Arc::new(())).call(status)))?;
    println!("{}", udp.local_addr());
    std::io::stdout().flush()?;
    let before = cpu_seconds();
    std::io::stdin().read_line(&mut String::new())?;
    println!("{}", cpu_seconds() - before);
    Ok(())
}

fn ask(server: SocketAddr, seconds: u64, outstanding: u64) -> Outcome<u64> {
    let system = System::new()?;
    let udp = Udp::bind(&system, SocketAddr::from(([127, 0, 0, 1], 0)), Config::default())?;
    let calls = Arc::new(AtomicU64::new(0));
    let until = Instant::now() + Duration::from_secs(seconds);
    let (cpu, start) = (cpu_seconds(), Instant::now());
    let caller = |index: u64| {
        let connection = udp.rx().connection(server, ServiceId::FILE, Security::null());
        let calls = calls.clone();
        async move {
            let fid = Fid { volume: VolumeId(1), vnode: VnodeId(index as u32), unique: Uniquifier(1) };
            while Instant::now() < until {
                let reply = connection.call(&fs::FetchStatus { fid }).await?;
                assert_eq!(reply.status.length, index);
                calls.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<_, afs_rpc::CallError>(())
        }
    };
    // One of them runs on this thread, as in a program that waits for each reply; the others on the pool.
    let tasks: Vec<_> = (1..outstanding).map(|index| system.spawn_with_result(caller(index))).collect();
    system.block_on(caller(0))?;
    for task in tasks {
        system.block_on(task)??;
    }
    let (calls, took, cpu) =
        (calls.load(Ordering::Relaxed), start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    println!(
        "{outstanding} outstanding: {:.0} calls/s, {:.1} us each",
        calls as f64 / took,
        took * 1e6 / calls as f64
    );
    println!("client: {cpu:.2} cpu s, {:.2} us/call", cpu * 1e6 / calls as f64);
    println!("{:?}", udp.rx().stats());
    Ok(calls)
}

/// Processor time of this process so far, user and system.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
