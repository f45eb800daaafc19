//! Moves on the streams of the data path, of which the adversary hears every byte.

use std::net::SocketAddr;
use std::time::Duration;

use afs_datapath::capability::{Access, ByteRange, Capability, Generation, Group, HolderId, Secret};
use afs_datapath::session::{self, Error, Failure, Handle, Patience, Security, StoreDescription};
use afs_env::io::{AsyncReadExt, AsyncWriteExt};
use afs_env::{ByteStream, EnvExt};
use afs_sim::StreamConfig;
use afs_wire::fs::{CapabilityAccess, CapabilityRequest, CapabilityRequests, GetCapability, OWN_DRIVE};
use afs_wire::ids::{DataVersion, Fid};
use afs_wire::rpc::ServiceId;
use afs_wire::xdr::Decode;
use bytes::Bytes;

use super::super::content;
use super::impersonation::connection;
use super::{Adversary, server};

/// A file in one version.
type Version = (Fid, DataVersion);

impl Adversary {
    /// Opens streams on which nothing follows, or only a part of a first frame.
    pub(super) async fn open_streams(&mut self) {
        for _ in 0..8 {
            let Some(mut stream) = self.stream_to_drive().await else { return };
            // The start of a Hello, of TLS, and of nothing that exists.
            let said: &[u8] = match self.rng.below(4) {
                0 => &[],
                1 => &[0, 0, 0, 40, 0, 0, 0, 1],
                2 => &[22, 3, 1],
                _ => b"GET / HTTP/1.1\r\n",
            };
            let _ = self.env.timeout(PATIENCE, stream.write_all(said)).await;
            if self.open_streams.len() == OPEN_MAX {
                self.open_streams.pop_front();
            }
            self.open_streams.push_back(stream);
        }
    }

    /// Sends all that a client sent, again, on a stream of its own: its capabilities with their proofs, and its requests.
    pub(super) async fn replay_stream(&mut self) {
        let heard = self.streams.conversations();
        let Some(bytes) = self.rng.pick(&heard).cloned() else { return };
        let Some(mut stream) = self.stream_to_drive().await else { return };
        let _ = self.env.timeout(PATIENCE, stream.write_all(&bytes)).await;
        let mut told = Vec::new();
        while told.len() < TOLD_MAX
            && let Ok(Ok(count)) = self.env.timeout(PATIENCE, stream.read_buf(&mut told)).await
            && count > 0
        {}
        if content::is_in(&told) {
            self.learned("bytes of a file by a recorded capability");
        }
        self.env.sleep(Duration::from_secs(bytes.len() as u64) / super::BYTES_PER_SECOND).await;
    }

    /// Presents capabilities that no file server has sealed: those of others with a made-up secret, and one of its own, as
    /// far as it gets any, that says more than was sealed.
    pub(super) async fn forge_capability(&mut self) {
        let Some(version) = self.rng.pick(&self.streams.asked_for()).copied() else { return };
        let heard = self.streams.presented();
        let forged = match self.own_capability(version.0).await {
            Some((own, secret)) => (self.altered(own), secret),
            None => {
                let Some(other) = self.rng.pick(&heard).copied() else { return };
                let mut secret = [0; 32];
                self.rng.fill(&mut secret);
                (if self.rng.chance(500_000) { other } else { self.altered(other) }, Secret::new(secret))
            }
        };
        let Some(stream) = self.stream_to_drive().await else { return };
        let opening =
            session::Client::open(self.env.clone(), stream, Security::Clear, Patience::default()).await;
        let Ok(session) = opening else { return };
        let Ok(handle) = session.present(&forged.0, &forged.1) else { return };
        self.try_read(&session, &handle, version).await;
        self.try_store(&session, &handle, version.0).await;
    }

    /// Resets, stalls or silences the streams of a client for some seconds.
    pub(super) async fn cut_streams(&mut self) {
        let machines: Vec<_> = self.machines.iter().copied().zip(self.victims.iter().copied()).collect();
        let Some((victim, address)) = self.rng.pick(&machines).copied() else { return };
        let usual = StreamConfig::default();
        let cut = match self.rng.below(3) {
            0 => StreamConfig { reset_per_million: 300_000, ..usual },
            1 => StreamConfig { silence_per_million: 300_000, ..usual },
            _ => StreamConfig { stall_per_million: 500_000, stall_max: Duration::from_secs(15), ..usual },
        };
        self.set_streams_of(victim, cut);
        self.listen();
        self.env.sleep(self.rng.duration(Duration::from_secs(1), Duration::from_secs(6))).await;
        self.set_streams_of(victim, usual);
        // What went over streams of that client meanwhile went through what was done to them.
        let passed = self.listen_to_streams();
        let of_victim = passed.iter().filter(|seen| [seen.from.ip(), seen.to.ip()].contains(&address.ip()));
        self.account.reaches(of_victim.count() as u64);
    }

