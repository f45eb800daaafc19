//! Tests of a file server through its own methods, and of stores that are begun and not ended.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use std::sync::Arc;
use std::time::Duration;

use afs_drive::{Drive, MemoryDrive};
use afs_rpc::{Caller, ConnKey, EnvExt, EnvRef, Identity};
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, SetStatus, StatusReply};
use afs_wire::ids::Fid;
use bytes::Bytes;

use super::server::FileServer;
use super::store_change::Change;
use super::storing::{NO_TICKET, SHORT_DATA};
use super::ticket::{Owner, TicketId};
use crate::audit::CallKind;
use crate::call_context::CallContext;
use crate::flow::{Broken, Source};
use crate::rig::{Cell, Client, PATIENCE};

/// A cell with a client.
pub(super) struct Desk {
    pub(super) cell: Cell,
    pub(super) client: Client,
}

/// Resources on a server that stores still hold.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Left {
    pub(super) bytes_on_drive: u64,
    /// Whether nothing is held for stores.
    pub(super) is_idle: bool,
    pub(super) tickets: usize,
}

pub(super) fn bytes_on(drive: &MemoryDrive) -> u64 {
    let usage = drive.usage().unwrap();
    usage.total - usage.free
}

impl Desk {
    pub(super) fn new(seed: u64) -> Self {
        let cell = Cell::new(seed);
        let client = cell.client(1);
        Desk { cell, client }
    }

    pub(super) fn env(&self) -> EnvRef {
        self.cell.sim.env(self.cell.server)
    }

    pub(super) fn files(&self) -> Arc<FileServer> {
        self.cell.files().clone()
    }

    pub(super) fn left(&self) -> Left {
        let (files, bytes_on_drive) = (self.cell.files(), bytes_on(&self.cell.drive));
        Left { bytes_on_drive, is_idle: files.stores.is_idle(), tickets: files.tickets.count() }
    }

    pub(super) fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        self.cell.sim.block_on(self.cell.server, PATIENCE, work).unwrap()
    }

    /// The context of a call by the client.
    pub(super) fn context(&self) -> Arc<CallContext> {
        self.visit_of(&self.client)
    }

    fn visit_of(&self, client: &Client) -> Arc<CallContext> {
        let connection = ConnKey { epoch: 7, cid: 4 };
        let identity = Identity::Anonymous;
        let caller = Caller { peer: client.address, connection, security_index: 0, identity };
        let files = self.files();
        self.run(async move { Arc::new(files.admit(&caller, CallKind::Change).await.unwrap()) })
    }

    /// Begins a store of `length` bytes at the start of a file.
    fn begin(&self, fid: Fid, length: u64) -> Result<TicketId, AbortCode> {
        self.begin_of(&self.client, fid, length)
    }

    fn begin_of(&self, client: &Client, fid: Fid, length: u64) -> Result<TicketId, AbortCode> {
        let (files, context, status) = (self.files(), self.visit_of(client), SetStatus::default());
        let ranges = vec![(0, length)];
        let change = Change { fid, status, file_length: 1 << 30, ranges, grown_to: 0, expected: None };
        self.run(async move {
            let found = files.find_to_store(&context, fid, &status).await?;
            files.begin_store(&Owner::of(&context), context.address, found.target(), change)
        })
    }

    fn feed(&self, ticket: TicketId, bytes: Vec<u8>) -> Result<(), AbortCode> {
        self.feed_from(ticket, Given(bytes.into()))
    }

    fn feed_from(&self, ticket: TicketId, mut source: impl Source + 'static) -> Result<(), AbortCode> {
        let (files, context) = (self.files(), self.context());
        self.run(async move { files.feed_store(&Owner::of(&context), ticket, &mut source).await })
    }

    fn end(&self, ticket: TicketId) -> Result<StatusReply, AbortCode> {
        self.end_of(&self.client, ticket)
    }

    fn end_of(&self, client: &Client, ticket: TicketId) -> Result<StatusReply, AbortCode> {
        let (files, context) = (self.files(), self.visit_of(client));
        self.run(async move { files.end_store(&context, ticket).await })
    }

    fn wait(&self, seconds: u64) {
        self.cell.sim.run_for(Duration::from_secs(seconds));
    }

    fn file(&self, name: &str) -> Fid {
        self.client.create(self.cell.root(), name).unwrap().fid
    }

    fn set_quota(&self, kib: u32) {
        let status = fs::SetVolumeStatus { quota_min: None, quota_max: Some(kib) };
        let (name, message) = (fs::Name::default(), fs::PathText::default());
        let (volume, motd) = (self.cell.volumes.root_cell, message.clone());
        let call = fs::StoreVolumeStatus { volume, status, name, offline_message: message, motd };
        self.cell.owner().ask(call).unwrap();
    }
}

