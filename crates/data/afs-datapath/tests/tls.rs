//! TLS over real connections: the right key, wrong keys, and peers without TLS.

#![allow(clippy::unwrap_used)]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use crate::kit::{Files, VERSION};
use afs_datapath::capability::{
    Access, ByteRange, Capability, DriveId, DriveKey, Group, KeyEpoch, Revocations,
};
use afs_datapath::session::{
    Client, Drive, DriveLimits, Error, Fingerprint, Handle, Identity, Lost, Offer, Patience, Security,
    StoreDescription, accept,
};
use afs_env::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, split};
use afs_env::{ByteStream, EnvRef};
use afs_net::System;
use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};

fn file() -> Fid {
    Fid::new(VolumeId(1), VnodeId(2), Uniquifier(7))
}

const LEN: usize = 5_000_001;

fn store_of(len: usize) -> StoreDescription {
    StoreDescription::new(file(), 0, vec![ByteRange::at(0, len as u64).unwrap()]).unwrap()
}

/// The byte in which a bit is changed of what each end sends.
#[derive(Clone, Copy, Default)]
struct Changed {
    of_client: Option<usize>,
    of_drive: Option<usize>,
}

type Stream = Box<dyn ByteStream>;

/// Passes on what comes, with one bit changed.
async fn pass(mut from: ReadHalf<Stream>, mut to: WriteHalf<Stream>, changed: Option<usize>) {
    let (mut buffer, mut passed) = (vec![0; 16 << 10], 0);
    while let Ok(len @ 1..) = from.read(&mut buffer).await {
        let place = changed.and_then(|at| at.checked_sub(passed)).filter(|place| *place < len);
        if let Some(place) = place {
            buffer[place] ^= 1;
        }
        passed += len;
        if to.write_all(&buffer[..len]).await.is_err() {
            break;
        }
    }
    let _ = to.shutdown().await;
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

    /// A client whose connection passes through an attacker that flips one bit.
    fn open_by(&self, changed: Changed) -> Result<Client, Lost> {
        let mut listener = self.env.listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let (between, env, at) = (listener.local_addr(), self.env.clone(), self.at);
        self.env.spawn(Box::pin(async move {
            let (client, drive) = (listener.accept().await.unwrap(), env.connect(at).await.unwrap());
            let ((from_client, to_client), (from_drive, to_drive)) = (split(client), split(drive));
            env.spawn(Box::pin(pass(from_client, to_drive, changed.of_client)));
            pass(from_drive, to_client, changed.of_drive).await;
        }));
        self.system.block_on(async {
            let stream = self.env.connect(between).await?;
            let security = Security::Tls(self.identity.fingerprint());
            Client::open(self.env.clone(), stream, security, Patience::default()).await
        })
    }

    fn present(&self, client: &Client) -> Handle {
        let capability = Capability {
            drive: client.drive(),
            epoch: client.epoch(),
            group: Group::File(file()),
            access: Access::READ | Access::WRITE,
            range: ByteRange::ALL,
            expires: self.env.wall().secs + 60,
            generation: self.drive.revocations.generation(Group::File(file())),
            holder: self.drive.key().holder(b"", b""),
        };
        client.present(&capability, &self.drive.key().seal(&capability)).unwrap()
    }

    /// Reads and stores some megabytes.
    fn assert_works(&self, client: &Client) {
        let bytes = self.files.add(file(), LEN);
        let (handle, store) = (self.present(client), store_of(LEN));
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

#[test]
fn somebody_between_who_changes_nothing_is_not_noticed() {
    let served = serve(Offer::tls);
    served.assert_works(&served.open_by(Changed::default()).unwrap());
}

/// In the server's random number, and in what it says after the keys are agreed on.
#[test]
fn a_bit_of_the_handshake_that_is_changed_ends_it() {
    for at in [20, 200] {
        let served = serve(Offer::tls);
        let lost = served.open_by(Changed { of_drive: Some(at), ..Changed::default() }).err();
        assert!(matches!(lost, Some(Lost::Tls(_))), "{at}: {lost:?}");
        assert_eq!(served.drive.counts().connections, 0);
    }
}

/// A reader has the right bytes up to there, and an error.
#[test]
fn a_bit_of_a_read_that_is_changed_ends_the_connection() {
    for at in [100_000, 1_234_567] {
        let served = serve(Offer::tls);
        let bytes = served.files.add(file(), LEN);
        let client = served.open_by(Changed { of_drive: Some(at), ..Changed::default() }).unwrap();
        let handle = served.present(&client);
        let (came, error) = served.system.block_on(async {
            let mut came = Vec::new();
            let mut arriving = match client.read(&handle, file(), ByteRange::ALL, VERSION).await {
                Ok(arriving) => arriving,
                Err(error) => return (came, error),
            };
            loop {
                match arriving.next().await {
                    Ok(piece) => came.extend_from_slice(&piece.expect("a changed bit was not noticed")),
                    Err(error) => return (came, error),
                }
            }
        });
        assert!(matches!(error, Error::Lost(Lost::Tls(_))), "{at}: {error:?}");
        assert!(came.len() < at && bytes.starts_with(&came), "{at}: {} bytes", came.len());
    }
}

/// Nothing is stored.
#[test]
fn a_bit_of_a_store_that_is_changed_ends_the_connection() {
    let served = serve(Offer::tls);
    let client = served.open_by(Changed { of_client: Some(1_234_567), ..Changed::default() }).unwrap();
    let handle = served.present(&client);
    let outcome = served.system.block_on(async {
        let mut leaving = client.store(&handle, &store_of(LEN)).await?;
        leaving.put(vec![1; LEN].into()).await?;
        leaving.finish().await
    });
    assert!(matches!(outcome, Err(Error::Lost(_))), "{outcome:?}");
    assert!(served.files.all_stored().is_empty() && served.drive.counts().stores == 0);
}
