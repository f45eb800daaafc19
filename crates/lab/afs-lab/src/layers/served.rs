//! What the peer serves by Rx and by the data path: files of as many bytes as are asked for, all the same.

use super::PACKETS;
use afs_datapath::capability::TicketId;
use afs_datapath::session::{DATA_MAX, Failure, Objects, Opened, Pieces, ReadRequest, StoreRequest, Taken};
use afs_net::{System, Udp};
use afs_rpc::{CallError, ServerCall, Table};
use afs_rx::Config;
use afs_wire::fs;
use afs_wire::rpc::ServiceId;
use afs_wire::xdr::Encode;
use bytes::Bytes;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// Bytes that a call writes at a time.
const PIECE: usize = 1 << 20;

/// Configuration of an end whose packets have this size.
pub(super) fn config(packet: usize) -> Config {
    let mut config = Config::default();
    config.packet_size = packet;
    config.packet_size_loopback = packet;
    config
}

/// The endpoints of Rx, one for each size of packets.
pub(super) fn endpoints(system: &Arc<System>, at: SocketAddr) -> io::Result<Vec<Udp>> {
    let piece = Arc::new(Bytes::from(vec![7; PIECE]));
    let open = |packet: usize| {
        let udp = Udp::bind(system, SocketAddr::new(at.ip(), 0), config(packet))?;
        let table = Table::new(ServiceId::FILE, piece.clone()).streamed(
            |piece: Arc<Bytes>, call, asked: fs::FetchData64| async move {
                // A caller that has gone needs no reply.
                let _gone = fetch(call, asked, &piece).await;
            },
        );
        udp.rx().listen(Arc::new(table)).map_err(io::Error::other)?;
        Ok(udp)
    };
    PACKETS.into_iter().map(open).collect()
}

async fn fetch(mut call: ServerCall, asked: fs::FetchData64, piece: &Bytes) -> Result<(), CallError> {
    let length = asked.length.max(0).cast_unsigned();
    call.write(Bytes::from(length.to_bytes())).await?;
    let mut left = length;
    while left > 0 {
        let part = left.min(PIECE as u64);
        call.write(piece.slice(..part as usize)).await?;
        left -= part;
    }
    let status = fs::Status { length, ..Default::default() };
    call.reply(&fs::FetchDataReply { status, callback: Default::default(), sync: Default::default() }).await
}

/// Files of the data path: see [`file`](super::file).
pub(super) struct Files;

impl Objects for Files {
    fn read(&self, request: ReadRequest) -> afs_env::BoxFuture<'static, Result<Opened, Failure>> {
        let length = request.range.len();
        let piece = (request.fid.vnode.0 as usize).clamp(1, DATA_MAX);
        let pieces = Box::new(Equal { piece: vec![7; piece].into() });
        Box::pin(async move { Ok(Opened { file_length: length, length, pieces }) })
    }

    fn store(&self, _: StoreRequest, _: Taken) -> afs_env::BoxFuture<'static, Result<TicketId, Failure>> {
        Box::pin(std::future::ready(Err(Failure::NoSpace)))
    }
}

struct Equal {
    piece: Bytes,
}

impl Pieces for Equal {
    fn next(&mut self, most: usize) -> afs_env::BoxFuture<'_, Result<Bytes, Failure>> {
        let piece = self.piece.slice(..most.min(self.piece.len()));
        Box::pin(std::future::ready(Ok(piece)))
    }
}
