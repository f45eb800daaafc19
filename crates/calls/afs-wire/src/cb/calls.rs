//! Calls of file servers to clients.

use super::{InterfaceAddr, SERVICE};
use crate::fs::{Capabilities, Fids, LeaseId, Promises};
use crate::ids::{Fid, Uuid};
use crate::rpc::Nothing;

calls! {
    service SERVICE;

    /// Breaks promises. A fid with vnode 0 breaks all of its volume. The list of promises is normally empty.
    204 "CallBack" CallBack { fids: Fids, callbacks: Promises } -> Nothing;

    /// Drops every promise of the calling server; for clients without a UUID.
    205 "InitCallBackState" InitCallBackState {} -> Nothing;

    /// Checks that the client is alive.
    206 "Probe" Probe {} -> Nothing;

    /// Defined, but implemented by no client.
    211 "InitCallBackState2" InitCallBackState2 {} -> InterfaceAddrReply { addresses: InterfaceAddr };

    /// Reads identity and addresses; for clients that do not know [`TellMeAboutYourself`].
    212 "WhoAreYou" WhoAreYou {} -> InterfaceAddrReply;

    /// Drops every promise of the server with this UUID.
    213 "InitCallBackState3" InitCallBackState3 { server: Uuid } -> Nothing;

    /// Checks that the client has this UUID; if not, it aborts with 1.
    214 "ProbeUuid" ProbeUuid { client: Uuid } -> Nothing;

    /// Andrew's own, made to holders of leases alone: some other client needs the directory. The reply leaves when the client
    /// has sent all that it holds of the lease, and decides nothing more under it. A lease that the client does not know is
    /// one that it does not hold.
    0x414E_4416 "RecallLease" RecallLease { dir: Fid, lease: LeaseId } -> Nothing;

    /// Reads identity, addresses and capabilities.
    65538 "TellMeAboutYourself" TellMeAboutYourself {}
        -> TellMeAboutYourselfReply { addresses: InterfaceAddr, capabilities: Capabilities };
}
