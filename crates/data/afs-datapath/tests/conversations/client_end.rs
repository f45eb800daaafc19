//! The end of a client with some users, against a drive that says what a script says.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_datapath::frame::{DATA_MAX, Event, Message, OPEN_END, RequestId};
use afs_datapath::session::{Client, Lost, Patience, Security};
use afs_env::{ByteListener, EnvExt, EnvRef};
use afs_sim::Sim;

use super::line::{Ear, Line, halves};
use super::reached::Reached;
use super::script::Script;
use super::users::User;
use super::watched::SENT;
use super::watched_chunks::chunk_reply;
use super::{at, client_moves};

/// Most moves of one script.
const MOVES_MAX: usize = 300;
/// Bytes of a script for one user.
const USER_PART: usize = 40;

/// Plays a script to a client: at first the parts of its users, then what the drive does.
///
/// # Panics
/// If the client breaks the protocol or its bounds, gives a user what is not right, or keeps anything afterwards.
pub fn play_to_client(bytes: &[u8], reached: &Reached) {
    let mut script = Script::new(bytes);
    let sim = Sim::new(u64::from(script.byte()));
    let drive_node = sim.node("drive", Ipv4Addr::new(10, 0, 0, 1).into());
    let client_node = sim.node("client", Ipv4Addr::new(10, 0, 0, 2).into());
    let (drive_env, env) = (sim.env(drive_node), sim.env(client_node));
    let users: Vec<_> = (0..1 + script.below(4)).map(|_| script.part(USER_PART)).collect();
    let listener = drive_env.listen(at()).unwrap();
    let drive = FalseDrive { env: drive_env.clone(), reached: reached.clone() };
    drive_env.spawn(Box::pin(drive.serve(listener, script)));

    let all = work(env, users, reached.clone());
    if let Err(hang) = sim.block_on(client_node, Duration::from_secs(1 << 20), all) {
        panic!("{hang}");
    }
    // The drive may have moves left, which lead nowhere.
    sim.run_for(Duration::from_secs(1 << 16));
    assert_eq!(sim.task_count(), 0, "a task is left");
    assert_eq!(sim.stream_count(), 0, "a stream is left that nobody has");
}

/// Opens a connection, and has all users work at once.
async fn work(env: EnvRef, users: Vec<Script>, reached: Reached) {
    let Ok(stream) = env.connect(at()).await else { return };
    let opened = Client::open(env.clone(), stream, Security::Clear, Patience::default()).await;
    let client = match opened {
        Ok(client) => client,
        Err(lost) => {
            return reached.note(if lost == Lost::Handshake { "never greeted" } else { "not opened" });
        }
    };
    reached.note("opened");
    let working: Vec<_> = users
        .into_iter()
        .map(|script| {
            let user = User { env: env.clone(), client: client.clone(), reached: reached.clone(), script };
            env.spawn_with_result(user.work())
        })
        .collect();
    for one in working {
        one.await.expect("a user has failed");
    }
}

struct FalseDrive {
    env: EnvRef,
    reached: Reached,
}

/// What the client has asked for, and may send.
#[derive(Default)]
struct Asked {
    all: BTreeMap<u32, Message>,
    /// Bytes that it may still send, by request.
    credit: BTreeMap<u32, u64>,
    latest: u32,
}

impl FalseDrive {
    async fn serve(self, mut listener: Box<dyn ByteListener>, mut script: Script) {
        let Ok(stream) = listener.accept().await else { return };
        let (mut line, mut ear, gate) = halves(&self.env, stream, Arc::default());
        let Some(Event::Message(Message::Hello(hello))) = ear.next().await else { return };
        if script.once_in(40) {
            return;
        }
        let welcome = client_moves::welcome(hello.version, &mut script);
        if !line.send(&Message::Welcome(welcome), &mut script).await {
            return;
        }
        let asked = Arc::new(Mutex::new(Asked::default()));
        let is_changed = line.is_changed.clone();
        let heard = listen(ear, asked.clone(), welcome.store_credit, self.reached.clone(), is_changed);
        self.env.spawn(Box::pin(heard));
        for _ in 0..MOVES_MAX {
            if script.is_over() || !self.make_move(&mut line, &asked, &mut script).await {
                break;
            }
            if script.once_in(30) {
                gate.shut();
            } else {
                gate.open();
            }
        }
        gate.open();
    }

    /// Makes a move; whether the connection goes on.
    async fn make_move(&self, line: &mut Line, asked: &Mutex<Asked>, script: &mut Script) -> bool {
        let request = asked.lock().unwrap().pick(script);
        // What a drive should not do is seldom done: each ends the connection.
        let is_wrong = script.once_in(10);
        match script.below(24) {
            0..=9 => self.serve_one(line, asked, script).await,
            12..=14 => {
                let bytes = script.pick(&[0, 1, 5000, 300_000, 1 << 20, u32::MAX]);
                if request.0 > asked.lock().unwrap().latest && !is_wrong {
                    return true;
                }
                asked.lock().unwrap().give(request, bytes);
                line.send(&Message::Credit { request, bytes }, script).await
            }
            15 => line.send(&Message::Alive, script).await,
            16 if script.once_in(60) => false,
            _ if is_wrong => self.do_wrong(line, request, script).await,
            _ => {
                self.env.sleep(script.pause()).await;
                true
            }
        }
    }

