//! Incoming and outgoing byte stream of one call, for either side.

use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;

use afs_rx::{CallError as RxError, CallId};
use afs_wire::error::AbortCode;
use bytes::{Bytes, BytesMut};

use super::commands::{AfterWrite, ReadData, Reading};
use super::{Claimant, Rx};
use crate::error::CallError;

/// Least number of bytes requested from the endpoint, so that small reads do not each take the lock.
const LOOK_AHEAD: usize = 4096;

/// The streams of one call. Dropping it releases the call, which the endpoint aborts with `RX_USER_ABORT` if it is
/// unfinished.
pub(crate) struct Stream {
    rx: Rx,
    call: CallId,
    peer: SocketAddr,
    /// Bytes taken from the endpoint and not yet read.
    rest: Bytes,
    /// The end of the incoming stream was reached.
    at_end: bool,
    /// The claimant in whose limits a server's call has a place.
    place: Option<Claimant>,
    /// The call has been released: nothing can be done with it.
    left: bool,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({:?} with {})", self.call, self.peer)
    }
}

impl Stream {
    pub(crate) fn outgoing(rx: Rx, call: CallId, peer: SocketAddr) -> Self {
        Self { rx, call, peer, rest: Bytes::new(), at_end: false, place: None, left: false }
    }

    pub(crate) fn incoming(rx: Rx, call: CallId, peer: SocketAddr, place: Claimant) -> Self {
        Self { rx, call, peer, rest: Bytes::new(), at_end: false, place: Some(place), left: false }
    }

    pub(crate) fn rx(&self) -> &Rx {
        &self.rx
    }

    fn error(&self, error: RxError) -> CallError {
        if self.rx.is_closed() { CallError::Closed } else { CallError::from_rx(error, self.peer) }
    }

    /// Ready data, at most `max` bytes; waits for at least one. Empty only at the end.
    async fn fill(&mut self, max: usize) -> Result<ReadData, CallError> {
        if self.at_end {
            return Ok(ReadData::default());
        }
        // The caller's half is over when the reply has been read.
        let leave = self.place.is_none();
        let reading = Reading { call: self.call, max: max.max(1), leave_at_end: leave };
        let data = poll_fn(|cx| self.rx.poll_read(&reading, cx)).await;
        let data = data.map_err(|error| self.error(error))?;
        self.at_end = data.end;
        self.left = data.end && leave;
        Ok(data)
    }

    pub(crate) async fn read_some(&mut self, max: usize) -> Result<Option<Bytes>, CallError> {
        if self.rest.is_empty() {
            self.rest = self.fill(max).await?.joined();
        }
        let n = self.rest.len().min(max);
        Ok((n > 0).then(|| self.rest.split_to(n)))
    }

    pub(crate) async fn read_pieces(&mut self, max: usize) -> Result<Vec<Bytes>, CallError> {
        if !self.rest.is_empty() {
            let n = self.rest.len().min(max);
            return Ok(vec![self.rest.split_to(n)]);
        }
        Ok(self.fill(max).await?.pieces())
    }

    pub(crate) async fn read_exact(&mut self, n: usize) -> Result<Bytes, CallError> {
        if self.rest.is_empty() && n > 0 {
            self.rest = self.fill(n.max(LOOK_AHEAD)).await?.joined();
        }
        if self.rest.len() >= n {
            return Ok(self.rest.split_to(n));
        }
        let mut out = BytesMut::new();
        while out.len() < n {
            if self.rest.is_empty() {
                self.rest = self.fill((n - out.len()).max(LOOK_AHEAD)).await?.joined();
            }
            if self.rest.is_empty() {
                return Err(CallError::Ended);
            }
            let take = self.rest.len().min(n - out.len());
            out.extend_from_slice(&self.rest.split_to(take));
        }
        Ok(out.freeze())
    }

    pub(crate) async fn read_to_end(&mut self, limit: usize) -> Result<Bytes, CallError> {
        let mut first = std::mem::take(&mut self.rest);
        let mut out = BytesMut::new();
        loop {
            if first.len() + out.len() > limit {
                return Err(CallError::TooLong { limit });
            }
            // One byte above the limit is requested, to distinguish a stream of exactly `limit` bytes from a longer
            // one.
            let data = self.fill((limit - out.len()).saturating_add(1)).await?.joined();
            if data.is_empty() {
                return Ok(if out.is_empty() { first } else { out.freeze() });
            }
            if first.is_empty() && out.is_empty() {
                first = data;
            } else {
                out.extend_from_slice(&std::mem::take(&mut first));
                out.extend_from_slice(&data);
            }
        }
    }

    pub(crate) async fn write(&mut self, data: Bytes) -> Result<(), CallError> {
        self.put(data, AfterWrite::More).await
    }

    /// Writes `data`, ends this direction and releases the call, in one step where it fits.
    pub(crate) async fn write_and_leave(&mut self, data: Bytes) -> Result<(), CallError> {
        self.put(data, AfterWrite::Leave(self.place)).await?;
        self.left = true;
        Ok(())
    }

    async fn put(&mut self, mut data: Bytes, then: AfterWrite) -> Result<(), CallError> {
        self.check_open()?;
        poll_fn(|cx| self.rx.poll_write(self.call, &mut data, then, cx)).await.map_err(|e| self.error(e))
    }

    /// Completes with the error that ends the call.
    pub(crate) async fn ended(&mut self) -> CallError {
        match self.check_open() {
            Ok(()) => self.error(poll_fn(|cx| self.rx.poll_ended(self.call, cx)).await),
            Err(error) => error,
        }
    }

    pub(crate) fn flush(&mut self) -> Result<(), CallError> {
        self.check_open()?;
        self.rx.flush(self.call).map_err(|e| self.error(e))
    }

    pub(crate) fn finish_send(&mut self) -> Result<(), CallError> {
        self.check_open()?;
        self.rx.finish_send(self.call).map_err(|e| self.error(e))
    }

    fn check_open(&self) -> Result<(), CallError> {
        if self.left { Err(CallError::Misuse) } else { Ok(()) }
    }

    /// Aborts the call in both directions. Without effect on one that is over.
    pub(crate) fn abort(&mut self, code: AbortCode) {
        if !self.left {
            self.rx.abort(self.call, code.0);
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if !self.left {
            self.rx.release(self.call, self.place);
        }
    }
}
