//! Claimant: the key under which incoming calls are counted.

use std::net::SocketAddr;

use afs_env::admission::{Class, Origin};

use crate::caller::Identity;

/// A host, whatever the port, and whether its caller is authenticated: anonymous callers cannot use up the limit of a
/// host's authenticated ones. Rx has validated the address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Claimant {
    pub(super) origin: Origin,
    pub(super) class: Class,
}

impl Claimant {
    pub(super) fn new(peer: SocketAddr, identity: &Identity) -> Self {
        let class = if *identity == Identity::Anonymous { Class::Known } else { Class::Proven };
        Self { origin: Origin::of(peer.ip()), class }
    }
}
