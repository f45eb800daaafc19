//! Claimant: the key under which incoming calls are counted.

use std::net::{IpAddr, SocketAddr};

use crate::caller::Identity;

/// A host, whatever the port, and whether its caller is authenticated: anonymous callers cannot use up the limit of a
/// host's authenticated ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Claimant {
    pub(super) host: IpAddr,
    pub(super) known: bool,
}

impl Claimant {
    pub(super) fn new(peer: SocketAddr, identity: &Identity) -> Self {
        Self { host: peer.ip().to_canonical(), known: *identity != Identity::Anonymous }
    }
}
