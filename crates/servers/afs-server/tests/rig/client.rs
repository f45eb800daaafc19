//! Test client: makes single calls and records callbacks.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_rpc::{CallError, CallOptions, Connection, Rx, Security};
use afs_sim::{NodeId, World};
use afs_testkit::ClaimServer;
use afs_testkit::net::endpoint;
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, Name, PathText, SetStatus};
use afs_wire::ids::{Fid, Mode, Uuid};
use afs_wire::rpc::{Request, ServiceId};
use bytes::Bytes;

use super::heard::{Ears, Heard, Manner, OnRecall, service};
use super::{Claim, FILES, LOCATIONS, PATIENCE, VOLUMES};

#[derive(Clone)]
pub struct Client {
    pub world: World,
    pub node: NodeId,
    pub address: SocketAddr,
    rx: Rx,
    security: Security,
    heard: Arc<Mutex<Vec<Heard>>>,
    delay: Arc<Mutex<Duration>>,
    on_recall: Arc<Mutex<Option<OnRecall>>>,
}

pub type CallResult<T> = Result<T, CallError>;

impl Client {
    pub fn new(world: World, address: SocketAddr, uuid: Uuid, manner: Manner) -> Self {
        let node = world.node(&format!("client {address}"), address.ip());
        Client::on(world, node, address, uuid, manner)
    }

    /// Another port or process on the same machine.
    pub fn on(world: World, node: NodeId, address: SocketAddr, uuid: Uuid, manner: Manner) -> Self {
        let env = world.env(node);
        let rx = endpoint(&world, node, address);
        let (heard, delay) = (Arc::new(Mutex::new(Vec::new())), Arc::default());
        let on_recall = Arc::default();
        if manner != Manner::Deaf {
            let ears = Arc::new(Ears {
                uuid,
                heard: heard.clone(),
                delay: Arc::clone(&delay),
                env,
                on_recall: Arc::clone(&on_recall),
            });
            rx.listen(Arc::new(service(ears, manner))).unwrap();
        }
        Client { world, node, address, rx, security: Security::null(), heard, delay, on_recall }
    }

    /// The same machine, calling with a claim.
    pub fn acting_as(&self, claim: &Claim) -> Client {
        self.acting_with(&claim.security())
    }

    /// The same machine, calling with credentials.
    pub fn acting_with(&self, security: &Security) -> Client {
        Client { security: security.clone(), ..self.clone() }
    }

    /// A client whose callback service authenticates its callers by a word, if one is given; with `open` it
    /// answers unauthenticated callers as well.
    pub fn with_word(world: World, address: SocketAddr, uuid: Uuid, word: Option<&str>, open: bool) -> Self {
        let node = world.node(&format!("client {address}"), address.ip());
        let env = world.env(node);
        let rx = endpoint(&world, node, address);
        let (heard, delay) = (Arc::new(Mutex::new(Vec::new())), Arc::default());
        let on_recall = Arc::default();
        let ears = Arc::new(Ears {
            uuid,
            heard: heard.clone(),
            delay: Arc::clone(&delay),
            env,
            on_recall: Arc::clone(&on_recall),
        });
        let mut classes: Vec<Box<dyn afs_rx::ServerSecurity>> = Vec::new();
        if open {
            classes.push(Box::new(afs_rx::NullServer));
        }
        if let Some(word) = word {
            classes.push(Box::new(ClaimServer(word.into())));
        }
        rx.listen_with(Arc::new(service(ears, Manner::Modern)), classes).unwrap();
        Client { world, node, address, rx, security: Security::null(), heard, delay, on_recall }
    }

    /// From now on breaks are answered only after `delay`; everything else is answered at once.
    pub fn answer_breaks_after(&self, delay: Duration) {
        *self.delay.lock().unwrap() = delay;
    }

    /// From now on this is done about a recall before it is replied to. The default is to reply at once.
    pub fn on_recall(&self, what: OnRecall) {
        *self.on_recall.lock().unwrap() = Some(what);
    }

    /// Callbacks since the last time.
    pub fn heard(&self) -> Vec<Heard> {
        std::mem::take(&mut self.heard.lock().unwrap())
    }

    pub fn connection<R: Request>(&self) -> Connection {
        let to = match R::SERVICE {
            ServiceId::LOCATION => LOCATIONS,
            ServiceId::VOLUME => VOLUMES,
            _ => FILES,
        };
        self.rx.connection(to, R::SERVICE, self.security.clone())
    }

    /// Makes a call and waits for its result.
    pub fn ask<R: Request>(&self, request: R) -> CallResult<R::Reply> {
        let connection = self.connection::<R>();
        let call = async move { connection.call(&request).await };
        self.world.block_on(self.node, PATIENCE, call).unwrap()
    }

