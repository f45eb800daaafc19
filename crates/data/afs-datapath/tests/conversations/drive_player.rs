//! Player of a script against a drive: its connections, and the moves that it chooses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_datapath::capability::{DriveKey, Group, KeyEpoch, Nonce, Nonces};
use afs_datapath::frame::{DATA_MAX, Goodbye, HandleNumber, Hello, Message};
use afs_datapath::session::Drive;
use afs_env::{EnvExt, EnvRef};

use super::drive_end::LIMITS;
use super::heard::{Heard, listen};
use super::line::{Gate, Line, halves};
use super::reached::Reached;
use super::script::Script;
use super::watched::Watched;
use super::{at, drive_moves};

/// Most moves of one script: beyond them nothing new happens.
const MOVES_MAX: usize = 400;
/// What a session holds of a request at most: a full queue, the piece that is read, and a frame that is written.
const HELD_OF_REQUEST: usize = 3 * DATA_MAX;

pub struct Player {
    pub env: EnvRef,
    pub drive: Arc<Drive>,
    pub watched: Arc<Watched>,
    pub reached: Reached,
    pub lines: Vec<Connection>,
    /// The connection of the next move.
    pub at: usize,
}

/// A connection of the script.
pub struct Connection {
    pub line: Line,
    pub gate: Arc<Gate>,
    pub heard: Arc<Mutex<Heard>>,
    pub client: Nonce,
    pub latest: u32,
    /// What was presented last under each handle.
    pub held: BTreeMap<HandleNumber, Group>,
    /// Bytes of stores that the drive waits for, as far as is known.
    pub unsent: BTreeMap<u32, u64>,
    /// Of them, streams.
    pub streams: BTreeSet<u32>,
}

impl Player {
    pub async fn play(mut self, mut script: Script) {
        for _ in 0..MOVES_MAX {
            if script.is_over() {
                break;
            }
            if self.lines.is_empty() || script.once_in(60) {
                self.connect(&mut script).await;
            }
            if self.lines.len() > 1 && script.once_in(8) {
                self.at = script.below(self.lines.len());
            }
            if !self.make_move(&mut script).await {
                self.leave();
            }
            self.check_bounds();
        }
        self.lines.iter().for_each(|connection| connection.gate.open());
    }

    fn leave(&mut self) {
        if self.at < self.lines.len() {
            self.lines.remove(self.at).gate.open();
        }
        self.at = 0;
    }

    /// Limits hold at any time.
    fn check_bounds(&self) {
        let counts = self.drive.counts();
        assert!(counts.connected <= LIMITS.connections_per_address, "{} connections", counts.connected);
        assert!(counts.in_progress <= LIMITS.requests_per_address, "{} requests", counts.in_progress);
        let held = self.watched.held.load(Ordering::Relaxed);
        let most = (counts.in_progress + counts.connected) * HELD_OF_REQUEST;
        assert!(held <= most, "{held} bytes of reads wait");
    }

    /// Opens a connection; mostly with a hello, and a capability for much.
    async fn connect(&mut self, script: &mut Script) {
        let Ok(stream) = self.env.connect(at()).await else { return };
        let (line, ear, gate) = halves(&self.env, stream, self.watched.is_changed.clone());
        let heard = Heard {
            reached: self.reached.clone(),
            is_changed: line.is_changed.clone(),
            drive: None,
            expected: BTreeMap::new(),
        };
        let heard = Arc::new(Mutex::new(heard));
        self.env.spawn(Box::pin(listen(ear, heard.clone())));
        let client = Nonce([script.byte(); 32]);
        let (held, unsent, streams) = Default::default();
        self.lines.push(Connection { line, gate, heard, client, latest: 0, held, unsent, streams });
        self.at = self.lines.len() - 1;
        if !script.once_in(20) {
            self.hello(script).await;
            for _ in 0..3 {
                self.present(script).await;
            }
            if script.once_in(4) {
                self.now().gate.shut();
            }
        }
    }

    pub fn now(&mut self) -> &mut Connection {
        &mut self.lines[self.at]
    }

    async fn hello(&mut self, script: &mut Script) -> bool {
        let version = script.pick(&drive_moves::VERSIONS);
        let nonce = self.now().client;
        let is_sent = self.now().line.send(&Message::Hello(Hello { version, nonce }), script).await;
        self.env.sleep(Duration::from_millis(200)).await;
        is_sent
    }

    async fn present(&mut self, script: &mut Script) -> bool {
        let given = drive_moves::capability(&self.drive, self.env.wall().secs, script);
        let secret = self.drive.key().seal(&given);
        let drive = self.now().heard.lock().unwrap().drive;
        let nonces = Nonces { drive: drive.unwrap_or(Nonce([0; 32])), client: self.now().client };
        let (is_right, message) = drive_moves::present((given, &secret), nonces, script);
        if is_right && drive.is_some() {
            self.watched.issued.add(given);
            self.reached.note("presented");
        }
        if let Message::Present { handle, .. } = message {
            self.now().held.insert(handle, given.group);
        }
        self.now().line.send(&message, script).await
    }

    /// Makes a move; whether the connection goes on.
    async fn make_move(&mut self, script: &mut Script) -> bool {
        if self.lines.is_empty() {
            return true;
        }
        match script.below(32) {
            0..=2 => self.present(script).await,
            3 => self.withdraw(script).await,
            4..=9 => self.read(script).await,
            10..=13 => self.store(script).await,
            14..=17 => self.perform(script).await,
            18..=20 => self.credit(script).await,
            21 => self.say(|request, _| Message::Cancel { request }, script).await,
            22 => self.end(script).await,
            23 => self.data(script).await,
            24 if script.once_in(6) => self.say(drive_moves::misplaced, script).await,
            25 if script.once_in(6) => {
                let bytes = script.bytes(40);
                self.now().line.raw(&bytes).await
            }
            26 => self.say(|_, _| Message::Alive, script).await,
            27 => self.rights(script),
            28 => self.listen_or_not(script),
            29 if script.once_in(4) => {
                self.say(|_, _| Message::Goodbye(Goodbye::Done), script).await && !script.once_in(2)
            }
            _ => {
                self.env.sleep(script.pause()).await;
                true
            }
        }
    }

    fn rights(&mut self, script: &mut Script) -> bool {
        let key = self.drive.key();
        match script.below(6) {
            0 => {
                self.drive.revocations.revoke_all();
                self.watched.issued.revoke(None);
            }
            1 => {
                let next = KeyEpoch(key.epoch().0 + 1);
                self.drive.replace_key(DriveKey::new(key.drive(), next, [script.byte(); 32]));
                self.watched.issued.forget();
            }
            _ => {
                let group = drive_moves::group(&key, script);
                self.drive.revocations.revoke(group);
                self.watched.issued.revoke(Some(group));
            }
        }
        true
    }

    fn listen_or_not(&mut self, script: &mut Script) -> bool {
        match script.once_in(3) {
            true => self.now().gate.shut(),
            false => self.now().gate.open(),
        }
        true
    }
}
