//! Cell of two servers on this machine, each a process at a loopback address of its own, with its state in a directory that is removed.

use crate::bulk::Process;
use crate::error::{Context, LabError};
use crate::load::{Target, callbacks};
use afs_net::{System, Udp};
use afs_rpc::Security;
use afs_wire::ids::{Fid, VolumeId};
use afs_wire::rpc::ServiceId;
use serde_json::Value;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Addresses of the servers.
const SERVERS: [Ipv4Addr; 2] = [Ipv4Addr::new(127, 0, 0, 1), Ipv4Addr::new(127, 0, 0, 2)];
/// Ports that servers use from their base port on.
const PORTS: u16 = 8;
/// Where base ports are looked for.
const BASES: std::ops::Range<u16> = 29_000..32_000;
const CELL: &str = "lab.test";

/// A server of the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Server {
    /// It has the databases too.
    First,
    Second,
}

impl Server {
    pub(super) const BOTH: [Self; 2] = [Self::First, Self::Second];

    pub(super) fn address(self) -> String {
        SERVERS[self as usize].to_string()
    }
}

/// What both servers have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Done {
    /// Bytes that their processes gave to the disk.
    pub(super) written: u64,
    /// Bytes of volumes that their data paths sent and received.
    pub(super) travelled: u64,
}

/// Looks at what servers write, until two are the same: they write in the background what they have in their logs.
const LOOKS: u32 = 40;
const BETWEEN_LOOKS: Duration = Duration::from_millis(150);

/// The cell, with a client of its file servers. It is taken down when this is dropped.
pub struct OwnCell {
    program: PathBuf,
    home: PathBuf,
    base: u16,
    /// Dropped before its threads.
    udp: Option<Udp>,
    system: Arc<System>,
}

impl OwnCell {
    /// Starts the servers. Everybody may write in the top directory of what is restored with [`OwnCell::new_volume`].
    ///
    /// # Errors
    /// A command fails, no ports are free, or the directory cannot be made.
    pub fn start(program: &Path, scratch: &Path) -> Result<Self, LabError> {
        let home = scratch.join(format!("andrew-lab-cell-{}", std::process::id()));
        fs::create_dir_all(&home).during("make the directory", &home)?;
        let home = home.canonicalize().during("find", &home)?;
        let base = free_base().ok_or(LabError::NoPorts)?;
        let network = |source| LabError::Network { operation: "open a socket", source };
        let system = System::new().map_err(network)?;
        let mut cell = Self { program: program.to_owned(), home, base, udp: None, system };
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let udp = Udp::bind(&cell.system, any, afs_rx::Config::default()).map_err(network)?;
        let _offered = udp.rx().listen(callbacks(&*cell.system.env()));
        cell.udp = Some(udp);
        cell.serve()?;
        Ok(cell)
    }

    fn serve(&self) -> Result<(), LabError> {
        let [first, second] = Server::BOTH.map(|server| self.state(server));
        let (join, port) = (self.home.join("join.toml").display().to_string(), self.base.to_string());
        let (one, two) = (Server::First.address(), Server::Second.address());
        let serve = ["serve", "--state", &first, "--cell", CELL, "--listen", &one, "--base-port", &port];
        self.run(&[&serve[..], &["--anyuser", "rlidwk", "--detach"]].concat())?;
        let add = ["server", "add", "--state", &first, "--listen", &two, "--roles", "files", "--out", &join];
        self.run(&add)?;
        self.run(&["serve", "--state", &second, "--join", &join, "--detach"])?;
        let seed = self.seed();
        self.vos(&["dump", "root.cell", "--clone", "--file", &seed]).map(drop)
    }

    /// Dump of an empty volume in which everybody may write: the cell's first one.
    fn seed(&self) -> String {
        self.file("seed.dump")
    }

    /// Path of a file beside the servers' states.
    pub(super) fn file(&self, name: &str) -> String {
        self.home.join(name).display().to_string()
    }

    fn state(&self, server: Server) -> String {
        self.file(["first", "second"][server as usize])
    }

