//! A server of the prototype as processes: one that listens, and one for each connection, which serves its client until that ends it.

use super::call::{Call, Reply, ServerNumber, Stamp};
use super::server::Server;
use super::wire::{Head, Kind, Request};
use crate::bulk::{Process, process_times};
use afs_net::threads;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Most processes for connections at a time.
const PROCESSES_MAX: u32 = 64;
/// How long a client may wait before it takes a reply.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a process has used when its connection ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// Processor time of the process, in microseconds.
    pub user_us: u64,
    /// The same in the kernel.
    pub system_us: u64,
    /// Bytes that it gave to the disk.
    pub written_bytes: u64,
    /// Calls by type.
    pub calls: BTreeMap<String, u64>,
    /// Why it ended, if not with its connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Ended {
    fn failed(error: &dyn std::fmt::Display) -> Self {
        Self { error: Some(error.to_string()), ..Self::default() }
    }
}

/// What a process told when it ended.
fn told(output: &Output) -> Ended {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
        let stderr = String::from_utf8_lossy(&output.stderr);
        Ended::failed(&format!(
            "{}: {}",
            output.status,
            stderr.lines().last().unwrap_or("it wrote no reason")
        ))
    })
}

/// A server that listens at a loopback address, at a port that is free.
pub struct Listener {
    listener: TcpListener,
    program: PathBuf,
    directory: PathBuf,
}

impl Listener {
    /// Listens; files are in a directory. `PROGRAM lab prototype session` is the process for a connection.
    ///
    /// # Errors
    /// No socket, or the directory cannot be made.
    pub fn open(program: &Path, directory: &Path) -> io::Result<Self> {
        Server::open(directory)?;
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        Ok(Self { listener, program: program.to_owned(), directory: directory.to_owned() })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system's.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Makes a process for each connection, and tells what each has used when it has ended. Connections beyond 64 at a time are closed.
    pub fn serve(&self, tell: impl Fn(Ended) + Clone + Send + 'static) {
        let processes = Arc::new(AtomicU32::new(0));
        for stream in self.listener.incoming().flatten() {
            if processes.fetch_add(1, Ordering::AcqRel) >= PROCESSES_MAX {
                processes.fetch_sub(1, Ordering::AcqRel);
                continue;
            }
            let mut command = Command::new(&self.program);
            command.args(["--json", "prototype", "session", "--directory"]).arg(&self.directory);
            command.stdin(Stdio::from(OwnedFd::from(stream)));
            let (served, say) = (processes.clone(), tell.clone());
            let serve = move || {
                let ended =
                    command.output().map_or_else(|error| Ended::failed(&error), |output| told(&output));
                served.fetch_sub(1, Ordering::AcqRel);
                say(ended);
            };
            if let Err(error) = threads::start("prototype", serve) {
                processes.fetch_sub(1, Ordering::AcqRel);
                tell(Ended::failed(&error));
            }
        }
    }
}

/// Serves the connection that is this process's input, and tells what it used.
///
/// # Errors
/// The input is no connection, or the directory cannot be opened.
pub fn session(directory: &Path) -> io::Result<Ended> {
    let stream = TcpStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut server = Server::open(directory)?;
    let error = converse(&mut server, stream).err().map(|error| error.to_string());
    let (user, system) = process_times();
    let process = Process::new("session".into(), std::process::id()).map_err(io::Error::other)?;
    Ok(Ended {
        user_us: user.as_micros() as u64,
        system_us: system.as_micros() as u64,
        written_bytes: process.written_bytes().map_err(io::Error::other)?,
        calls: server.work.calls.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
        error,
    })
}

/// Answers calls until the client ends the connection.
fn converse(server: &mut Server, mut stream: TcpStream) -> io::Result<()> {
    let mut requests = BufReader::new(stream.try_clone()?);
    while let Some(Request { kind, number, path }) = Request::read(&mut requests)? {
        let call = match kind {
            Kind::Fetch => {
                give(server, &path, &mut stream)?;
                continue;
            }
            Kind::Store => {
                let mut data = (&mut requests).take(number);
                let stored = server.store(&path, &mut data, number);
                // Of a store that was refused the data come all the same.
                io::copy(&mut data, &mut io::sink())?;
                stored.map_or_else(Head::Refused, Head::Status).write(&mut stream)?;
                continue;
            }
            Kind::TestAuth => Call::TestAuth(Stamp(number)),
            Kind::GetFileStat => Call::GetFileStat,
            Kind::SetFileStat => Call::SetFileStat,
            Kind::ListDir => Call::ListDir,
            Kind::MakeDir => Call::MakeDir,
            Kind::MakeStub => Call::MakeStub(ServerNumber(number as u32)),
        };
        answer(server, &path, call, &mut stream)?;
    }
    Ok(())
}

fn give(server: &mut Server, path: &str, stream: &mut TcpStream) -> io::Result<()> {
    match server.fetch(path) {
        Err(why) => Head::Refused(why).write(stream),
        Ok((stamp, length, data)) => {
            Head::Data(stamp, length).write(stream)?;
            let given = io::copy(&mut data.take(length), stream)?;
            if given < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
        }
    }
}

/// A call without data.
fn answer(server: &mut Server, path: &str, call: Call<'_>, stream: &mut TcpStream) -> io::Result<()> {
    match server.call(path, call) {
        Err(why) => Head::Refused(why).write(stream),
        Ok(Reply::Valid(is_valid)) => Head::Valid(is_valid).write(stream),
        Ok(Reply::Status(stamp)) => Head::Status(stamp).write(stream),
        Ok(Reply::Names(names)) => {
            let bytes: Vec<u8> = names.iter().flat_map(|name| [name.as_bytes(), b"\0"].concat()).collect();
            Head::Names(bytes.len() as u64).write(stream)?;
            stream.write_all(&bytes)
        }
    }
}
