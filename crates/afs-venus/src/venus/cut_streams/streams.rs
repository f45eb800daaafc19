//! The client's side of the streams.

use afs_env::io::{AsyncReadExt, AsyncWriteExt};
use afs_rpc::{BoxFuture, CallError, EnvExt, EnvRef};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{CallBack, FetchDataReply, Status, StatusReply, VolSync};
use afs_wire::ids::DataVersion;

use super::server::{ANY_VERSION, DATA, FETCH, SILENT, STORE, Shared, number};
use crate::calls::Target;
use crate::location::Server;
use crate::transfer::{Fetched, Rpc, Sink, Source, StoreRequest, Transfer, TransferResult, Wanted};

/// Bytes received at a time.
const PART: usize = 64;

/// Transfers by streams. Any error of a stream is reported as a reply that ended early.
pub struct Streams {
    pub env: EnvRef,
    /// Source of the parts of a reply that the stream does not carry.
    pub file: Shared,
}

impl Streams {
    async fn within<T: Send>(
        &self,
        work: impl Future<Output = TransferResult<T>> + Send,
    ) -> TransferResult<T> {
        self.env.timeout(SILENT, work).await.unwrap_or(Err(CallError::Ended))
    }

    async fn fetched(&self, wanted: &Wanted, sink: &mut dyn Sink) -> TransferResult<Fetched> {
        let Wanted { fid, range, .. } = wanted;
        let mut stream = self.env.connect(DATA).await.map_err(broken)?;
        stream.write_all(&[FETCH]).await.map_err(broken)?;
        for number in [range.start, range.end] {
            stream.write_all(&number.to_be_bytes()).await.map_err(broken)?;
        }
        let length = number(&mut stream).await.map_err(broken)?;
        sink.begin(length);
        let mut left = length;
        while left > 0 {
            let mut part = vec![0; left.min(PART as u64) as usize];
            let count = stream.read(&mut part).await.map_err(broken)?;
            part.truncate(count);
            if count == 0 {
                return Err(CallError::Ended);
            }
            left -= count as u64;
            sink.put(vec![part.into()]).await.map_err(|_| CallError::GivenUp(AbortCode::VIO))?;
        }
        sink.end().await.map_err(|_| CallError::GivenUp(AbortCode::VIO))?;
        let version = number(&mut stream).await.map_err(broken)?;
        let status = Status { data_version: DataVersion(version), ..self.file.lock().status(*fid) };
        let (callback, sync) = (CallBack::shared(1000), VolSync::default());
        Ok(Fetched::ByCall(FetchDataReply { status, callback, sync }))
    }

    async fn stored(
        &self,
        change: &StoreRequest<'_>,
        source: &mut dyn Source,
    ) -> TransferResult<StatusReply> {
        let mut stream = self.env.connect(DATA).await.map_err(broken)?;
        stream.write_all(&[STORE]).await.map_err(broken)?;
        let expected = change.expected.map_or(ANY_VERSION, |version| version.0);
        let file_length = change.pieces.first().map_or(0, |piece| piece.file_length);
        for number in [expected, file_length, change.pieces.len() as u64] {
            stream.write_all(&number.to_be_bytes()).await.map_err(broken)?;
        }
        for piece in change.pieces {
            for number in [piece.range.start, piece.range.end - piece.range.start] {
                stream.write_all(&number.to_be_bytes()).await.map_err(broken)?;
            }
            let mut at = piece.range.start;
            while at < piece.range.end {
                let bytes = source.next(piece, at).await.map_err(|_| CallError::GivenUp(AbortCode::VIO))?;
                at += bytes.len() as u64;
                stream.write_all(&bytes).await.map_err(broken)?;
            }
        }
        match number(&mut stream).await.map_err(broken)? {
            1 => {
                let status = self.file.lock().status(change.fid);
                Ok(StatusReply { status, sync: VolSync::default() })
            }
            _ => Err(CallError::Abort(AbortCode(Errno::EAGAIN.number()))),
        }
    }
}

fn broken(_: std::io::Error) -> CallError {
    CallError::Ended
}

impl Transfer for Streams {
    fn fetch<'a>(
        &'a self,
        _: &'a Target,
        wanted: &'a Wanted,
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, TransferResult<Fetched>> {
        Box::pin(self.within(self.fetched(wanted, sink)))
    }

    fn store<'a>(
        &'a self,
        _: &'a Target,
        change: &'a StoreRequest<'a>,
        source: &'a mut dyn Source,
    ) -> BoxFuture<'a, TransferResult<StatusReply>> {
        Box::pin(self.within(self.stored(change, source)))
    }

    fn takes_several_pieces(&self, server: &Server) -> bool {
        Rpc.takes_several_pieces(server)
    }
}

/// Transfers by streams, with calls in place of a stream that breaks.
pub struct OrCalls(pub Streams);

impl Transfer for OrCalls {
    fn fetch<'a>(
        &'a self,
        target: &'a Target,
        wanted: &'a Wanted,
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, TransferResult<Fetched>> {
        Box::pin(async move {
            match self.0.fetch(target, wanted, sink).await {
                Err(CallError::Ended) => Rpc.fetch(target, wanted, sink).await,
                other => other,
            }
        })
    }

    fn store<'a>(
        &'a self,
        target: &'a Target,
        change: &'a StoreRequest<'a>,
        source: &'a mut dyn Source,
    ) -> BoxFuture<'a, TransferResult<StatusReply>> {
        Box::pin(async move {
            match self.0.store(target, change, source).await {
                Err(CallError::Ended) => Rpc.store(target, change, source).await,
                other => other,
            }
        })
    }

    fn takes_several_pieces(&self, server: &Server) -> bool {
        Rpc.takes_several_pieces(server)
    }
}
