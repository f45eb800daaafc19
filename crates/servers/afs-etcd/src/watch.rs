//! Stream of changes to the rows of a cell.

use std::sync::Arc;

use afs_db::shared::{Batch, Changed, Pending, Revision, SharedError, Watch};
use bytes::{Buf, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::messages::{Event, Number, WatchCreate, WatchLine, WatchRequest};
use crate::store::Rows;

/// Longest line that is read: a batch of etcd's, in base64.
const LINE_MAX: usize = 64 << 20;

/// The stream of a watch: a line of JSON for each batch.
pub(crate) struct EtcdWatch {
    rows: Arc<Rows>,
    body: Incoming,
    buffer: BytesMut,
    /// Prefix of `buffer` known to have no end of a line.
    searched: usize,
    after: Revision,
}

impl EtcdWatch {
    pub(crate) async fn begin(rows: &Arc<Rows>, after: Revision) -> Result<Box<dyn Watch>, SharedError> {
        let (key, range_end) = rows.all();
        let create_request =
            WatchCreate { key, range_end, start_revision: Number(after.0.saturating_add(1)) };
        let answer = rows.client.stream("/v3/watch", &WatchRequest { create_request }).await?;
        let (rows, body) = (rows.clone(), answer.into_body());
        Ok(Box::new(EtcdWatch { rows, body, buffer: BytesMut::new(), searched: 0, after }))
    }

    /// The next line.
    async fn line(&mut self) -> Result<BytesMut, SharedError> {
        loop {
            let fresh = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(end) = fresh.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(self.searched + end);
                self.buffer.advance(1);
                self.searched = 0;
                return Ok(line);
            }
            self.searched = self.buffer.len();
            if self.searched > LINE_MAX {
                return Err(lost("a line without end"));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        self.buffer.extend_from_slice(data);
                    }
                }
                Some(Err(error)) => return Err(lost(error)),
                None => return Err(lost("the stream has ended")),
            }
        }
    }
}

/// Decodes a line of a watch of everything after `after`.
pub(crate) fn batch(rows: &Rows, after: Revision, line: &[u8]) -> Result<Batch, SharedError> {
    let line: WatchLine = serde_json::from_slice(line).map_err(lost)?;
    if let Some(error) = line.error {
        return Err(lost(error));
    }
    let reply = line.result.unwrap_or_default();
    if reply.compact_revision > Number(0) {
        return Err(SharedError::Forgotten(after));
    }
    if reply.canceled {
        return Err(lost(reply.cancel_reason));
    }
    let changed = |event: Event| Changed {
        key: rows.own(event.kv.key.0),
        value: (event.kind != "DELETE").then_some(event.kv.value.0),
        revision: Revision(event.kv.mod_revision.0),
    };
    Ok(reply.events.into_iter().map(changed).collect())
}

impl Watch for EtcdWatch {
    fn next(&mut self) -> Pending<'_, Batch> {
        Box::pin(async move {
            loop {
                let line = self.line().await?;
                let batch = batch(&self.rows, self.after, &line)?;
                if !batch.is_empty() {
                    return Ok(batch);
                }
            }
        })
    }
}

fn lost(why: impl std::fmt::Display) -> SharedError {
    SharedError::Unavailable(format!("the watch: {why}"))
}
