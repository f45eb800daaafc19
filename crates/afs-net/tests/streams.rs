//! Byte streams over the kernel's TCP.

// Tests and their helpers may panic.
#![allow(clippy::unwrap_used)]

use crate::stream_rules;

use std::net::SocketAddr;
use std::sync::Arc;

use afs_net::System;
use stream_rules::{Hosts, Rule, stream_rules};

impl From<&Arc<System>> for Hosts {
    fn from(system: &Arc<System>) -> Self {
        let at = SocketAddr::from(([127, 0, 0, 1], 0));
        Self { server: system.env(), client: system.env(), at }
    }
}

fn system() -> Arc<System> {
    System::with_workers(2).unwrap()
}

fn run(system: &Arc<System>, rule: Rule) {
    system.block_on(rule);
}

stream_rules! { system(), run }
