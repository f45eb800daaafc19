//! A client's side of the data path.

use std::net::SocketAddr;
use std::sync::Arc;

use afs_datapath::capability::{ByteRange, Capability, Secret, StreamName, TicketId};
use afs_datapath::session::{self, Arriving, Error, Fingerprint, Handle, Lost, Patience, Security};
use afs_datapath::session::{Leaving, StoreDescription};
use afs_rpc::{CallError, ClientCall};
use afs_server::DataPathOptions;
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, CapabilityAccess, SetStatus};
use afs_wire::ids::{DataVersion, Fid};
use afs_wire::rpc::Request;
use afs_wire::vol::{STREAM_GRANT_MAX, StreamGrant};
use afs_wire::xdr::{Decode, Fixed};
use bytes::Bytes;

use super::{CallResult, Cell, Client, FILES, PATIENCE};

/// A connection to a cell's drive.
pub struct Path {
    pub client: Client,
    pub session: session::Client,
}

impl Cell {
    /// Opens the data path at the port of the file server, as a server does at its start. Clients use it without
    /// TLS, whose randomness is not that of the seed.
    pub fn open_data_path(&self) -> SocketAddr {
        self.open_data_path_as(options(true))
    }

    /// The same with TLS alone.
    pub fn open_data_path_with_tls(&self) -> SocketAddr {
        self.open_data_path_as(options(false))
    }

    pub fn open_data_path_as(&self, options: DataPathOptions) -> SocketAddr {
        let files = self.files().clone();
        self.sim
            .block_on(self.server, PATIENCE, async move { files.open_data_path(&options) })
            .unwrap()
            .unwrap()
    }
}

impl Client {
    /// Connects to the drive that the server tells of.
    pub fn path(&self) -> Path {
        self.try_path().unwrap()
    }

    pub fn try_path(&self) -> Result<Path, Lost> {
        let told = self.ask(fs::DataPath {}).unwrap();
        let tls = Security::Tls(Fingerprint(told.fingerprint.0));
        self.connect(&told, if told.clear { Security::Clear } else { tls })
    }

    pub fn connect(&self, told: &fs::DataPathReply, security: Security) -> Result<Path, Lost> {
        let env = self.world.env(self.node);
        let connecting = env.connect(SocketAddr::new(FILES.ip(), told.port));
        let opening = async move {
            let stream = connecting.await.map_err(Lost::from)?;
            session::Client::open(env, stream, security, Patience::default()).await
        };
        let session = self.world.block_on(self.node, PATIENCE, opening).unwrap()?;
        Ok(Path { client: self.clone(), session })
    }

    pub fn capability(&self, fid: Fid, access: CapabilityAccess) -> CallResult<fs::DriveCapability> {
        let wanted = fs::CapabilityRequest { fid, access, drive: fs::OWN_DRIVE };
        let wanted = fs::CapabilityRequests::first_of([wanted]);
        let outcome = self.ask(fs::GetCapability { wanted })?.outcomes.into_vec().remove(0);
        outcome.into_capability().map_err(CallError::Abort)
    }

    /// Why a capability is refused.
    pub fn no_capability(&self, fid: Fid, access: CapabilityAccess) -> AbortCode {
        self.capability(fid, access).unwrap_err().abort_code().unwrap()
    }

    /// Makes the bytes of a ticket a file's: all that the file then has, unless it was longer before.
    pub fn commit(&self, ticket: TicketId, fid: Fid, expected: DataVersion) -> CallResult<fs::StatusReply> {
        self.commit_as(ticket, fid, expected, (i64::MAX as u64, 0))
    }

    /// The same, truncated before and grown after.
    pub fn commit_as(
        &self,
        ticket: TicketId,
        fid: Fid,
        expected: DataVersion,
        (file_length, grown_to): (u64, u64),
    ) -> CallResult<fs::StatusReply> {
        let (staged, status) = (Fixed(ticket.0.to_be_bytes()), SetStatus::default());
        let (drives, places) = (0, 0);
        self.ask(fs::Commit { staged, fid, status, expected, file_length, grown_to, drives, places })
    }

    /// The version of a file.
    pub fn version(&self, fid: Fid) -> DataVersion {
        self.fetch_status(fid).unwrap().status.data_version
    }
}

impl Client {
    /// Makes a call that grants a stream of a volume; the call goes on.
    pub fn granted<R: Request>(&self, request: R) -> CallResult<(ClientCall, StreamGrant)> {
        let connection = self.connection::<R>();
        let work = async move {
            let mut call = connection.open(&request).await?;
            call.finish_request()?;
            let grant = call.read_opaque(STREAM_GRANT_MAX).await?;
            Ok((call, StreamGrant::from_bytes(&grant).unwrap()))
        };
        self.world.block_on(self.node, PATIENCE, work).unwrap()
    }

    /// How a call ends that granted a stream.
    pub fn end_of(&self, mut call: ClientCall) -> CallResult<()> {
        let ending = async move { call.read_to_end(0).await.map(drop) };
        self.world.block_on(self.node, PATIENCE, ending).unwrap()
    }
}

