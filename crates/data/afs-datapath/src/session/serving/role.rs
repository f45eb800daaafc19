//! What a drive does with the messages of a client.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use afs_env::{BoxFuture, Instant};
use afs_wire::ids::{DataVersion, Fid};

use super::attempt::Attempt;
use super::grant::Grant;
use super::{bound, chunks, reading, storing};
use crate::capability::{Access, ByteRange, Capability, Nonces, Proof, Refusal, StreamName};
use crate::frame::{ChunkRequest, Failure, HandleNumber, Message, RequestId, StoreDescription};
use crate::session::admission::Permit;
use crate::session::connection_table::{ConnectionEntry, class_of};
use crate::session::driver::Role;
use crate::session::limits::STORE_WINDOW;
use crate::session::link::Link;
use crate::session::objects::{ReadRequest, StoreRequest, StreamRequest};
use crate::session::receiving::Receiving;
use crate::session::request::{Awaited, Request};
use crate::session::sending::Sending;
use crate::session::{Drive, Lost};

/// The drive's part of one connection.
pub(super) struct DriveRole {
    drive: Arc<Drive>,
    peer: SocketAddr,
    nonces: Nonces,
    entry: Arc<ConnectionEntry>,
    /// What was presented; of a capability that was refused, why.
    handles: BTreeMap<HandleNumber, Result<Capability, Refusal>>,
}

impl Role for DriveRole {
    fn message(&mut self, link: &Link, message: Message) -> Result<(), Lost> {
        let now = link.now();
        match message {
            Message::Present { handle, capability, proof } => {
                self.present(link, handle, &capability, &proof.0)
            }
            Message::Withdraw { handle } => {
                self.handles.remove(&handle);
                Ok(())
            }
            Message::Read { request, handle, fid, range, version, credit } => {
                let permits = |capability: &Capability| capability.permits(Access::READ, fid, range);
                let granted = self.grant(link, request, handle, permits)?;
                let is_whole = range == ByteRange::ALL && version == DataVersion(0);
                let granted = granted.and_then(|granted| of_whole_stream(granted, is_whole));
                let granted = granted.inspect_err(|why| self.attempt(handle, fid, Access::READ).failed(*why));
                self.begin(
                    link,
                    request,
                    granted,
                    Sending::new(0, credit.into()),
                    Receiving::default(),
                    |grant| {
                        let (peer, capability) = (grant.peer, grant.capability);
                        if let Some(stream) = capability.group.stream() {
                            let sent = StreamRequest { peer, capability, stream };
                            return Box::pin(reading::send_stream(link.clone(), request, grant, sent));
                        }
                        let read = ReadRequest { peer, capability, fid, version, range };
                        Box::pin(reading::read(link.clone(), request, grant, read))
                    },
                );
                Ok(())
            }
            Message::Store { request, handle, description } => {
                let (fid, extent) = (description.fid, description.extent());
                let permits = |capability: &Capability| capability.permits(Access::WRITE, fid, extent);
                let granted = self.grant(link, request, handle, permits)?;
                let is_whole = description == StoreDescription::of_stream(StreamName::of(fid));
                let granted = granted.and_then(|granted| of_whole_stream(granted, is_whole));
                let granted =
                    granted.inspect_err(|why| self.attempt(handle, fid, Access::WRITE).failed(*why));
                let receiving = Receiving::new(description.total(), STORE_WINDOW);
                self.begin(link, request, granted, Sending::default(), receiving, |grant| {
                    let (peer, capability) = (grant.peer, grant.capability);
                    if let Some(stream) = capability.group.stream() {
                        let taken = StreamRequest { peer, capability, stream };
                        return Box::pin(storing::take_stream(link.clone(), request, grant, taken));
                    }
                    let store = StoreRequest { peer, capability, description };
                    Box::pin(storing::store(link.clone(), request, grant, store))
                });
                Ok(())
            }
            Message::Announce { request, length, file_length: 0 } => {
                link.with(|state| state.take_end(request, length, now))
            }
            Message::Perform { request, handle, what } => self.perform(link, request, handle, what),
            Message::Credit { request, bytes } => link.with(|state| state.take_credit(request, bytes, now)),
            Message::Cancel { request } => link.with(|state| state.take_cancel(request)),
            _ => Err(Lost::Violation("a message that clients do not send")),
        }
    }

    fn tick(&mut self, link: &Link, now: Instant) -> Result<(), Lost> {
        let is_idle = link.with(|state| state.is_idle(now, &self.drive.limits.patience));
        if is_idle { Err(Lost::Idle) } else { Ok(()) }
    }

    fn sent(&mut self, bytes: usize) {
        self.drive.counters.bytes_sent.add(bytes as u64);
    }

    fn received(&mut self, bytes: usize) {
        self.drive.counters.bytes_received.add(bytes as u64);
    }
}

impl DriveRole {
    pub fn new(drive: Arc<Drive>, peer: SocketAddr, nonces: Nonces, entry: Arc<ConnectionEntry>) -> Self {
        Self { drive, peer, nonces, entry, handles: BTreeMap::new() }
    }

