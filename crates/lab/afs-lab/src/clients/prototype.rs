//! Clients of the prototype of 1984, and its server's processes.

use super::loads::{AtLoad, Loads, Ran, System};
use crate::bulk::Process;
use crate::error::{Context, LabError};
use crate::measure::Program;
use crate::prototype::{ClientPlace, Ended};
use crate::scratch::Scratch;
use crate::spread::Spread;
use serde_json::Value;
use std::cell::RefCell;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Loads of Table III.
const LOADS: [u32; 5] = [1, 2, 5, 8, 10];

/// The prototype as processes of this machine.
pub struct PrototypeClients<'a> {
    /// The program.
    pub program: &'a Path,
    /// A directory for the files of server and clients; what is written there is removed.
    pub local: &'a Path,
    /// The part of a processor that the server gets, if it is another system's.
    pub part: Option<f64>,
    /// Few loads, once each.
    pub quick: bool,
    /// Ends the runs when it is true.
    pub stop: &'a AtomicBool,
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct PrototypeRan {
    /// Times by load.
    pub ran: Ran,
    /// The same for what the server used.
    pub usage: Vec<Usage>,
}

/// What the server's processes used in all runs of a load.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// Runs of clients.
    pub clients: u32,
    /// Processor seconds, outside of the kernel and in it.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
    /// Bytes given to the disk.
    pub written_bytes: u64,
}

impl PrototypeClients<'_> {
    /// Starts a server, stores the source, and runs all loads.
    ///
    /// # Errors
    /// A process fails, or `stop` became true.
    pub fn run(&self) -> Result<PrototypeRan, LabError> {
        let scratch = Scratch::make_in(self.local, "andrew-lab-prototype")?;
        let server = ServerProcess::start(self.program, scratch.path())?;
        let source = Program::write_in(scratch.path())?;
        ClientPlace { server: server.address, cache: &scratch.path().join("operator") }
            .make_source(&source)?;
        server.ended(1)?;
        let Self { program, part, quick, stop, .. } = *self;
        let loads = Loads { program, loads: &LOADS, server: Some(server.child.id()), part, quick, stop };
        let ran = loads.run(&server)?.ok_or(LabError::Lost)?;
        Ok(PrototypeRan { usage: by_load(&ran, &server.runs.borrow()), ran })
    }
}

/// What was used at each load: the first two runs are of the client alone, and bound nothing.
fn by_load(ran: &Ran, runs: &[Usage]) -> Vec<Usage> {
    let measured = runs.get(2..).unwrap_or_default();
    let each = measured.len() / ran.loads.len().max(1);
    measured.chunks(each.max(1)).map(|runs| runs.iter().fold(Usage::default(), Usage::and)).collect()
}

impl Usage {
    fn and(self, more: &Self) -> Self {
        Self {
            clients: self.clients + more.clients,
            user: self.user + more.user,
            system: self.system + more.system,
            written_bytes: self.written_bytes + more.written_bytes,
        }
    }

    fn add(&mut self, ended: &Ended) {
        self.clients += 1;
        self.user += ended.user_us as f64 / 1e6;
        self.system += ended.system_us as f64 / 1e6;
        self.written_bytes += ended.written_bytes;
    }
}

impl AtLoad {
    /// Milliseconds of a TestAuth that the clients told: means of their runs.
    pub(super) fn test_auth(&self) -> Option<Spread> {
        let of = |said: &Value| Some(1e3 * said["checks_seconds"].as_f64()? / said["checks"].as_f64()?);
        Spread::of_values(self.said.iter().filter_map(of))
    }
}

/// The server's processes. They end when this is dropped.
struct ServerProcess {
    child: Child,
    /// Its output: a line of processor time and bytes for each process that has ended.
    out: RefCell<BufReader<ChildStdout>>,
    address: SocketAddr,
    listener: Process,
    program: PathBuf,
    /// Where caches are made.
    directory: PathBuf,
    /// What was used in each run so far, and in all.
    runs: RefCell<Vec<Usage>>,
    total: RefCell<f64>,
}

const WORDS: &str = "prototype serve";

impl ServerProcess {
    fn start(program: &Path, directory: &Path) -> Result<Self, LabError> {
        let mut command = Command::new(program);
        command.args(WORDS.split(' ')).arg("--directory").arg(directory.join("server"));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().during("run", program)?;
        let mut out = BufReader::new(child.stdout.take().ok_or(LabError::Lost)?);
        let mut line = String::new();
        let address = out.read_line(&mut line).ok().and_then(|_| line.trim().parse().ok());
        let Some((address, listener)) = address.zip(Process::new("listener".into(), child.id()).ok()) else {
            end(&mut child);
            return Err(LabError::Answer { command: WORDS.into() });
        };
        Ok(Self {
            child,
            out: RefCell::new(out),
            address,
            listener,
            program: program.to_owned(),
            directory: directory.to_owned(),
            runs: RefCell::default(),
            total: RefCell::default(),
        })
    }

    /// Waits until so many more processes have ended; what they used.
    fn ended(&self, count: u32) -> Result<Usage, LabError> {
        let (mut usage, mut out) = (Usage::default(), self.out.borrow_mut());
        for _ in 0..count {
            let mut line = String::new();
            out.read_line(&mut line).during("read the output of", &self.program)?;
            let ended: Ended =
                serde_json::from_str(&line).map_err(|_| LabError::Answer { command: WORDS.into() })?;
            if let Some(error) = ended.error {
                return Err(LabError::Prototype(format!(
                    "a process of the prototype's server ended: {error}"
                )));
            }
            usage.add(&ended);
        }
        Ok(usage)
    }
}

impl System for ServerProcess {
    fn client(&self, number: u32, think: Duration) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["--json", "prototype", "client", "--server", &self.address.to_string()]);
        command.args(["--target", &format!("target{number}"), "--think", &think.as_secs().to_string()]);
        command.arg("--cache").arg(self.directory.join(format!("cache{number}")));
        command
    }

    fn seconds(&self, said: &Value) -> Option<f64> {
        said["seconds"].as_f64()
    }

    fn processor(&self, ended: u32) -> Result<f64, LabError> {
        if ended > 0 {
            let usage = self.ended(ended)?;
            *self.total.borrow_mut() += usage.user + usage.system;
            self.runs.borrow_mut().push(usage);
        }
        Ok(*self.total.borrow() + self.listener.time()?.as_secs_f64())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn end(child: &mut Child) {
    drop(child.stdin.take());
    let _ = child.kill();
    let _ = child.wait();
}
