//! [`Source`] and [`Sink`] of an Rx call.

use afs_rpc::{CallError, ServerCall};
use bytes::Bytes;

use super::{Broken, Sink, Source};

impl Source for ServerCall {
    async fn next(&mut self, most: usize) -> Result<Vec<Bytes>, Broken> {
        self.read_pieces(most).await.map_err(|_| Broken)
    }
}

impl Sink for ServerCall {
    type Error = CallError;

    async fn put(&mut self, piece: Bytes) -> Result<(), CallError> {
        self.write(piece).await
    }
}
