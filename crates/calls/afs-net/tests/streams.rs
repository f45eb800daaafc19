//! Byte streams over the kernel's TCP.

// Tests and their helpers may panic.
#![allow(clippy::unwrap_used)]

use crate::stream_rules;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use afs_net::System;
use afs_rpc::{BoxFuture, ByteStream};
use socket2::SockRef;
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

#[test]
fn a_stream_in_small_segments_has_them_in_both_directions() {
    const SEGMENT: u32 = 1220;
    let system = system();
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let at = listener.local_addr().unwrap();
    let largest = |connecting: BoxFuture<'static, io::Result<Box<dyn ByteStream>>>| {
        let stream = system.block_on(async move { connecting.await.unwrap() });
        let (peer, from) = listener.accept().unwrap();
        assert_eq!(from, stream.local_addr());
        SockRef::from(&peer).tcp_mss().unwrap()
    };
    assert!(largest(system.env().connect_in_segments(at, SEGMENT)) <= SEGMENT);
    assert!(largest(system.env().connect(at)) > SEGMENT);
}
