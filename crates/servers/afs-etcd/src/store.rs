//! [`SharedStore`] in etcd: the rows of one cell.

use std::sync::Arc;

use afs_db::shared::{
    Outcome, Page, Pending, Revision, SharedError, SharedStore, Transaction, Versioned, Watch, Written,
};
use afs_net::threads;
use tokio::runtime::Runtime;

use crate::client::{CHANGE_MAX, Client, READ_MAX};
use crate::messages::{
    Blob, Compare, DeleteRequest, KeyValue, Number, Operation, OperationReply, PutRequest, RangeReply,
    RangeRequest, TxnReply, TxnRequest,
};
use crate::pack::pack;
use crate::watch::EtcdWatch;
use crate::{ConfigError, EtcdConfig};

/// The rows of one cell in etcd. Has a thread of its own.
pub struct Etcd {
    /// Present until dropped.
    runtime: Option<Runtime>,
    rows: Arc<Rows>,
}

/// The keys of the cell.
pub(crate) struct Rows {
    pub(crate) client: Client,
    prefix: Vec<u8>,
}

impl Etcd {
    /// A store that has made no request yet.
    ///
    /// # Errors
    /// An unusable configuration.
    pub fn open(config: &EtcdConfig) -> Result<Self, ConfigError> {
        let rows = Rows::of(config)?;
        let runtime = threads::resolving_runtime("afs-etcd")?;
        Ok(Etcd { runtime: Some(runtime), rows: Arc::new(rows) })
    }

    /// Runs work on the thread with the sockets, and returns its result to the waiting task.
    fn there<'a, T, F>(&'a self, work: impl FnOnce(Arc<Rows>) -> F) -> Pending<'a, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, SharedError>> + Send + 'static,
    {
        let task = self.runtime.as_ref().map(|runtime| runtime.spawn(work(self.rows.clone())));
        Box::pin(async move {
            match task {
                Some(task) => task.await.unwrap_or_else(|error| Err(gone(error))),
                None => Err(gone("closed")),
            }
        })
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn gone(why: impl std::fmt::Display) -> SharedError {
    SharedError::Unavailable(why.to_string())
}

impl SharedStore for Etcd {
    fn read(&self, keys: Vec<Vec<u8>>) -> Pending<'_, Vec<Option<Versioned>>> {
        self.there(|rows| async move { rows.read(keys).await })
    }

    fn page(&self, at: Option<Revision>, after: Option<Vec<u8>>, limit: usize) -> Pending<'_, Page> {
        self.there(move |rows| async move { rows.page(at, after.as_deref(), limit).await })
    }

    fn commit(&self, transaction: Transaction) -> Pending<'_, Outcome> {
        self.there(|rows| async move { rows.commit(transaction).await })
    }

    fn watch(&self, after: Revision) -> Pending<'_, Box<dyn Watch>> {
        self.there(move |rows| async move { EtcdWatch::begin(&rows, after).await })
    }
}

impl Rows {
    pub(crate) fn of(config: &EtcdConfig) -> Result<Self, ConfigError> {
        Ok(Rows { client: Client::new(config)?, prefix: config.prefix.as_bytes().to_vec() })
    }

    fn key(&self, key: &[u8]) -> Blob {
        Blob([&self.prefix, key].concat())
    }

    /// The range of all keys of the cell.
    pub(crate) fn all(&self) -> (Blob, Blob) {
        let mut end = self.prefix.clone();
        while let Some(last) = end.pop() {
            if last < 0xff {
                end.push(last + 1);
                break;
            }
        }
        // Without an end: every key from the first on.
        (Blob(self.prefix.clone()), Blob(if end.is_empty() { vec![0] } else { end }))
    }

    /// A key without the cell's prefix.
    pub(crate) fn own(&self, key: Vec<u8>) -> Vec<u8> {
        key.get(self.prefix.len()..).unwrap_or_default().to_vec()
    }

    fn look(&self, keys: &[Vec<u8>]) -> Vec<Operation> {
        let range = |key: &Vec<u8>| RangeRequest { key: self.key(key), ..RangeRequest::default() };
        keys.iter().map(|key| Operation::RequestRange(range(key))).collect()
    }

    async fn read(&self, keys: Vec<Vec<u8>>) -> Result<Vec<Option<Versioned>>, SharedError> {
        let request = TxnRequest { success: self.look(&keys), ..TxnRequest::default() };
        let reply: TxnReply = self.client.call("/v3/kv/txn", &request, READ_MAX).await?;
        Ok(looked(reply.responses, keys.len()))
    }

    async fn page(
        &self,
        at: Option<Revision>,
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Page, SharedError> {
        let (first, end) = self.all();
        // The successor of a key is that key and a zero.
        let key = after.map_or(first, |after| self.key(&[after, &[0]].concat()));
        let request = RangeRequest {
            key,
            range_end: Some(end),
            limit: Some(Number(limit as u64)),
            revision: at.map(|at| Number(at.0)),
        };
        let reply: RangeReply = self.client.call("/v3/kv/range", &request, CHANGE_MAX).await?;
        Ok(self.page_of(at, reply))
    }

    pub(crate) fn page_of(&self, at: Option<Revision>, reply: RangeReply) -> Page {
        let row = |row: KeyValue| {
            (self.own(row.key.0), Versioned { value: row.value.0, revision: Revision(row.mod_revision.0) })
        };
        Page {
            revision: at.unwrap_or(Revision(reply.header.revision.0)),
            rows: reply.kvs.into_iter().map(row).collect(),
            more: reply.more,
        }
    }

    async fn commit(&self, transaction: Transaction) -> Result<Outcome, SharedError> {
        let Transaction { guard, expected, writes, look } = transaction;
        let compare = Compare {
            key: self.key(&guard),
            target: "MOD",
            result: "EQUAL",
            mod_revision: Number(expected.0),
        };
        let operations = writes.into_iter().map(|written| self.operation(written)).collect();
        let request =
            TxnRequest { compare: vec![compare], success: pack(operations), failure: self.look(&look) };
        let reply: TxnReply = self.client.call("/v3/kv/txn", &request, CHANGE_MAX).await?;
        Ok(outcome_of(reply, look.len()))
    }

    fn operation(&self, (key, value): Written) -> Operation {
        let key = self.key(&key);
        match value {
            Some(value) => Operation::RequestPut(PutRequest { key, value: Blob(value) }),
            None => Operation::RequestDeleteRange(DeleteRequest { key }),
        }
    }
}

/// The outcome of a transaction that reads `count` keys when it is refused.
pub(crate) fn outcome_of(reply: TxnReply, count: usize) -> Outcome {
    match reply.succeeded {
        true => Outcome::Done(Revision(reply.header.revision.0)),
        false => Outcome::Conflict(looked(reply.responses, count)),
    }
}

/// The values of the keys that were read, as many as were requested.
fn looked(replies: Vec<OperationReply>, count: usize) -> Vec<Option<Versioned>> {
    let mut found: Vec<_> = replies
        .into_iter()
        .map(|reply| {
            let row = reply.response_range?.kvs.into_iter().next()?;
            Some(Versioned { value: row.value.0, revision: Revision(row.mod_revision.0) })
        })
        .collect();
    found.resize(count, None);
    found
}