    /// As [`Client::ask`], over an Rx connection that no other call uses.
    pub fn ask_anew<R: Request>(&self, request: R, dead: u64) -> CallResult<R::Reply> {
        let dead = Some(std::time::Duration::from_secs(dead));
        let options = CallOptions { dead, ..CallOptions::default() };
        let connection = self.connection::<R>().with_options(options);
        let call = async move { connection.call(&request).await };
        self.world.block_on(self.node, PATIENCE, call).unwrap()
    }

    /// The code with which a call is refused.
    pub fn refusal<R: Request>(&self, request: R) -> AbortCode {
        match self.ask(request) {
            Err(CallError::Abort(code)) => code,
            other => panic!("not refused: {other:?}"),
        }
    }

    /// Begins a call without waiting for it.
    pub fn begin<R: Request>(&self, request: R) -> Arc<Mutex<Option<CallResult<R::Reply>>>> {
        let connection = self.connection::<R>();
        let outcome = Arc::new(Mutex::new(None));
        let slot = outcome.clone();
        self.world.env(self.node).spawn(Box::pin(async move {
            let answer = connection.call(&request).await;
            *slot.lock().unwrap() = Some(answer);
        }));
        outcome
    }

    pub fn fetch_status(&self, fid: Fid) -> CallResult<fs::FetchStatusReply> {
        self.ask(fs::FetchStatus { fid })
    }

    pub fn create(&self, dir: Fid, text: &str) -> CallResult<fs::CreateReply> {
        self.ask(fs::CreateFile { dir, name: name(text), status: mode(0o644) })
    }

    pub fn make_dir(&self, dir: Fid, text: &str) -> CallResult<fs::CreateReply> {
        self.ask(fs::MakeDir { dir, name: name(text), status: mode(0o755) })
    }

    pub fn symlink(&self, dir: Fid, text: &str, contents: &str, bits: u32) -> CallResult<fs::SymlinkReply> {
        let contents = PathText::new(contents.as_bytes()).unwrap();
        self.ask(fs::Symlink { dir, name: name(text), contents, status: mode(bits) })
    }

    pub fn remove(&self, dir: Fid, text: &str) -> CallResult<fs::RemoveReply> {
        self.ask(fs::RemoveFile { dir, name: name(text) })
    }

    pub fn remove_dir(&self, dir: Fid, text: &str) -> CallResult<fs::RemoveReply> {
        self.ask(fs::RemoveDir { dir, name: name(text) })
    }

    pub fn rename(&self, old_dir: Fid, old: &str, new_dir: Fid, new: &str) -> CallResult<fs::RenameReply> {
        self.ask(fs::Rename { old_dir, old_name: name(old), new_dir, new_name: name(new) })
    }

    pub fn link(&self, dir: Fid, text: &str, existing: Fid) -> CallResult<fs::LinkReply> {
        self.ask(fs::Link { dir, name: name(text), existing })
    }

    /// Stores bytes at a position; the file is cut to the end of them.
    pub fn store(&self, fid: Fid, position: u64, data: &[u8]) -> CallResult<fs::StatusReply> {
        let file_length = position + data.len() as u64;
        let length = data.len() as u64;
        let status = SetStatus::default();
        self.store_as(fs::StoreData64 { fid, status, position, length, file_length }, data)
    }

    /// Stores with exactly these arguments and bytes.
    pub fn store_as<R: Request<Reply = fs::StatusReply>>(
        &self,
        request: R,
        data: &[u8],
    ) -> CallResult<fs::StatusReply> {
        let connection = self.connection::<R>();
        let data = Bytes::copy_from_slice(data);
        let work = async move {
            let mut call = connection.open(&request).await?;
            // A server may refuse before it has seen all bytes; the reason comes with the reply.
            let sent = call.write(data).await;
            if sent.is_ok() {
                call.finish_request()?;
            }
            call.finish::<R>().await
        };
        self.world.block_on(self.node, PATIENCE, work).unwrap()
    }

    /// Begins to store a file's whole contents without waiting for it.
    pub fn begin_store(&self, fid: Fid, data: Vec<u8>) -> Arc<Mutex<Option<CallResult<fs::StatusReply>>>> {
        let connection = self.connection::<fs::StoreData64>();
        let outcome = Arc::new(Mutex::new(None));
        let slot = outcome.clone();
        self.world.env(self.node).spawn(Box::pin(async move {
            let (status, length) = (SetStatus::default(), data.len() as u64);
            let request = fs::StoreData64 { fid, status, position: 0, length, file_length: length };
            let work = async move {
                let mut call = connection.open(&request).await?;
                if call.write(Bytes::from(data)).await.is_ok() {
                    call.finish_request()?;
                }
                call.finish::<fs::StoreData64>().await
            };
            let answer = work.await;
            *slot.lock().unwrap() = Some(answer);
        }));
        outcome
    }