    async fn do_wrong(&self, line: &mut Line, request: RequestId, script: &mut Script) -> bool {
        match script.below(10) {
            0 | 1 => line.send(&client_moves::announce(request, script), script).await,
            2 | 3 => {
                let bytes = vec![SENT; script.length() as usize];
                line.data(request.0, &bytes, DATA_MAX, script).await
            }
            4 => line.send(&client_moves::stored(request, script), script).await,
            5 => line.send(&client_moves::performed(request, script), script).await,
            6 => line.send(&client_moves::failed(request, script), script).await,
            7 => line.send(&client_moves::end(request, script), script).await,
            8 => line.send(&client_moves::misplaced(request, script), script).await,
            _ => line.raw(&script.bytes(40)).await,
        }
    }

    /// Does what a request is for, as a drive should, with bytes of its own.
    async fn serve_one(&self, line: &mut Line, asked: &Mutex<Asked>, script: &mut Script) -> bool {
        let next = asked.lock().unwrap().all.pop_first();
        let Some((request, message)) = next else {
            self.env.sleep(script.pause()).await;
            return true;
        };
        if script.once_in(10) {
            return line.send(&client_moves::failed(RequestId(request), script), script).await;
        }
        let id = RequestId(request);
        self.reached.note("served");
        match message {
            Message::Read { range, .. } => {
                let is_stream = range.len() == OPEN_END;
                let all = if is_stream { 70_000 } else { range.len().min(u64::from(script.length())) };
                let length = if is_stream { OPEN_END } else { all };
                let announced = Message::Announce { request: id, length, file_length: all };
                let ended = Message::Announce { request: id, length: all, file_length: 0 };
                let bytes = vec![SENT; usize::try_from(all).unwrap()];
                line.send(&announced, script).await
                    && line.data(request, &bytes, script.pick(&[DATA_MAX, 5000]), script).await
                    && (!is_stream || line.send(&ended, script).await)
            }
            Message::Perform { what, .. } if what.outgoing().is_some() => {
                let mut bytes = chunk_reply();
                if script.once_in(3) {
                    let at = script.word() as usize % bytes.len();
                    bytes[at] ^= 1;
                }
                let wanted = script.pick(&[bytes.len(), bytes.len(), 8, 8 + 34_464]).min(bytes.len());
                let length = wanted as u64;
                let announced = Message::Announce { request: id, length, file_length: 0 };
                line.send(&announced, script).await
                    && line.data(request, &bytes[..wanted], DATA_MAX, script).await
            }
            other => {
                // Credit for all, time for the bytes, and the reply.
                asked.lock().unwrap().give(id, u32::MAX);
                let is_sent = line.send(&Message::Credit { request: id, bytes: u32::MAX }, script).await;
                self.env.sleep(Duration::from_secs(1)).await;
                let reply = match other {
                    Message::Store { .. } => client_moves::stored(id, script),
                    _ => client_moves::performed(id, script),
                };
                is_sent && line.send(&reply, script).await
            }
        }
    }
}

impl Asked {
    /// A request, mostly one that was asked for.
    fn pick(&self, script: &mut Script) -> RequestId {
        match script.below(12) {
            0 => RequestId(self.latest + 1),
            1 => RequestId(script.word() % 20),
            _ => RequestId(self.latest.saturating_sub(u32::from(script.byte() % 3)).max(1)),
        }
    }

    fn give(&mut self, request: RequestId, bytes: u32) {
        *self.credit.entry(request.0).or_default() += u64::from(bytes);
    }

    /// A new request: the client may send so many bytes of it at once.
    fn begin(&mut self, request: RequestId, credit: u32, message: Message) {
        assert!(request.0 > self.latest, "a request with the number of an earlier one");
        self.latest = request.0;
        self.give(request, credit);
        self.all.insert(request.0, message);
    }
}

/// Compares what a client sends with what it may.
async fn listen(
    mut ear: Ear,
    asked: Arc<Mutex<Asked>>,
    store_credit: u32,
    reached: Reached,
    is_changed: Arc<std::sync::atomic::AtomicBool>,
) {
    while let Some(event) = ear.next().await {
        let mut asked = asked.lock().unwrap();
        match event {
            Event::Data(request, piece) => {
                let credit = asked.credit.entry(request.0).or_default();
                let left = credit.checked_sub(piece.len() as u64);
                let is_other = is_changed.load(std::sync::atomic::Ordering::Relaxed);
                assert!(left.is_some() || is_other, "bytes without credit");
                *credit = left.unwrap_or(0);
                reached.note("bytes came");
            }
            Event::Message(message) => match &message {
                Message::Read { request, .. } => asked.begin(*request, 0, message),
                Message::Store { request, .. } => asked.begin(*request, store_credit, message),
                Message::Perform { request, what, .. } => {
                    let credit = what.first_credit(store_credit);
                    asked.begin(*request, credit, message);
                }
                Message::Cancel { request } => {
                    assert!(request.0 <= asked.latest, "a request that never began was cancelled");
                    asked.all.remove(&request.0);
                    reached.note("cancelled");
                }
                Message::Credit { .. } => reached.note("credited"),
                Message::Goodbye(_) => reached.note("client's goodbye"),
                Message::Present { .. } | Message::Withdraw { .. } | Message::Alive => {}
                Message::Announce { file_length: 0, .. } => reached.note("client's end of a stream"),
                other => panic!("a client does not send {other:?}"),
            },
        }
    }
}
