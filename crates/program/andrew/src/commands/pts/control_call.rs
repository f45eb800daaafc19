//! Calls to the services of the cell that runs here, as its owner.

use afs_cell::control::{ControlClient, ControlReply, ControlRequest};
use afs_wire::error::AbortCode;
use afs_wire::rpc::{self, Request};

/// Why a call has no reply.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The service refused with this code.
    Code(AbortCode),
    /// The call did not reach the service: one line for the user.
    NoReply(String),
}

/// A call to a service of the cell that runs here, as its owner.
pub(super) fn through_control<R: Request>(
    control: &mut ControlClient,
    request: &R,
) -> Result<R::Reply, Failure> {
    let question = ControlRequest::Call { service: R::SERVICE.0, call: rpc::encode_call(request) };
    match control.ask(&question) {
        Ok(ControlReply::Done(reply)) => rpc::decode_reply::<R>(&reply)
            .map_err(|e| Failure::NoReply(format!("the reply cannot be decoded: {e}"))),
        Ok(ControlReply::Aborted(code)) => Err(Failure::Code(AbortCode(code))),
        Ok(ControlReply::Refused(line)) => Err(Failure::NoReply(line)),
        Err(error) => Err(Failure::NoReply(format!("the cell does not reply: {error}"))),
    }
}
