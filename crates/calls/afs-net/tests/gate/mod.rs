//! Security class whose ciphers block at one packet of the first connection that reaches it, until the test releases them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use afs_rpc::SecuritySource;
use afs_rx::{
    Challenge, ClientSecurity, Instant, PacketContext, PacketSecurity, Proof, Response, SecurityError,
    ServerSecurity, ServerSession, Verified,
};
use bytes::Bytes;

const INDEX: u8 = 2;

/// Which operation a gate blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    Seal,
    Open,
}

/// Blocks the thread that reaches one packet.
#[derive(Debug)]
pub struct Gate {
    work: Work,
    /// Number of the packet.
    seq: u32,
    /// A connection has reached it.
    was_reached: AtomicBool,
    reached: SyncSender<()>,
    go: Mutex<Receiver<()>>,
}

/// The test's side of a gate.
pub struct Keeper {
    pub reached: Receiver<()>,
    pub go: SyncSender<()>,
}

impl Gate {
    pub fn new(work: Work, seq: u32) -> (Arc<Self>, Keeper) {
        let ((reached, at), (go, gone)) = (sync_channel(1), sync_channel(1));
        let gate = Self { work, seq, was_reached: AtomicBool::new(false), reached, go: Mutex::new(gone) };
        (Arc::new(gate), Keeper { reached: at, go })
    }

    fn pass(&self, work: Work, seq: u32) {
        if (work, seq) == (self.work, self.seq) && !self.was_reached.swap(true, Ordering::SeqCst) {
            self.reached.send(()).unwrap();
            self.go.lock().unwrap().recv().unwrap();
        }
    }
}

/// Offers the class. Only the server's half has the gate.
pub struct GateServer(pub Arc<Gate>);

/// Makes clients' halves, for the connections of one user.
pub struct GateSource(pub &'static str);

struct Half(Option<Arc<Gate>>);

impl Half {
    fn pass(&self, work: Work, seq: u32) {
        self.0.iter().for_each(|gate| gate.pass(work, seq));
    }
}

impl PacketSecurity for Half {
    fn index(&self) -> u8 {
        INDEX
    }
    fn seal(&self, packet: &PacketContext, _: &mut Vec<u8>) -> Result<u16, SecurityError> {
        self.pass(Work::Seal, packet.seq);
        Ok(0)
    }
    fn open(&self, packet: &PacketContext, payload: Bytes) -> Result<Bytes, SecurityError> {
        self.pass(Work::Open, packet.seq);
        Ok(payload)
    }
}

impl ClientSecurity for Half {
    fn respond(&mut self, _: &Challenge<'_>) -> Result<Response, SecurityError> {
        Err(SecurityError { code: 1 })
    }
}

impl ServerSession for Half {
    fn is_authenticated(&self, _: Instant) -> bool {
        true
    }
    fn challenge(&mut self, _: Instant, _: &mut dyn FnMut(&mut [u8])) -> Vec<u8> {
        Vec::new()
    }
    fn verify(&mut self, _: &Proof<'_>) -> Result<Verified, SecurityError> {
        Ok(Verified::default())
    }
}

impl ServerSecurity for GateServer {
    fn index(&self) -> u8 {
        INDEX
    }
    fn accept(&mut self) -> Box<dyn ServerSession> {
        Box::new(Half(Some(self.0.clone())))
    }
}

impl SecuritySource for GateSource {
    fn name(&self) -> String {
        format!("gate {}", self.0)
    }
    fn session(&self) -> Box<dyn ClientSecurity> {
        Box::new(Half(None))
    }
}