    /// Announces a store, sends a part of it and then nothing. The outcome is how the server ends it.
    pub fn begin_unfinished_store(
        &self,
        fid: Fid,
        announced: u64,
        data: Vec<u8>,
    ) -> Arc<Mutex<Option<Option<AbortCode>>>> {
        let (status, length) = (SetStatus::default(), announced);
        self.begin_unfinished(fs::StoreData64 { fid, status, position: 0, length, file_length: length }, data)
    }

    /// Sends the arguments of a call and some bytes, and then nothing.
    pub fn begin_unfinished<R: Request>(
        &self,
        request: R,
        data: Vec<u8>,
    ) -> Arc<Mutex<Option<Option<AbortCode>>>> {
        let connection = self.connection::<R>();
        let outcome = Arc::new(Mutex::new(None));
        let slot = outcome.clone();
        self.world.env(self.node).spawn(Box::pin(async move {
            let work = async move {
                let mut call = connection.open(&request).await?;
                call.write(Bytes::from(data)).await?;
                call.read_some(1).await
            };
            let ended = work.await.err().and_then(|error| error.abort_code());
            *slot.lock().unwrap() = Some(ended);
        }));
        outcome
    }

    /// Sends the arguments of a call and raw bytes; the reply must be empty.
    pub fn send_stream<R: Request<Reply = ()>>(&self, request: R, pieces: &[&[u8]]) -> CallResult<()> {
        let connection = self.connection::<R>();
        let pieces: Vec<Bytes> = pieces.iter().map(|piece| Bytes::copy_from_slice(piece)).collect();
        let work = async move {
            let mut call = connection.open(&request).await?;
            for piece in pieces {
                if call.write(piece).await.is_err() {
                    break;
                }
            }
            // A server may refuse before it has seen all; the reason comes with the reply.
            let _ = call.finish_request();
            call.finish::<R>().await
        };
        self.world.block_on(self.node, PATIENCE, work).unwrap()
    }

    /// Begins a call with raw bytes and disappears in the middle of them.
    pub fn abandon_stream<R: Request>(&self, request: R, data: &[u8]) {
        let (connection, data) = (self.connection::<R>(), Bytes::copy_from_slice(data));
        let work = async move {
            let mut call = connection.open(&request).await.unwrap();
            call.write(data).await.unwrap();
            call.abort(AbortCode(-6));
        };
        self.world.block_on(self.node, PATIENCE, work).unwrap();
    }

    /// Reads a reply of raw bytes.
    pub fn read_stream<R: Request>(&self, request: R) -> CallResult<Vec<u8>> {
        let connection = self.connection::<R>();
        let work = async move {
            let mut call = connection.open(&request).await?;
            call.finish_request()?;
            Ok(call.read_to_end(64 << 20).await?.to_vec())
        };
        self.world.block_on(self.node, PATIENCE, work).unwrap()
    }

    pub fn fetch(&self, fid: Fid, position: i64, length: i64) -> CallResult<(Vec<u8>, fs::FetchDataReply)> {
        self.fetch_as(fs::FetchData64 { fid, position, length }, 8)
    }

    pub fn fetch_as<R: Request<Reply = fs::FetchDataReply>>(
        &self,
        request: R,
        count_len: usize,
    ) -> CallResult<(Vec<u8>, fs::FetchDataReply)> {
        let connection = self.connection::<R>();
        let work = async move {
            let mut call = connection.open(&request).await?;
            call.finish_request()?;
            let count = call.read_exact(count_len).await?;
            let count = count.iter().fold(0usize, |count, byte| count << 8 | usize::from(*byte));
            let data = call.read_exact(count).await?.to_vec();
            Ok((data, call.finish::<R>().await?))
        };
        self.world.block_on(self.node, PATIENCE, work).unwrap()
    }

    pub fn read(&self, fid: Fid) -> Vec<u8> {
        self.fetch(fid, 0, 1 << 40).unwrap().0
    }

    /// Any opcode of any service, with raw arguments.
    pub fn raw(&self, to: SocketAddr, service: ServiceId, request: Vec<u8>) -> CallResult<Vec<u8>> {
        let connection = self.rx.connection(to, service, self.security.clone());
        let work = async move {
            let mut call = connection.begin(Bytes::from(request), true).await?;
            Ok(call.read_to_end(1 << 20).await?.to_vec())
        };
        self.world.block_on(self.node, PATIENCE, work).unwrap()
    }
}

pub fn name(text: &str) -> Name {
    Name::new(text.as_bytes()).unwrap()
}

pub fn mode(bits: u32) -> SetStatus {
    SetStatus { mode: Some(Mode(bits)), ..SetStatus::default() }
}