/// The stream of a grant.
pub fn stream_of(grant: &StreamGrant) -> StreamName {
    arguments(&grant.capability).group.stream().unwrap()
}

fn options(clear: bool) -> DataPathOptions {
    DataPathOptions { listen: FILES, addresses: Vec::new(), clear, minimum_size: 65_536 }
}

/// The arguments of a capability.
pub fn arguments(given: &fs::DriveCapability) -> Capability {
    Capability::from_bytes(&given.arguments).unwrap()
}

impl Path {
    fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        self.client.world.block_on(self.client.node, PATIENCE, work).unwrap()
    }

    /// Asks for a capability as the user of the connection's client, and presents it.
    pub fn handle(&self, fid: Fid, access: CapabilityAccess) -> Handle {
        self.present(&self.client.capability(fid, access).unwrap())
    }

    pub fn present(&self, given: &fs::DriveCapability) -> Handle {
        self.present_as(&arguments(given), given.secret.0)
    }

    pub fn present_as(&self, arguments: &Capability, secret: [u8; 32]) -> Handle {
        self.session.present(arguments, &Secret::new(secret)).unwrap()
    }

    /// Begins to read; the reader takes some bytes in advance and then waits.
    pub fn open(
        &self,
        handle: &Handle,
        fid: Fid,
        (start, end): (u64, u64),
        version: DataVersion,
    ) -> Result<Arriving, Error> {
        let (session, handle) = (self.session.clone(), handle.clone());
        let range = ByteRange::new(start, end).unwrap();
        self.run(async move { session.read(&handle, fid, range, version).await })
    }

    /// The next piece of a read.
    pub fn next(&self, arriving: Arriving) -> (Arriving, Result<Option<Bytes>, Error>) {
        self.run(async move {
            let mut arriving = arriving;
            let piece = arriving.next().await;
            (arriving, piece)
        })
    }

    /// The rest of a read.
    pub fn rest(&self, arriving: Arriving) -> Result<Vec<u8>, Error> {
        self.run(async move {
            let (mut arriving, mut all) = (arriving, Vec::new());
            while let Some(piece) = arriving.next().await? {
                all.extend_from_slice(&piece);
            }
            Ok(all)
        })
    }

    pub fn read(
        &self,
        handle: &Handle,
        fid: Fid,
        range: (u64, u64),
        version: DataVersion,
    ) -> Result<Vec<u8>, Error> {
        self.rest(self.open(handle, fid, range, version)?)
    }

    pub fn leave(&self, handle: &Handle, fid: Fid, ranges: &[(u64, u64)]) -> Result<Leaving, Error> {
        let ranges = ranges.iter().map(|(start, end)| ByteRange::new(*start, *end).unwrap()).collect();
        let description = StoreDescription::new(fid, i64::MAX as u64, ranges).unwrap();
        let (session, handle) = (self.session.clone(), handle.clone());
        self.run(async move { session.store(&handle, &description).await })
    }

    /// Gives bytes to the drive for ranges of a file.
    pub fn store(
        &self,
        handle: &Handle,
        fid: Fid,
        ranges: &[(u64, u64)],
        bytes: &[u8],
    ) -> Result<TicketId, Error> {
        let leaving = self.leave(handle, fid, ranges)?;
        let bytes = Bytes::copy_from_slice(bytes);
        self.run(async move {
            let mut leaving = leaving;
            leaving.put(bytes).await?;
            leaving.finish().await
        })
    }

    /// Gives some bytes and keeps the rest.
    pub fn put(&self, leaving: Leaving, bytes: Vec<u8>) -> (Leaving, Result<(), Error>) {
        self.run(async move {
            let mut leaving = leaving;
            let put = leaving.put(bytes.into()).await;
            (leaving, put)
        })
    }

    pub fn finish(&self, leaving: Leaving) -> Result<TicketId, Error> {
        self.run(async move { leaving.finish().await })
    }

    /// Sends a stream with all of these bytes.
    pub fn send_stream(&self, handle: &Handle, stream: StreamName, bytes: &[u8]) -> Result<(), Error> {
        let (session, handle, bytes) = (self.session.clone(), handle.clone(), Bytes::copy_from_slice(bytes));
        self.run(async move {
            let mut leaving = session.send_stream(&handle, stream).await?;
            leaving.put(bytes).await?;
            leaving.finish().await.map(drop)
        })
    }

    /// Reads a stream to its end.
    pub fn receive_stream(&self, handle: &Handle, stream: StreamName) -> Result<Vec<u8>, Error> {
        let (session, handle) = (self.session.clone(), handle.clone());
        let arriving = self.run(async move { session.receive_stream(&handle, stream).await })?;
        self.rest(arriving)
    }

    /// Whether the connection lives.
    pub fn lives(&self) -> bool {
        self.session.lost().is_none()
    }
}

/// Reading, writing, both.
pub const READ: CapabilityAccess = CapabilityAccess::READ;
pub const WRITE: CapabilityAccess = CapabilityAccess::WRITE;
pub const BOTH: CapabilityAccess = CapabilityAccess(3);
