//! Peers that live and do nothing, at either end: each wait has its end.

#![allow(clippy::unwrap_used)]

use crate::kit;

use std::net::SocketAddr;
use std::time::Duration;

use afs_datapath::capability::{ByteRange, Group};
use afs_datapath::frame::{Hello, Message, RequestId, VERSION};
use afs_datapath::session::{Error, Identity, Lost, Offer, StoreDescription};
use afs_env::{EnvExt, EnvRef};
use kit::{Kit, Raw, directory, false_drive, file, range, read_all};

const STEP: Duration = Duration::from_secs(10);

/// Shows every ten seconds that the peer lives.
async fn live(raw: &mut Raw, env: &EnvRef, steps: u32) {
    for _ in 0..steps {
        env.sleep(STEP).await;
        raw.send(&Message::Alive).await;
    }
}

/// A client that asks for much, reads nothing, and lives: the drive gives it up because the stream does not move.
#[test]
fn a_client_that_lives_and_takes_no_byte_is_given_up() {
    let kit = Kit::new(1);
    kit.files.add(file(2), 10 << 20);
    let (capability, secret) = kit.sealed(Group::Directory(directory(1)));
    let (mut raw, env) = (kit.raw(), kit.client_env());
    let raw = kit.run(async move {
        let (_, nonces) = raw.greet().await;
        raw.present(0, &capability, &secret, &nonces).await;
        raw.send(&read_all(1, u32::MAX)).await;
        live(&mut raw, &env, 7).await;
        raw
    });
    assert_eq!((kit.drive.counts().in_progress, kit.drive.counts().connected), (0, 0));
    drop(raw);
    kit.assert_quiet();
}

/// A drive that gives credit for a store, takes no byte of it, and lives.
#[test]
fn a_drive_that_lives_and_takes_no_byte_is_given_up() {
    let kit = Kit::new(2);
    let client = false_drive(&kit, |mut raw, env| async move { live(&mut raw, &env, 360).await });
    let (capability, secret) = kit.sealed(Group::Directory(directory(1)));
    let outcome = kit.run(async move {
        let handle = client.present(&capability, &secret).unwrap();
        let store = StoreDescription::new(file(2), 0, vec![range(0, 4 << 20)]).unwrap();
        let mut leaving = client.store(&handle, &store).await?;
        for _ in 0..4 {
            leaving.put(vec![0; 1 << 20].into()).await?;
        }
        leaving.finish().await
    });
    assert_eq!(outcome, Err(Error::Lost(Lost::Stuck)));
}

/// A drive that gives credit for what has no use for it, instead of what was asked for. Signs of that kind are no progress.
#[test]
fn a_drive_that_gives_credit_without_end_and_no_byte_is_given_up() {
    let kit = Kit::new(3);
    let client = false_drive(&kit, |mut raw, env| async move {
        for step in 0..360 {
            env.sleep(STEP).await;
            let bytes = if step % 2 == 0 { 1 } else { 0 };
            raw.send(&Message::Credit { request: RequestId(1), bytes }).await;
        }
    });
    let (capability, secret) = kit.sealed(Group::Directory(directory(1)));
    let outcome = kit.run(async move {
        let handle = client.present(&capability, &secret).unwrap();
        kit::read(&client, &handle, file(2), ByteRange::ALL).await
    });
    assert_eq!(outcome, Err(Error::Stalled));
}

/// Sends bytes one every two seconds, for a minute.
async fn trickle(raw: &mut Raw, env: &EnvRef, bytes: &[u8]) {
    for byte in &bytes[..30] {
        raw.bytes(&[*byte]).await;
        env.sleep(Duration::from_secs(2)).await;
    }
}

/// A handshake that comes a byte at a time, clear and by TLS, has ten seconds in all.
#[test]
fn a_handshake_that_trickles_is_ended() {
    let hello = Message::Hello(Hello { version: VERSION, nonce: kit::NONCE }).to_frame().to_vec();
    // A record of 16 KiB with the beginning of a ClientHello: RFC 8446, 4.1.2 and 5.1.
    let record = [&[22, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xfc, 3, 3][..], &[0; 100]].concat();
    for bytes in [hello, record] {
        let (kit, at) = (Kit::new(4), SocketAddr::from(([10, 0, 0, 1], 7006)));
        let identity = Identity::generate(&*kit.client_env()).unwrap();
        kit.serve(at, Offer::tls_or_clear(identity), kit.drive.clone());
        let (env, drive) = (kit.client_env(), kit.drive.clone());
        kit.run(async move {
            let mut raw = Raw::new(env.connect(at).await.unwrap());
            let held = drive.clone();
            env.spawn(Box::pin({
                let env = env.clone();
                async move { trickle(&mut raw, &env, &bytes).await }
            }));
            env.sleep(Duration::from_secs(8)).await;
            assert_eq!((held.counts().connected, held.counts().connections), (1, 0), "it has ten seconds");
            env.sleep(Duration::from_secs(4)).await;
            assert_eq!((held.counts().connected, held.counts().connections), (0, 0), "and no more");
        });
        kit.sim.run_for(Duration::from_secs(60));
    }
}
