//! Conformance tests of byte streams: `afs-net` and `afs-sim` run the same rules.

use std::future::{Future, poll_fn};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::Poll;

use afs_env::future::join;
use afs_env::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use afs_env::{ByteListener, ByteStream, EnvExt, EnvRef};

type Stream = Box<dyn ByteStream>;

/// The environments of two hosts: one that listens and one that connects, perhaps the same.
#[derive(Clone)]
pub struct Hosts {
    pub server: EnvRef,
    pub client: EnvRef,
    /// An address of the server, with port 0.
    pub at: SocketAddr,
}

impl Hosts {
    fn listen(&self) -> Box<dyn ByteListener> {
        self.server.listen(self.at).unwrap()
    }

    /// A connection: the client's end, then the server's.
    async fn pair(&self) -> (Stream, Stream) {
        let mut listener = self.listen();
        let connecting = self.client.connect(listener.local_addr());
        let (client, server) = join(connecting, listener.accept()).await;
        (client.unwrap(), server.unwrap())
    }
}

/// The bytes at `from` of a sequence in which no two near pieces are equal.
pub fn pattern(from: usize, len: usize) -> Vec<u8> {
    (from..from + len).map(|at| (at ^ (at >> 8).wrapping_mul(31) ^ (at >> 16)) as u8).collect()
}

/// A test for each rule: `$hosts` creates the hosts, `$run` runs a rule on them to its end.
macro_rules! stream_rules {
    ($hosts:expr, $run:expr) => {
        stream_rules! { @each $hosts, $run;
            the_ends_know_their_addresses
            bytes_arrive_whole_in_both_directions_at_once
            a_shut_down_direction_ends_and_the_other_goes_on
            a_dropped_stream_still_sends_what_was_written
            a_writer_waits_for_a_reader
            data_unread_when_dropped_is_a_reset
            data_after_a_drop_is_answered_with_a_reset
            nothing_listens_is_refused
            an_address_has_one_listener
            an_end_of_the_listener_resets_only_what_was_not_accepted
        }
    };
    (@each $hosts:expr, $run:expr; $($name:ident)*) => {
        $(#[test]
        fn $name() {
            let hosts = $hosts;
            $run(&hosts, Box::pin(stream_rules::$name(stream_rules::Hosts::from(&hosts))));
        })*
    };
}
pub(crate) use stream_rules;

pub async fn the_ends_know_their_addresses(hosts: Hosts) {
    let (client, server) = hosts.pair().await;
    assert_eq!(client.local_addr(), server.peer_addr());
    assert_eq!(client.peer_addr(), server.local_addr());
    assert_eq!(server.local_addr().ip(), hosts.at.ip());
}

pub async fn bytes_arrive_whole_in_both_directions_at_once(hosts: Hosts) {
    let (client, server) = hosts.pair().await;
    join(exchange(client, 0, 1_000_000), exchange(server, 1_000_000, 0)).await;
}

/// Sends its million bytes while it reads the peer's.
async fn exchange(stream: Stream, own: usize, others: usize) {
    let (mut reading, mut writing) = afs_env::io::split(stream);
    let (mut got, sent) = (Vec::new(), pattern(own, 1_000_000));
    join(
        async {
            writing.write_all(&sent).await.unwrap();
            writing.shutdown().await.unwrap();
        },
        async { reading.read_to_end(&mut got).await.unwrap() },
    )
    .await;
    assert!(got == pattern(others, 1_000_000), "{} bytes came", got.len());
}

pub async fn a_shut_down_direction_ends_and_the_other_goes_on(hosts: Hosts) {
    let (mut client, mut server) = hosts.pair().await;
    client.write_all(b"question").await.unwrap();
    client.shutdown().await.unwrap();
    let mut got = Vec::new();
    server.read_to_end(&mut got).await.unwrap();
    assert_eq!(got, b"question");
    server.write_all(b"answer").await.unwrap();
    drop(server);
    let mut got = Vec::new();
    client.read_to_end(&mut got).await.unwrap();
    assert_eq!(got, b"answer");
    assert_eq!(client.write_all(b"more").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
}

pub async fn a_dropped_stream_still_sends_what_was_written(hosts: Hosts) {
    let (mut client, mut server) = hosts.pair().await;
    let sent = fill(&mut client).await;
    drop(client);
    let mut got = Vec::new();
    server.read_to_end(&mut got).await.unwrap();
    assert!(got == vec![7; sent], "{} of {sent} bytes came", got.len());
}

pub async fn a_writer_waits_for_a_reader(hosts: Hosts) {
    let (mut client, server) = hosts.pair().await;
    let sent = fill(&mut client).await;
    assert!(sent < 64 << 20, "{sent} bytes were buffered");
    drop(server);
}

/// Writes until there is no more room.
async fn fill(stream: &mut Stream) -> usize {
    let (piece, mut sent) = (vec![7; 1 << 20], 0);
    poll_fn(|cx| {
        while let Poll::Ready(written) = Pin::new(&mut *stream).poll_write(cx, &piece) {
            sent += written.unwrap();
        }
        Poll::Ready(())
    })
    .await;
    sent
}

pub async fn data_unread_when_dropped_is_a_reset(hosts: Hosts) {
    let (mut client, mut server) = hosts.pair().await;
    client.write_all(b"hear me").await.unwrap();
    // The first byte has arrived, and with it the rest.
    assert_eq!(server.read_u8().await.unwrap(), b'h');
    drop(server);
    let mut got = Vec::new();
    assert_eq!(client.read_to_end(&mut got).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

pub async fn data_after_a_drop_is_answered_with_a_reset(hosts: Hosts) {
    let (mut client, server) = hosts.pair().await;
    drop(server);
    assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 0);
    let failed = loop {
        if let Err(error) = client.write_all(&[0; 4096]).await {
            break error.kind();
        }
        hosts.client.sleep(std::time::Duration::from_millis(1)).await;
    };
    assert!(matches!(failed, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{failed}");
}

pub async fn nothing_listens_is_refused(hosts: Hosts) {
    let listener = hosts.listen();
    let at = listener.local_addr();
    drop(listener);
    let refused = hosts.client.connect(at).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

pub async fn an_address_has_one_listener(hosts: Hosts) {
    let listener = hosts.listen();
    let second = hosts.server.listen(listener.local_addr()).err().unwrap();
    assert_eq!(second.kind(), ErrorKind::AddrInUse);
}

pub async fn an_end_of_the_listener_resets_only_what_was_not_accepted(hosts: Hosts) {
    let mut listener = hosts.listen();
    let at = listener.local_addr();
    let (first, accepted) = join(hosts.client.connect(at), listener.accept()).await;
    let (mut first, mut accepted) = (first.unwrap(), accepted.unwrap());
    let mut second = hosts.client.connect(at).await.unwrap();
    // After this byte the second connection has arrived at the listener, too.
    first.write_all(b"x").await.unwrap();
    accepted.read_u8().await.unwrap();
    hosts.client.sleep(std::time::Duration::from_millis(20)).await;
    drop(listener);
    assert_eq!(second.read(&mut [0; 8]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    accepted.write_all(b"y").await.unwrap();
    assert_eq!(first.read_u8().await.unwrap(), b'y');
}

pub type Rule = Pin<Box<dyn Future<Output = ()> + Send>>;
