//! Streams from one volume server to another, and from a tool to one.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use afs_rpc::{Security, ServerCall};
use afs_wire::error::AbortCode;
use afs_wire::ids::UnixSeconds;
use afs_wire::rpc::ServiceId;
use afs_wire::vol::{Forward, ForwardMultiple, ForwardMultipleReply, Restore};
use afs_wire::xdr::{BoundedVec, Decode, Encode};
use bytes::Bytes;

use super::{DiskVolume, Implementation, NO_TRANSACTION, Outcome, VolumeModel, is_strangers};

/// The start of a stream: dates of creation and of the last change.
pub fn head(created: UnixSeconds, updated: UnixSeconds) -> Bytes {
    Bytes::from([created.to_bytes(), updated.to_bytes()].concat())
}

/// One number in a stream.
pub fn row(number: u64, date: UnixSeconds) -> Bytes {
    Bytes::from([number.to_bytes(), date.to_bytes()].concat())
}

impl VolumeModel {
    /// A few numbers a packet, so that it can be cut anywhere; the highest first, so that a part of them
    /// cannot be taken for an earlier state.
    pub(super) async fn forward(&self, call: Forward) -> Outcome<()> {
        let state = self.with(call.transaction, |held| held.clone())?;
        let peer = SocketAddr::from((call.destination.host, 7005));
        let restore = Restore { transaction: call.destination_transaction, flags: 0, cookie: call.cookie };
        let rx = self.rx.upgrade().ok_or(AbortCode::RX_CALL_DEAD)?;
        let to = rx.connection(peer, ServiceId::VOLUME, Security::null());
        let failed = |e: afs_rpc::CallError| e.abort_code().unwrap_or(AbortCode::RX_CALL_DEAD);
        let mut stream = to.open(&restore).await.map_err(failed)?;
        stream.write(head(state.created, state.updated)).await.map_err(failed)?;
        for (number, date) in state.numbers.iter().rev().filter(|(_, date)| **date >= call.from_date) {
            stream.write(row(*number, *date)).await.map_err(failed)?;
        }
        stream.finish_request().map_err(failed)?;
        stream.finish::<Restore>().await.map_err(failed)
    }

    /// To one after the other.
    pub(super) async fn forward_multiple(&self, call: ForwardMultiple) -> Outcome<ForwardMultipleReply> {
        self.only_ours()?;
        let mut results = Vec::new();
        for replica in call.replicas.iter() {
            let one = Forward {
                transaction: call.transaction,
                from_date: call.from_date,
                destination: replica.server,
                destination_transaction: replica.transaction,
                cookie: call.cookie,
            };
            results.push(self.forward(one).await.map_or_else(|code| code.0, |()| 0));
        }
        Ok(ForwardMultipleReply { results: BoundedVec::first_of(results) })
    }

    pub(super) async fn restore(&self, mut call: ServerCall, request: Restore) {
        match self.fill(&mut call, &request).await {
            Ok(()) => drop(call.reply(&()).await),
            Err(code) => call.abort(code),
        }
    }

    async fn fill(&self, call: &mut ServerCall, request: &Restore) -> Outcome<()> {
        // A stream in progress between servers meets a stranger's volume too, and no tool can prevent it.
        if is_strangers(self.open(request.transaction)?.volume) {
            return Err(NO_TRANSACTION);
        }
        let cut = |_| AbortCode::VOLSERREAD_DUMPERROR;
        let head = call.read_exact(8).await.map_err(cut)?;
        let mut staged = BTreeMap::new();
        loop {
            let row = match call.read_exact(12).await {
                Ok(row) => row,
                Err(afs_rpc::CallError::Ended) => break,
                Err(error) => return Err(cut(error)),
            };
            let number = u64::from_bytes(&row[..8]).unwrap();
            let date = UnixSeconds::from_bytes(&row[8..]).unwrap();
            if self.implementation == Implementation::Andrew {
                staged.insert(number, date);
            } else {
                // Each number is stored as it arrives.
                self.with(request.transaction, |held| held.numbers.insert(number, date))?;
            }
        }
        self.with(request.transaction, |held: &mut DiskVolume| {
            held.numbers.append(&mut staged);
            held.created = UnixSeconds::from_bytes(&head[..4]).unwrap_or_default();
            held.updated = UnixSeconds::from_bytes(&head[4..]).unwrap_or_default();
            (held.kind, held.parent) = (request.cookie.kind, request.cookie.parent);
            held.name = request.cookie.name.to_string();
        })
    }
}