    /// Makes an empty volume without a quota at the first server.
    pub(super) fn new_volume(&self, name: &str) -> Result<VolumeId, LabError> {
        self.vos(&["restore", &Server::First.address(), "a", name, "--file", &self.seed()])?;
        self.vos(&["setfields", name, "--maxquota", "0"])?;
        let said = self.vos(&["examine", name])?;
        let id = said["volumes"][0]["id"].as_u64().and_then(|id| u32::try_from(id).ok());
        id.map(VolumeId).ok_or_else(|| LabError::Answer { command: format!("vos examine {name}") })
    }

    /// What a `vos` command says, as JSON.
    pub(super) fn vos(&self, words: &[&str]) -> Result<Value, LabError> {
        let said = self.run(&[&["--json", "vos", "--state", &self.state(Server::First)], words].concat())?;
        if said.trim().is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&said)
            .map_err(|_| LabError::Answer { command: format!("vos {}", words.join(" ")) })
    }

    /// Calls to a file server about the top directory of a volume.
    pub(super) fn target(&self, server: Server, volume: VolumeId) -> Result<Target, LabError> {
        let udp = self.udp.as_ref().ok_or(LabError::Lost)?;
        let address = SocketAddr::from((SERVERS[server as usize], self.base));
        let files = udp.rx().connection(address, ServiceId::FILE, Security::null());
        Ok(Target { env: self.system.env(), files, directory: Fid::root(volume) })
    }

    /// Waits for a future.
    pub(super) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.system.block_on(future)
    }

    /// What the servers have done so far, once they write nothing more.
    pub(super) fn settled(&self) -> Result<Done, LabError> {
        let mut done = self.done()?;
        for _ in 0..LOOKS {
            std::thread::sleep(BETWEEN_LOOKS);
            let now = self.done()?;
            if now == done {
                break;
            }
            done = now;
        }
        Ok(done)
    }

    fn done(&self) -> Result<Done, LabError> {
        let [first, second] = Server::BOTH.map(|server| self.done_by(server));
        let (first, second) = (first?, second?);
        Ok(Done { written: first.written + second.written, travelled: first.travelled + second.travelled })
    }

    fn done_by(&self, server: Server) -> Result<Done, LabError> {
        let said = self.run(&["--json", "status", "--state", &self.state(server)])?;
        let said: Value = serde_json::from_str(&said).unwrap_or_default();
        let pid = said["cell"]["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        let pid = pid.ok_or_else(|| LabError::Answer { command: "status".into() })?;
        let path = |what: &str| said["data_path_counts"][what].as_u64().unwrap_or_default();
        let travelled = path("sent_bytes") + path("received_bytes");
        Ok(Done { written: Process::new("server".into(), pid)?.written_bytes()?, travelled })
    }

    fn run(&self, words: &[&str]) -> Result<String, LabError> {
        let mut command = Command::new(&self.program);
        // Cells and mounts of the user are not seen.
        for name in ["HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"] {
            command.env(name, &self.home);
        }
        command.env_remove("ANDREW_STATE").args(words).stdin(Stdio::null());
        let output = command.output().during("run", &self.program)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        Err(LabError::Command {
            command: format!("{} {}", self.program.display(), words.join(" ")),
            status: output.status.to_string(),
            stderr: stderr.lines().last().unwrap_or("it wrote no reason").to_owned(),
        })
    }
}

impl Drop for OwnCell {
    fn drop(&mut self) {
        self.udp = None;
        for server in [Server::Second, Server::First] {
            let _ = self.run(&["down", "--state", &self.state(server)]);
        }
        let _ = fs::remove_dir_all(&self.home);
    }
}

/// The first base port from which on all are free at both addresses. Another process may take one before the servers do;
/// then these do not start.
fn free_base() -> Option<u16> {
    let is_free = |port: u16| SERVERS.iter().all(|address| UdpSocket::bind((*address, port)).is_ok());
    BASES.step_by(usize::from(PORTS)).find(|base| (*base..base + PORTS).all(is_free))
}