    fn present(
        &mut self,
        link: &Link,
        handle: HandleNumber,
        capability: &Capability,
        proof: &Proof,
    ) -> Result<(), Lost> {
        if handle.0 >= self.drive.limits.handles_per_connection {
            return Err(Lost::Violation("a handle beyond the limit"));
        }
        let checked = self.drive.key().check(capability, &self.nonces, proof, link.env().wall());
        match checked {
            Err(refusal) => self.drive.refuse(self.peer, refusal, link.env().now()),
            Ok(()) if self.entry.prove(class_of(capability)) => {}
            // All places of clients are taken: this one uses calls.
            Ok(()) => {
                self.drive.counters.turned_away.add(1);
                return Err(Lost::Closed);
            }
        }
        self.handles.insert(handle, checked.map(|()| *capability));
        Ok(())
    }

    fn perform(
        &self,
        link: &Link,
        request: RequestId,
        handle: HandleNumber,
        what: ChunkRequest,
    ) -> Result<(), Lost> {
        if self.drive.objects.chunks().is_none() {
            return Err(Lost::Violation("a request for chunks of a drive that has none"));
        }
        let now = link.env().wall();
        let permits = |capability: &Capability| bound::permits(&self.drive, capability, &what, now);
        let granted = self.grant(link, request, handle, permits)?;
        let credit = what.outgoing().map_or(0, |(_, credit)| credit);
        let sending = Sending::new(0, credit.into());
        let receiving = Receiving::new(what.incoming(), what.first_credit(STORE_WINDOW));
        self.begin(link, request, granted, sending, receiving, |grant| {
            Box::pin(chunks::serve(link.clone(), request, grant, what))
        });
        Ok(())
    }

    /// Whether a new request is permitted, by a capability of which `permits` is true.
    fn grant(
        &self,
        link: &Link,
        request: RequestId,
        handle: HandleNumber,
        permits: impl FnOnce(&Capability) -> Result<(), Refusal>,
    ) -> Result<Result<(Grant, Permit), Failure>, Lost> {
        let (latest, in_progress) = link.with(|state| (state.latest(), state.requests()));
        if request <= latest {
            return Err(Lost::Violation("a request with the number of an earlier one"));
        }
        if in_progress >= self.drive.limits.requests_per_connection as usize {
            self.drive.counters.turned_away.add(1);
            return Ok(Err(Failure::Busy));
        }
        Ok(self.permit(link, handle, permits))
    }

    fn permit(
        &self,
        link: &Link,
        handle: HandleNumber,
        permits: impl FnOnce(&Capability) -> Result<(), Refusal>,
    ) -> Result<(Grant, Permit), Failure> {
        let capability = self.handles.get(&handle).copied().ok_or(Failure::NoHandle)??;
        let grant = Grant::new(link.env(), &self.drive, self.peer, capability)?;
        permits(&capability)?;
        let Some(permit) = self.drive.admission.admit(self.entry.class(), self.peer.ip()) else {
            self.drive.counters.turned_away.add(1);
            return Err(Failure::Busy);
        };
        Ok((grant, permit))
    }

    fn attempt(&self, handle: HandleNumber, fid: Fid, access: Access) -> Attempt {
        let capability = self.handles.get(&handle).copied().and_then(Result::ok);
        Attempt { drive: self.drive.clone(), peer: self.peer, capability, fid, access }
    }

    /// Starts the task of a request, or tells the client why not.
    fn begin(
        &self,
        link: &Link,
        request: RequestId,
        granted: Result<(Grant, Permit), Failure>,
        sending: Sending,
        receiving: Receiving,
        task: impl FnOnce(Grant) -> BoxFuture<'static, ()>,
    ) {
        let (grant, permit) = match granted {
            Ok(granted) => granted,
            Err(failure) => {
                note(link, &self.drive, self.peer, failure);
                let late = receiving.outstanding(true);
                return link.with(|state| state.reject(request, failure, late));
            }
        };
        let now = link.now();
        let begun = Request::new(sending, receiving, Awaited::Nothing, now);
        let is_stream = grant.capability.group.stream().is_some();
        let begun = if is_stream { begun.of_stream() } else { begun };
        link.with(|state| state.begin(request, begun, now));
        let task = task(grant);
        let env = link.env();
        let held = async move {
            task.await;
            drop(permit);
        };
        env.start(Box::pin(held), env.stall());
    }
}

/// Streams have no versions and no parts.
fn of_whole_stream(granted: (Grant, Permit), is_whole: bool) -> Result<(Grant, Permit), Failure> {
    let is_stream = granted.0.capability.group.stream().is_some();
    if is_stream && !is_whole { Err(Failure::Invalid) } else { Ok(granted) }
}

/// Counts a failure.
pub(super) fn note(link: &Link, drive: &Drive, peer: SocketAddr, failure: Failure) {
    match failure {
        Failure::Refused(refusal) => drive.refuse(peer, refusal, link.env().now()),
        _ => _ = drive.counters.failed.add(1),
    }
}