/// A source whose bytes are all available.
struct Given(Bytes);

impl Source for Given {
    async fn next(&mut self, most: usize) -> Result<Vec<Bytes>, Broken> {
        let piece = self.0.split_to(most.min(self.0.len()));
        Ok(if piece.is_empty() { Vec::new() } else { vec![piece] })
    }
}

/// A source whose last bytes come after a pause.
struct Slow {
    env: EnvRef,
    at_once: Given,
    last: Given,
    pause: Duration,
}

impl Source for Slow {
    async fn next(&mut self, most: usize) -> Result<Vec<Bytes>, Broken> {
        let pieces = self.at_once.next(most).await?;
        if !pieces.is_empty() {
            return Ok(pieces);
        }
        self.env.sleep(self.pause).await;
        self.last.next(most).await
    }
}

fn code<T>(outcome: Result<T, AbortCode>) -> AbortCode {
    outcome.err().unwrap_or(AbortCode::OK)
}

#[test]
fn a_store_is_begun_fed_and_ended_in_three_calls() {
    let desk = Desk::new(311);
    let fid = desk.file("f");
    let ticket = desk.begin(fid, 100_000).unwrap();
    desk.wait(50);
    desk.feed(ticket, vec![5; 100_000]).unwrap();
    desk.wait(5);
    assert_eq!(desk.client.read(fid), b"", "nothing is seen before the end");
    let stranger = desk.cell.client(2);
    assert_eq!(code(desk.end_of(&stranger, ticket)), NO_TICKET.to_uae(), "it is another client's");
    assert_eq!(desk.end(ticket).unwrap().status.length, 100_000);
    assert!(desk.client.read(fid) == vec![5; 100_000]);
    assert_eq!(code(desk.end(ticket)), NO_TICKET.to_uae(), "once");
    assert!(desk.left().is_idle);
}

#[test]
fn a_ticket_that_is_never_ended_is_gone_after_its_time_with_all_it_held() {
    let desk = Desk::new(312);
    let [fed, begun, full] = ["fed", "begun", "full"].map(|name| desk.file(name));
    desk.set_quota(10 << 10);
    let before = desk.left();
    let (first, second) = (desk.begin(fed, 6 << 20).unwrap(), desk.begin(begun, 4 << 20).unwrap());
    desk.feed(first, vec![5; 6 << 20]).unwrap();
    assert!(desk.left().bytes_on_drive >= before.bytes_on_drive + (6 << 20));
    assert_eq!(desk.left().tickets, 2);
    // Both have their share of the quota, whether their bytes have arrived or not.
    assert_eq!(code(desk.begin(full, 5 << 20)), AbortCode::VOVERQUOTA);
    desk.wait(150);
    assert_eq!(desk.left(), before);
    for ticket in [first, second] {
        assert_eq!(code(desk.end(ticket)), NO_TICKET.to_uae());
    }
    assert_eq!(desk.client.fetch_status(fed).unwrap().status.length, 0);
    let whole = desk.begin(full, 9 << 20).unwrap();
    desk.feed(whole, vec![1; 9 << 20]).unwrap();
    assert_eq!(desk.end(whole).unwrap().status.length, 9 << 20);
}

