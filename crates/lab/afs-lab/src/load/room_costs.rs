//! Processor time of the server for the calls by which clients store at drives (`docs/protocol/extensions.md` "Rooms"): a room, and the
//! commit of what was staged there. What a manager of drives serves for a write in the place of its bytes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use afs_datapath::MINIMUM_SIZE;
use afs_datapath::capability::{Capability, Secret};
use afs_datapath::session::{Client, Fingerprint, Handle, Patience, Security};
use afs_wire::fs::{
    ANY_VERSION, COMMIT_SLOT_LEN, Commit, CommitPlace, EndRoom, GetRoom, LayoutDrive, SetStatus,
};
use afs_wire::ids::Fid;
use afs_wire::rpc::Request;
use afs_wire::xdr::{Decode, Encode, Fixed};
use bytes::Bytes;

use super::Target;
use super::capability_costs::is_absent;
use super::costs::{Costs, Files, Kind, files};
use super::error::{During, LoadError, failed};
use crate::measured_costs::MeasuredCosts;

/// Bytes of the files that are stored.
const STORED: [u64; 5] = [1, 8192, 65_536, 1 << 20, 8 << 20];
/// Most rooms at a time: a server has a bound for the stores in progress from one address.
const ROOMS_MAX: u32 = 512;

/// A room for a file.
struct Room {
    fid: Fid,
    number: Fixed<16>,
    drives: Vec<LayoutDrive>,
    /// The drives for each slot of the file, in a circle.
    rounds: Vec<Vec<u32>>,
}

/// What was staged in a room, for its commit.
struct Staged {
    drives: Vec<Fixed<16>>,
    places: Vec<CommitPlace>,
}

type Rooms = Arc<Vec<OnceLock<(Room, OnceLock<Staged>)>>>;

impl Costs<'_> {
    /// Adds the calls for rooms and commits, by bytes. Adds nothing where the volume has no rooms: its bytes are on no drives that clients may use,
    /// or the calls are unknown.
    ///
    /// # Errors
    /// The first request that fails ends the measurement; files may then be left behind, named `load-N`.
    pub async fn add_rooms(&self, costs: &mut MeasuredCosts) -> Result<(), LoadError> {
        // Once before: caches are warm then, and the drives known.
        if self.rooms_of_size(STORED[0], &mut MeasuredCosts::new(String::new())).await? {
            for bytes in STORED {
                self.rooms_of_size(bytes, costs).await?;
            }
        }
        Ok(())
    }

    /// Whether there are rooms.
    async fn rooms_of_size(&self, bytes: u64, costs: &mut MeasuredCosts) -> Result<bool, LoadError> {
        let files = files(self.calls_with(bytes).min(ROOMS_MAX));
        self.each(Kind::Create, &files).await?;
        let first = files.first().and_then(|file| file.get().copied()).ok_or(LoadError::Lost)?;
        let told = Room::ask(self.target, first, bytes).await;
        let has_rooms = !is_absent(&told)?;
        if has_rooms {
            let told = told?;
            self.target.call(&EndRoom { room: told.number }).await?;
            let drives = Arc::new(self.drives(&told).await?);
            self.stored_in_rooms(bytes, (&files, drives), costs).await?;
        }
        self.each(Kind::Remove, &files).await?;
        Ok(has_rooms)
    }

    async fn stored_in_rooms(
        &self,
        bytes: u64,
        (files, drives): (&Files, Arc<Drives>),
        costs: &mut MeasuredCosts,
    ) -> Result<(), LoadError> {
        let rooms: Rooms = Arc::new(files.iter().map(|_| OnceLock::new()).collect());
        let calls = files.len() as u32;
        let (these, all) = (files.clone(), rooms.clone());
        let ask = move |target: Target, number: u32| {
            let (files, rooms) = (these.clone(), all.clone());
            async move {
                let number = number as usize;
                let fid = files.get(number).and_then(|file| file.get().copied()).ok_or(LoadError::Lost)?;
                let room = Room::ask(&target, fid, bytes).await?;
                if let Some(place) = rooms.get(number) {
                    let _ = place.set((room, OnceLock::new()));
                }
                Ok(())
            }
        };
        costs.add(GetRoom::NAME, bytes as f64, self.mean(calls, ask).await?);
        let all = rooms.clone();
        let stage = move |_: Target, number: u32| {
            let (rooms, drives) = (all.clone(), drives.clone());
            async move {
                let (room, place) = room_of(&rooms, number)?;
                drop(place.set(drives.stage(room, bytes).await?));
                Ok(())
            }
        };
        self.mean(calls, stage).await?;
        let commit = move |target: Target, number: u32| {
            let rooms = rooms.clone();
            async move {
                let (room, staged) = room_of(&rooms, number)?;
                room.commit(&target, staged.get().ok_or(LoadError::Lost)?, bytes).await
            }
        };
        costs.add(Commit::NAME, bytes as f64, self.mean(calls, commit).await?);
        Ok(())
    }

    /// Connections to the drives of a room, at which all rooms of the volume are.
    async fn drives(&self, room: &Room) -> Result<Drives, LoadError> {
        let (env, mut drives) = (&self.target.env, BTreeMap::new());
        for drive in &room.drives {
            let at = SocketAddr::from((drive.address, drive.port));
            let security =
                if drive.clear { Security::Clear } else { Security::Tls(Fingerprint(drive.fingerprint.0)) };
            let stream = env.connect(at).await.map_err(failed("connecting"))?;
            let client = Client::open(env.clone(), stream, security, Patience::default()).await;
            drives.insert(drive.drive.0, client.map_err(failed("opening a session"))?);
        }
        Ok(Drives(drives))
    }
}

