//! Dispatch table of a service: opcode, arguments, handler.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use afs_wire::error::AbortCode;
use afs_wire::rpc::{self, Opcode, Request, ServiceId, Streamed};

use crate::BoxFuture;
use crate::caller::Caller;
use crate::error::CallError;
use crate::server::{ServerCall, Service};

type Row<S> = Box<dyn Fn(Arc<S>, ServerCall) -> BoxFuture<'static, ()> + Send + Sync>;

/// A [`Service`] made of handlers for each opcode over a shared state `S`.
///
/// It does what is common to all services: the request is read within [`Limits::request`](crate::Limits::request) and
/// decoded, else the call is aborted with `RXGEN_SS_UNMARSHAL` (-453); an opcode that is not in the table is aborted
/// with `RXGEN_OPCODE` (-455); a handler's error becomes the abort code; its value is encoded as the reply. Source:
/// `docs/protocol/rx.md` "14. XDR and rxgen conventions".
pub struct Table<S> {
    id: ServiceId,
    state: Arc<S>,
    rows: BTreeMap<Opcode, Row<S>>,
}

impl<S: Send + Sync + 'static> Table<S> {
    /// An empty table: every opcode is unknown.
    pub fn new(id: ServiceId, state: Arc<S>) -> Self {
        Self { id, state, rows: BTreeMap::new() }
    }

    /// Adds a handler of requests `R`, whose value is the reply.
    #[must_use]
    pub fn call<R, H, F, E>(mut self, handler: H) -> Self
    where
        R: Request,
        H: Fn(Arc<S>, Caller, R) -> F + Send + Sync + 'static,
        F: Future<Output = Result<R::Reply, E>> + Send + 'static,
        E: Into<AbortCode> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let row: Row<S> =
            Box::new(move |state, call| Box::pin(answer::<S, R, H, F, E>(handler.clone(), state, call)));
        self.rows.insert(Opcode(R::OPCODE), row);
        self
    }

    /// Adds a handler that is called after the arguments of a split call have been read: it moves the raw bytes and
    /// writes or aborts the reply itself.
    #[must_use]
    pub fn streamed<R, H, F>(mut self, handler: H) -> Self
    where
        R: Streamed,
        H: Fn(Arc<S>, ServerCall, R) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let row: Row<S> = Box::new(move |state, call| {
            Box::pin(dispatch_streamed::<S, R, H, F>(handler.clone(), state, call))
        });
        self.rows.insert(Opcode(R::OPCODE), row);
        self
    }

    /// Adds an abort of `opcode`, without decoding the arguments.
    #[must_use]
    pub fn refuse(mut self, opcode: Opcode, code: AbortCode) -> Self {
        let row: Row<S> = Box::new(move |_, call: ServerCall| Box::pin(async move { call.abort(code) }));
        self.rows.insert(opcode, row);
        self
    }
}

impl<S: Send + Sync + 'static> Service for Table<S> {
    fn id(&self) -> ServiceId {
        self.id
    }

    fn serve(self: Arc<Self>, mut call: ServerCall) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            match call.read_opcode().await {
                Ok(opcode) => match self.rows.get(&opcode) {
                    Some(row) => row(self.state.clone(), call).await,
                    None => call.abort(AbortCode::RXGEN_OPCODE),
                },
                Err(error) => refuse(call, &error),
            }
        })
    }
}

async fn answer<S, R, H, F, E>(handler: Arc<H>, state: Arc<S>, mut call: ServerCall)
where
    R: Request,
    H: Fn(Arc<S>, Caller, R) -> F,
    F: Future<Output = Result<R::Reply, E>>,
    E: Into<AbortCode>,
{
    let limit = call.rx().limits().request;
    let request = match call.read_to_end(limit).await {
        Ok(arguments) => rpc::decode_arguments::<R>(&arguments).map_err(CallError::from),
        Err(error) => Err(error),
    };
    let request = match request {
        Ok(request) => request,
        Err(error) => return refuse(call, &error),
    };
    match handler(state, call.caller().clone(), request).await {
        // If the reply cannot be written, the client is unreachable.
        Ok(reply) => drop(call.reply(&reply).await),
        Err(code) => call.abort(code.into()),
    }
}

async fn dispatch_streamed<S, R, H, F>(handler: Arc<H>, state: Arc<S>, mut call: ServerCall)
where
    R: Streamed,
    H: Fn(Arc<S>, ServerCall, R) -> F,
    F: Future<Output = ()>,
{
    match call.read_arguments::<R>(R::HEAD_LEN - 4).await {
        Ok(request) => handler(state, call, request).await,
        Err(error) => refuse(call, &error),
    }
}

/// Aborts a call whose request could not be read. Without effect on one that is over.
fn refuse(call: ServerCall, error: &CallError) {
    let code = match error {
        CallError::Decode(_) | CallError::Ended | CallError::TooLong { .. } => AbortCode::RXGEN_SS_UNMARSHAL,
        _ => AbortCode::RX_CALL_DEAD,
    };
    call.abort(code);
}
