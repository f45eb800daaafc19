//! Processor time of the server for reads and stores by its own data path: what the bytes of a server-integrated disk (SID of
//! Gibson et al. 1997) cost here.

use std::sync::Arc;

use afs_datapath::addresses;
use afs_datapath::capability::{ByteRange, Capability, Secret};
use afs_datapath::session::{Client, Fingerprint, Handle, Patience, Security, StoreDescription};
use afs_rpc::CallError;
use afs_wire::error::AbortCode;
use afs_wire::fs::{
    ANY_VERSION, CapabilityAccess, CapabilityRequest, CapabilityRequests, Commit, DataPath, FetchStatus,
    GetCapability, OWN_DRIVE, SetStatus,
};
use afs_wire::ids::{DataVersion, Fid};
use afs_wire::xdr::{Decode, Fixed};
use bytes::Bytes;

use super::Target;
use super::costs::{Costs, Files, Kind, SIZES, files};
use super::error::{LoadError, failed};
use crate::measured_costs::MeasuredCosts;

/// Names of the costs of a read and of a store with its Commit.
const PATH_READ: &str = "read by the data path";
/// The same of a store.
const PATH_STORE: &str = "store by the data path";

/// Bytes that are given to a store at a time.
const PIECE: usize = 256 << 10;

impl Costs<'_> {
    /// Adds reads and stores by the data path. Adds nothing where the server has none.
    ///
    /// # Errors
    /// The first request that fails ends the measurement; files may then be left behind, named `load-N`.
    pub async fn add_path(&self, costs: &mut MeasuredCosts) -> Result<(), LoadError> {
        for bytes in SIZES.into_iter().filter(|bytes| *bytes > 0) {
            let files = files(self.calls_with(bytes));
            self.each(Kind::Create, &files).await?;
            self.each(Kind::Store(bytes), &files).await?;
            let first = files.first().and_then(|file| file.get().copied()).ok_or(LoadError::Lost)?;
            // A capability does not live as long as all sizes take: each has a session of its own.
            if let Some(session) = self.session(first).await? {
                self.path_of_size(bytes, &files, &Arc::new(session), costs).await?;
            }
            self.each(Kind::Remove, &files).await?;
        }
        Ok(())
    }

    async fn path_of_size(
        &self,
        bytes: u64,
        files: &Files,
        session: &Arc<Session>,
        costs: &mut MeasuredCosts,
    ) -> Result<(), LoadError> {
        let calls = files.len() as u32;
        let read = |files: Files, session: Arc<Session>| {
            move |_: Target, number: u32| {
                let (fid, session) = (fid_of(&files, number), session.clone());
                async move { session.read(fid, bytes).await }
            }
        };
        self.mean(calls, read(files.clone(), session.clone())).await?;
        costs.add(PATH_READ, bytes as f64, self.mean(calls, read(files.clone(), session.clone())).await?);
        let (files, session) = (files.clone(), session.clone());
        let store = move |target: Target, number: u32| {
            let (fid, session) = (fid_of(&files, number), session.clone());
            async move { session.store(&target, fid, bytes).await }
        };
        costs.add(PATH_STORE, bytes as f64, self.mean(calls, store).await?);
        Ok(())
    }

    /// A session with capabilities for the files of the directory; `None` if the server has no data path.
    async fn session(&self, file: Fid) -> Result<Option<Session>, LoadError> {
        let reply = match self.target.call(&DataPath {}).await {
            Err(LoadError::Call { source: CallError::Abort(AbortCode::RXGEN_OPCODE), .. }) => {
                return Ok(None);
            }
            reply => reply?,
        };
        let env = &self.target.env;
        let security =
            if reply.clear { Security::Clear } else { Security::Tls(Fingerprint(reply.fingerprint.0)) };
        let at = addresses(&reply, self.server.ip()).first().copied().ok_or(LoadError::Lost)?;
        let stream = env.connect(at).await.map_err(failed("connecting"))?;
        let client = Client::open(env.clone(), stream, security, Patience::default()).await;
        let client = client.map_err(failed("opening a session"))?;
        let version = self.target.call(&FetchStatus { fid: file }).await?.status.data_version;
        let read = self.handle(&client, file, CapabilityAccess::READ).await?;
        let write = self.handle(&client, file, CapabilityAccess::WRITE).await?;
        Ok(Some(Session { client, read, write, version }))
    }

    async fn handle(&self, client: &Client, fid: Fid, access: CapabilityAccess) -> Result<Handle, LoadError> {
        let wanted = CapabilityRequests::first_of([CapabilityRequest { fid, access, drive: OWN_DRIVE }]);
        let outcomes = self.target.call(&GetCapability { wanted }).await?.outcomes;
        let given = outcomes.into_iter().next().ok_or(LoadError::Lost)?.into_capability();
        let given = given.map_err(failed("asking for a capability"))?;
        let capability = Capability::from_bytes(given.arguments.as_bytes());
        let capability = capability.map_err(failed("reading a capability"))?;
        client.present(&capability, &Secret::new(given.secret.0)).map_err(failed("presenting a capability"))
    }
}

/// A connection to the server's drive. All files have one history, so one version before the stores.
struct Session {
    client: Client,
    read: Handle,
    write: Handle,
    version: DataVersion,
}

impl Session {
    async fn read(&self, fid: Fid, bytes: u64) -> Result<(), LoadError> {
        let range = range(bytes)?;
        let arriving = self.client.read(&self.read, fid, range, self.version).await;
        let (mut arriving, mut came) = (arriving.map_err(failed("reading"))?, 0);
        while let Some(piece) = arriving.next().await.map_err(failed("reading"))? {
            came += piece.len() as u64;
        }
        if came == bytes { Ok(()) } else { Err(LoadError::WrongLength { got: came, want: bytes }) }
    }

    async fn store(&self, target: &Target, fid: Fid, bytes: u64) -> Result<(), LoadError> {
        let description = StoreDescription::new(fid, 0, vec![range(bytes)?]).ok_or(LoadError::Lost)?;
        let leaving = self.client.store(&self.write, &description).await;
        let (mut leaving, mut left) = (leaving.map_err(failed("storing"))?, bytes);
        let piece = Bytes::from(vec![7; PIECE.min(usize::try_from(bytes).unwrap_or(PIECE))]);
        while left > 0 {
            let part = left.min(PIECE as u64);
            leaving.put(piece.slice(..part as usize)).await.map_err(failed("storing"))?;
            left -= part;
        }
        let ticket = leaving.finish().await.map_err(failed("storing"))?;
        let (staged, status, expected) = (Fixed(ticket.0.to_be_bytes()), SetStatus::default(), ANY_VERSION);
        let (file_length, grown_to, drives, places) = (0, bytes, 0, 0);
        let commit = Commit { staged, fid, status, expected, file_length, grown_to, drives, places };
        target.call(&commit).await.map(drop)
    }
}

fn fid_of(files: &Files, number: u32) -> Fid {
    files.get(number as usize).and_then(|file| file.get().copied()).unwrap_or_default()
}

fn range(bytes: u64) -> Result<ByteRange, LoadError> {
    ByteRange::at(0, bytes).ok_or(LoadError::Lost)
}