impl Room {
    async fn ask(target: &Target, fid: Fid, length: u64) -> Result<Self, LoadError> {
        // A drive counts whole blocks, of whatever size.
        let bytes = length.next_multiple_of(MINIMUM_SIZE);
        let told = target.call(&GetRoom { fid, bytes, length }).await?;
        let rounds = told.rounds.iter().map(|round| round.to_vec()).collect();
        Ok(Self { fid, number: told.room, drives: told.drives.to_vec(), rounds })
    }

    async fn commit(&self, target: &Target, staged: &Staged, bytes: u64) -> Result<(), LoadError> {
        let (fid, status, drives) = (self.fid, SetStatus::default(), &staged.drives);
        let (expected, file_length) = (ANY_VERSION, 0);
        let tables = drives.iter().flat_map(Encode::to_bytes);
        let tables: Vec<u8> = tables.chain(staged.places.iter().flat_map(Encode::to_bytes)).collect();
        let (drives, places) = (drives.len() as u32, staged.places.len() as u32);
        let (grown_to, staged) = (bytes, self.number);
        let commit = Commit { fid, status, expected, file_length, grown_to, staged, drives, places };
        let mut call = target.files.open(&commit).await.during(Commit::NAME)?;
        call.write(Bytes::from(tables)).await.during(Commit::NAME)?;
        call.finish_request().during(Commit::NAME)?;
        call.finish::<Commit>().await.during(Commit::NAME).map(drop)
    }
}

/// Sessions by the ids of the drives.
struct Drives(BTreeMap<[u8; 16], Client>);

impl Drives {
    /// Stages all bytes of a file, each part at the drives of its round.
    async fn stage(&self, room: &Room, bytes: u64) -> Result<Staged, LoadError> {
        let (mut drives, mut places) = (Vec::new(), Vec::new());
        for (at, drive) in (0..).zip(&room.drives) {
            let client = self.0.get(&drive.drive.0).ok_or(LoadError::Lost)?;
            let handle = present(client, drive)?;
            for slot in 0..bytes.div_ceil(COMMIT_SLOT_LEN) {
                let round = room.rounds.get(slot as usize % room.rounds.len().max(1));
                if round.is_some_and(|round| round.contains(&at)) {
                    let position = slot * COMMIT_SLOT_LEN;
                    let part = vec![7; (bytes - position).min(COMMIT_SLOT_LEN) as usize];
                    let chunk = client.stage(&handle, Bytes::from(part)).await.map_err(failed("staging"))?;
                    let chunk = Fixed(chunk.to_bytes());
                    places.push((position, CommitPlace { position, drive: at, chunk }));
                }
            }
            drives.push(drive.drive);
        }
        Ok(Staged { drives, places: in_order(places, &room.rounds) })
    }
}

/// By parts, and those of a part in the order of its round.
fn in_order(mut places: Vec<(u64, CommitPlace)>, rounds: &[Vec<u32>]) -> Vec<CommitPlace> {
    let turn = |position: u64, drive: u32| {
        let round = rounds.get((position / COMMIT_SLOT_LEN) as usize % rounds.len().max(1));
        round.and_then(|round| round.iter().position(|one| *one == drive))
    };
    places.sort_by_key(|(position, place)| (*position, turn(*position, place.drive)));
    places.into_iter().map(|(_, place)| place).collect()
}

fn present(client: &Client, drive: &LayoutDrive) -> Result<Handle, LoadError> {
    let capability = Capability::from_bytes(drive.capability.arguments.as_bytes());
    let capability = capability.map_err(failed("reading a capability"))?;
    let secret = Secret::new(drive.capability.secret.0);
    client.present(&capability, &secret).map_err(failed("presenting a capability"))
}

fn room_of(rooms: &Rooms, number: u32) -> Result<&(Room, OnceLock<Staged>), LoadError> {
    rooms.get(number as usize).and_then(OnceLock::get).ok_or(LoadError::Lost)
}
