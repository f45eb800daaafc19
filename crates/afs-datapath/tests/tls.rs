//! TLS over real connections: the right key, wrong keys, and peers without TLS.

#![allow(clippy::unwrap_used)]

#[path = "kit/files.rs"]
#[allow(dead_code, reason = "this test uses a part of it")]
mod files;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use afs_datapath::capability::{
    Access, ByteRange, Capability, DriveId, DriveKey, Group, KeyEpoch, Revocations,
};
use afs_datapath::session::{
    Client, Drive, DriveLimits, Fingerprint, Identity, Lost, Offer, Patience, Security, StoreDescription,
    accept,
};
use afs_env::EnvRef;
use afs_env::io::{AsyncReadExt, AsyncWriteExt};
use afs_net::System;
use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};
use files::{Files, VERSION};

fn directory(vnode: u32) -> Fid {
    Fid::new(VolumeId(1), VnodeId(vnode), Uniquifier(1))
}

fn file() -> Fid {
    Fid::new(VolumeId(1), VnodeId(2), Uniquifier(7))
}

struct Served {
    system: Arc<System>,
    env: EnvRef,
    at: SocketAddr,
    drive: Arc<Drive>,
    files: Arc<Files>,
    identity: Identity,
}

fn serve(offer: impl FnOnce(Identity) -> Offer) -> Served {
    let system = System::new().unwrap();
    let env = system.env();
    let identity = Identity::generate(&*env).unwrap();
    let files = Arc::new(Files::default());
    let key = DriveKey::generate(&*env, DriveId(1), KeyEpoch(1));
    let drive = Drive::new(key, Revocations::default(), files.clone(), DriveLimits::default());
    let listener = env.listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let at = listener.local_addr();
    env.spawn(Box::pin(accept(env.clone(), listener, offer(identity.clone()), drive.clone())));
    Served { system, env, at, drive, files, identity }
}

impl Served {
    fn open(&self, security: Security) -> Result<Client, Lost> {
        self.system.block_on(async {
            let stream = self.env.connect(self.at).await?;
            Client::open(self.env.clone(), stream, security, Patience::default()).await
        })
    }

    /// Reads and stores some megabytes.
    fn assert_works(&self, client: &Client) {
        let bytes = self.files.add(file(), 5_000_001);
        let capability = Capability {
            drive: client.drive(),
            epoch: client.epoch(),
            group: Group::File(file()),
            access: Access::READ | Access::WRITE,
            range: ByteRange::ALL,
            expires: self.env.wall().secs + 60,
            generation: self.drive.revocations.generation(Group::File(file())),
            holder: self.drive.key.holder(b"", b""),
        };
        let handle = client.present(&capability, &self.drive.key.seal(&capability)).unwrap();
        let store =
            StoreDescription::new(file(), 0, vec![ByteRange::at(0, bytes.len() as u64).unwrap()]).unwrap();
        self.system.block_on(async {
            let mut arriving = client.read(&handle, file(), ByteRange::ALL, VERSION).await.unwrap();
            let mut leaving = client.store(&handle, &store).await.unwrap();
            let mut came = Vec::new();
            while let Some(piece) = arriving.next().await.unwrap() {
                came.extend_from_slice(&piece);
                leaving.put(piece).await.unwrap();
            }
            let ticket = leaving.finish().await.unwrap();
            assert!(came == bytes && self.files.stored(ticket).1 == bytes);
        });
    }
}

#[test]
fn the_right_key_is_accepted() {
    let served = serve(Offer::tls);
    let client = served.open(Security::Tls(served.identity.fingerprint())).unwrap();
    served.assert_works(&client);
}

#[test]
fn another_key_is_refused() {
    let served = serve(Offer::tls);
    let mut wrong = served.identity.fingerprint();
    wrong.0[31] ^= 1;
    let other = Identity::generate(&*served.env).unwrap().fingerprint();
    for fingerprint in [wrong, other, Fingerprint([0; 32])] {
        let lost = served.open(Security::Tls(fingerprint)).err();
        assert!(matches!(lost, Some(Lost::Key(_))), "{lost:?}");
    }
    assert_eq!(served.drive.counts().connections, 0);
}

#[test]
fn a_client_without_tls_is_turned_away_by_a_drive_with_tls_alone() {
    let served = serve(Offer::tls);
    let lost = served.open(Security::Clear).err();
    assert!(matches!(lost, Some(Lost::Cut | Lost::Stream(_))), "{lost:?}");
}

#[test]
fn a_client_with_tls_is_turned_away_by_a_clear_drive() {
    let served = serve(|_| Offer::clear());
    let lost = served.open(Security::Tls(served.identity.fingerprint())).err();
    assert!(matches!(lost, Some(Lost::Cut | Lost::Stream(_))), "{lost:?}");
}

#[test]
fn a_drive_may_offer_both() {
    let served = serve(Offer::tls_or_clear);
    for security in [Security::Clear, Security::Tls(served.identity.fingerprint())] {
        served.assert_works(&served.open(security).unwrap());
    }
}

/// What is not TLS is not taken for a wrong key.
#[test]
fn a_peer_that_is_no_tls_server_has_no_wrong_key() {
    let system = System::new().unwrap();
    let env = system.env();
    let mut listener = env.listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let at = listener.local_addr();
    env.spawn(Box::pin(async move {
        let mut stream = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 1000]).await;
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        let _ = stream.shutdown().await;
        std::future::pending::<()>().await;
    }));
    let lost = system.block_on(async {
        let stream = env.connect(at).await.unwrap();
        let security = Security::Tls(Fingerprint([0; 32]));
        Client::open(env.clone(), stream, security, Patience::default()).await.err()
    });
    assert!(matches!(lost, Some(Lost::Tls(_))), "{lost:?}");
}