#[test]
fn a_ticket_is_ended_only_with_all_its_bytes_and_fed_once() {
    let desk = Desk::new(313);
    let fid = desk.file("f");
    let before = desk.left();
    let unfed = desk.begin(fid, 20_000).unwrap();
    assert_eq!(code(desk.end(unfed)), SHORT_DATA);
    let short = desk.begin(fid, 20_000).unwrap();
    assert_eq!(code(desk.feed(short, vec![1; 19_999])), SHORT_DATA);
    assert_eq!(code(desk.end(short)), NO_TICKET.to_uae());
    assert_eq!(desk.left(), before);
    let ticket = desk.begin(fid, 20_000).unwrap();
    desk.feed(ticket, vec![1; 20_000]).unwrap();
    assert_ne!(desk.feed(ticket, vec![2; 20_000]).err(), None);
    desk.end(ticket).unwrap();
    assert!(desk.client.read(fid) == vec![1; 20_000]);
}

/// A ticket expires although calls worked on it now and then.
#[test]
fn a_ticket_that_is_not_ended_in_time_is_not_ended_late() {
    let desk = Desk::new(314);
    let fid = desk.file("f");
    let ticket = desk.begin(fid, 20_000).unwrap();
    desk.wait(40);
    desk.feed(ticket, vec![1; 20_000]).unwrap();
    desk.wait(30);
    assert_eq!(code(desk.end(ticket)), NO_TICKET.to_uae());
}

/// All bytes arrive at the last moment, and the end still has its time.
#[test]
fn a_slow_store_may_be_ended() {
    let desk = Desk::new(315);
    let fid = desk.file("f");
    let ticket = desk.begin(fid, 20_000).unwrap();
    desk.wait(59);
    desk.feed(ticket, vec![1; 20_000]).unwrap();
    desk.wait(8);
    assert_eq!(desk.end(ticket).unwrap().status.length, 20_000);
}

/// The watcher of expired tickets sleeps until the expiry of a later ticket, while this one is fed.
#[test]
fn a_ticket_is_over_at_its_time_before_anybody_has_looked() {
    let desk = Desk::new(316);
    let [slow, other] = ["slow", "other"].map(|name| desk.file(name));
    let ticket = desk.begin(slow, 20_000).unwrap();
    desk.wait(30);
    desk.begin(other, 20_000).unwrap();
    desk.wait(28);
    let [at_once, last] = [16_384, 20_000 - 16_384].map(|len| Given(vec![1; len].into()));
    desk.feed_from(ticket, Slow { env: desk.env(), at_once, last, pause: Duration::from_secs(4) }).unwrap();
    desk.wait(13);
    assert_eq!(desk.left().tickets, 2, "nobody has looked");
    assert_eq!(code(desk.end(ticket)), NO_TICKET.to_uae());
    assert_eq!(desk.client.fetch_status(slow).unwrap().status.length, 0);
}

/// A store counts from its beginning, fed or not, whichever call began it: a client that opens tickets and
/// disappears holds a bounded share of them.
#[test]
fn one_address_has_so_many_tickets_and_others_have_theirs() {
    let desk = Desk::new(317);
    let (fid, other) = (desk.file("f"), desk.cell.client(2));
    let before = desk.left();
    let tickets: Vec<_> = (0..1024).map(|_| desk.begin(fid, 10).unwrap()).collect();
    assert_eq!(code(desk.begin(fid, 10)), AbortCode::VBUSY);
    desk.feed(tickets[0], vec![1; 10]).unwrap();
    assert_eq!(code(desk.begin(fid, 10)), AbortCode::VBUSY, "a ticket that was fed is one as before");
    desk.begin_of(&other, fid, 10).unwrap();
    desk.end(tickets[0]).unwrap();
    desk.begin(fid, 10).unwrap();
    assert_eq!(code(desk.begin(fid, 10)), AbortCode::VBUSY);
    assert_eq!(code(desk.end(tickets[1])), SHORT_DATA);
    desk.begin(fid, 10).unwrap();
    desk.wait(150);
    assert_eq!(desk.left(), before);
    desk.begin(fid, 10).unwrap();
}

/// Sixteen stores of this size may have their bytes in memory at one time.
#[test]
fn tickets_whose_bytes_are_all_on_the_drive_take_no_memory_from_others() {
    let desk = Desk::new(318);
    let fid = desk.file("f");
    for _ in 0..20 {
        let ticket = desk.begin(fid, 4 << 20).unwrap();
        desk.feed(ticket, vec![1; 4 << 20]).unwrap();
    }
    assert_eq!(desk.left().tickets, 20, "none had to wait until another was over");
}
