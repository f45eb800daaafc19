//! Drives whose program is older: it speaks an earlier version of the protocol, and says goodbye to a later one.

use std::net::SocketAddr;

use afs_datapath::frame::{
    BOUND_VERSION, CHUNKS_VERSION, COLLECTING_VERSION, Decoder, Event, Goodbye, Message, STAGING_VERSION,
};
use afs_env::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use afs_rpc::{ByteStream, EnvRef};
use bytes::BytesMut;

use super::*;

/// A gate before a drive, which lets clients through that say a version up to the latest.
pub fn gate(env: &EnvRef, at: SocketAddr, behind: SocketAddr, latest: u32) {
    let (mut listener, env) = (env.listen(at).unwrap(), env.clone());
    env.clone().spawn(Box::pin(async move {
        while let Ok(stream) = listener.accept().await {
            env.spawn(Box::pin(pass(env.clone(), stream, behind, latest)));
        }
    }));
}

async fn pass(env: EnvRef, mut stream: Box<dyn ByteStream>, behind: SocketAddr, latest: u32) {
    let (mut received, mut said) = (BytesMut::new(), None);
    while said.is_none() {
        if stream.read_buf(&mut received).await.unwrap_or(0) == 0 {
            return;
        }
        // The frame is seen from its beginning each time, until all of it has come.
        if let Ok(Some(Event::Message(Message::Hello(hello)))) =
            Decoder::default().next(&mut received.clone())
        {
            said = Some(hello.version);
        }
    }
    if said > Some(latest) {
        _ = stream.write_all(&Message::Goodbye(Goodbye::Version).to_frame()).await;
        return;
    }
    let mut drive = env.connect(behind).await.unwrap();
    drive.write_all(&received).await.unwrap();
    let ((from_client, to_client), (from_drive, to_drive)) = (split(stream), split(drive));
    env.spawn(Box::pin(pump(from_drive, to_client)));
    pump(from_client, to_drive).await;
}

async fn pump(mut from: impl AsyncRead + Send + Unpin, mut to: impl AsyncWrite + Send + Unpin) {
    // Otherwise it moves 64 bytes at a time.
    let mut bytes = BytesMut::with_capacity(64 << 10);
    while from.read_buf(&mut bytes).await.is_ok_and(|count| count > 0) {
        if to.write_all(&bytes).await.is_err() {
            return;
        }
        bytes.clear();
    }
    _ = to.shutdown().await;
}

/// The file server uses a drive of each version, and clients go there for what it can do.
#[test]
fn an_older_drive_is_used_for_what_it_can_do() {
    let (at_drives, commanded) = (DataRoute::Drives, DataRoute::Commanded);
    for (latest, route, reads, stores) in [
        (CHUNKS_VERSION, at_drives, false, false),
        (BOUND_VERSION, at_drives, true, false),
        (STAGING_VERSION, at_drives, true, true),
        (STAGING_VERSION, commanded, true, false),
        (COLLECTING_VERSION, commanded, true, true),
    ] {
        let scene = Scene::with_older_drive(2, latest);
        scene.set_route(route);
        let big = pattern(3 * MIB + 9, 7);
        scene.put("big", big.clone());
        let client = scene.warm(2);
        let here = client.clone();
        scene.cell.on(&client, async move { here.put("first", &pattern(MIB, 3)).await.unwrap() });
        scene.cell.sim.run_for(OPENING);
        let before = client.venus.counters();
        assert!(scene.get(&client, "big").unwrap() == big, "version {latest}");
        let (here, content) = (client.clone(), big.clone());
        scene.cell.on(&client, async move { here.put("own", &content).await.unwrap() });
        let after = client.venus.counters();
        let at_drive = (
            after.drive_bytes_fetched > before.drive_bytes_fetched,
            after.drive_bytes_stored > before.drive_bytes_stored,
        );
        assert_eq!(at_drive, (reads, stores), "version {latest}, {route:?}: {:?}", after.drive_fallbacks);
        assert_eq!(fallbacks(&client, "no_room"), 0, "no room is given where it cannot be used");
        let other = scene.cell.client(3);
        assert!(scene.get(&other, "own").unwrap() == big, "version {latest}");
    }
}