    fn set_streams_of(&self, client: afs_sim::NodeId, config: StreamConfig) {
        self.world.set_streams_between(client, self.server, config);
        self.world.set_streams_between(self.server, client, config);
    }

    /// Opens a stream, within the budget of packets.
    async fn stream_to_drive(&mut self) -> Option<Box<dyn ByteStream>> {
        self.env.sleep(Duration::from_secs(4) / super::PACKETS_PER_SECOND).await;
        let host = self.addresses.next_v4().clone();
        let stream = self.env.timeout(PATIENCE, host.env.connect(drive())).await.ok()?.ok()?;
        self.account.opens(host.ip);
        Some(stream)
    }

    /// A capability that the server gives to an anonymous caller, for a file or else for all files of its directory, with its
    /// secret.
    async fn own_capability(&mut self, fid: Fid) -> Option<(Capability, Secret)> {
        let rx = self.any_fake_client()?;
        let files = connection(&rx, server(7000), ServiceId::FILE);
        let access = CapabilityAccess::READ;
        let wanted = [fid, self.root].map(|fid| CapabilityRequest { fid, access, drive: OWN_DRIVE });
        let call = GetCapability { wanted: CapabilityRequests::first_of(wanted) };
        let outcomes = files.call(&call).await.ok()?.outcomes.into_iter();
        let given = outcomes.filter_map(|outcome| outcome.into_capability().ok()).next()?;
        if self.invariants.keeps_files_secret() {
            self.learned("a capability for a file that it may not read");
        }
        Some((Capability::from_bytes(&given.arguments).ok()?, Secret::new(given.secret.0)))
    }

    /// The same capability with one field that permits more.
    fn altered(&mut self, capability: Capability) -> Capability {
        let Capability { access, expires, generation, holder, .. } = capability;
        let all = Access::READ | Access::WRITE | Access::ANY_MODE;
        match self.rng.below(5) {
            0 if access != all => Capability { access: all, ..capability },
            1 => Capability { group: Group::Volume(self.root.volume), ..capability },
            2 => Capability { generation: Generation(generation.0 + 1), ..capability },
            3 => Capability { holder: HolderId(holder.0 ^ 1), ..capability },
            _ => Capability { expires: expires + 1_000_000, ..capability },
        }
    }

    async fn try_read(&self, session: &session::Client, handle: &Handle, (fid, version): Version) {
        let reading = session.read(handle, fid, ByteRange::ALL, version);
        match self.env.timeout(PATIENCE, reading).await {
            Ok(Ok(_)) => self.learned("a file's bytes by a forged capability"),
            Ok(Err(error)) => self.expect_refusal(&error),
            Err(_) => {}
        }
    }

    async fn try_store(&self, session: &session::Client, handle: &Handle, fid: Fid) {
        let bytes = Bytes::from_static(b"of the adversary");
        let Some(description) = ByteRange::at(0, bytes.len() as u64)
            .and_then(|range| StoreDescription::new(fid, u64::MAX >> 1, vec![range]))
        else {
            return;
        };
        let storing = async {
            let mut leaving = session.store(handle, &description).await?;
            leaving.put(bytes).await?;
            leaving.finish().await
        };
        match self.env.timeout(PATIENCE, storing).await {
            Ok(Ok(_)) => self.learned("a ticket by a forged capability"),
            Ok(Err(error)) => self.expect_refusal(&error),
            Err(_) => {}
        }
    }

    /// Whoever hears of a file's state by a forged capability was believed.
    fn expect_refusal(&self, error: &Error) {
        if let Error::Failed(failure) = error
            && !matches!(failure, Failure::Refused(_) | Failure::Busy)
        {
            self.learned(&format!("{failure:?} by a forged capability"));
        }
    }
}

/// Address of the server's data service.
#[must_use]
pub(super) fn drive() -> SocketAddr {
    server(7100)
}

/// How long the adversary waits for one step of the drive.
const PATIENCE: Duration = Duration::from_secs(2);
/// Streams that it keeps open.
const OPEN_MAX: usize = 128;
/// Bytes of one reply that it reads.
const TOLD_MAX: usize = 1 << 20;
