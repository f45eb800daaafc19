//! Processor time of the server for the calls by which clients store at drives (`docs/protocol/extensions.md` "Rooms"): a room, and the
//! commit of what was staged there. What a manager of drives serves for a write in the place of its bytes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use afs_datapath::MINIMUM_SIZE;
use afs_datapath::capability::{Capability, Secret};
use afs_datapath::frame::STAGING_VERSION;
use afs_datapath::session::{Client, Fingerprint, Handle, Patience, Security};
use afs_wire::fs::{
    ANY_VERSION, COMMIT_SLOT_LEN, CommitChunks, CommitDrive, CommitPart, CommitPlace, CommitPlaced, EndRoom,
    GetPlacedRoom, GetRoom, LayoutDrive, SetStatus, StatusReply,
};
use afs_wire::ids::Fid;
use afs_wire::rpc::{Request, Streamed};
use afs_wire::xdr::{Decode, Encode, Fixed};
use bytes::Bytes;

use super::Target;
use super::capability_costs::is_absent;
use super::costs::{Costs, Files, Kind, files};
use super::error::{During, LoadError, failed};
use crate::replay::MeasuredCosts;

/// Bytes of the files that are stored.
const STORED: [u64; 5] = [1, 8192, 65_536, 1 << 20, 8 << 20];
/// Most rooms at a time: a server has a bound for the stores in progress from one address.
const ROOMS_MAX: u32 = 512;

/// Which of the two pairs of calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// GetPlacedRoom and CommitPlaced, as clients ask today.
    Placed,
    /// GetRoom and CommitChunks, for volumes whose new data go to one drive.
    AtOne,
}

/// A room for a file.
struct Room {
    fid: Fid,
    form: Form,
    number: Fixed<16>,
    drives: Vec<LayoutDrive>,
    /// The drives for each slot of the file, in a circle.
    rounds: Vec<Vec<u32>>,
}

/// What was staged in a room, for its commit.
struct Staged {
    drives: Vec<CommitDrive>,
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
        for form in [Form::Placed, Form::AtOne] {
            // Once before: caches are warm then, and the drives known.
            let mut warming = MeasuredCosts::new(String::new());
            if !self.rooms_of_size(form, STORED[0], &mut warming).await? {
                continue;
            }
            for bytes in STORED {
                self.rooms_of_size(form, bytes, costs).await?;
            }
        }
        Ok(())
    }

    /// Whether there are rooms.
    async fn rooms_of_size(
        &self,
        form: Form,
        bytes: u64,
        costs: &mut MeasuredCosts,
    ) -> Result<bool, LoadError> {
        let files = files(self.calls_with(bytes).min(ROOMS_MAX));
        self.each(Kind::Create, &files).await?;
        let first = files.first().and_then(|file| file.get().copied()).ok_or(LoadError::Lost)?;
        let told = form.ask(self.target, first, bytes).await;
        let has_rooms = !is_absent(&told)?;
        if has_rooms {
            let told = told?;
            self.target.call(&EndRoom { room: told.number }).await?;
            let drives = Arc::new(self.drives(&told).await?);
            self.stored_in_rooms(form, bytes, (&files, drives), costs).await?;
        }
        self.each(Kind::Remove, &files).await?;
        Ok(has_rooms)
    }

    async fn stored_in_rooms(
        &self,
        form: Form,
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
                let room = form.ask(&target, fid, bytes).await?;
                if let Some(place) = rooms.get(number) {
                    let _ = place.set((room, OnceLock::new()));
                }
                Ok(())
            }
        };
        costs.add(form.room_call(), bytes as f64, self.mean(calls, ask).await?);
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
        costs.add(form.commit_call(), bytes as f64, self.mean(calls, commit).await?);
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
            let client =
                Client::open_version(env.clone(), stream, security, Patience::default(), STAGING_VERSION)
                    .await;
            drives.insert(drive.drive.0, client.map_err(failed("opening a session"))?);
        }
        Ok(Drives(drives))
    }
}

impl Form {
    fn room_call(self) -> &'static str {
        if self == Self::Placed { GetPlacedRoom::NAME } else { GetRoom::NAME }
    }

    fn commit_call(self) -> &'static str {
        if self == Self::Placed { CommitPlaced::NAME } else { CommitChunks::NAME }
    }

    async fn ask(self, target: &Target, fid: Fid, length: u64) -> Result<Room, LoadError> {
        // A drive counts whole blocks, of whatever size.
        let bytes = length.next_multiple_of(MINIMUM_SIZE);
        let (number, drives, rounds) = match self {
            Self::Placed => {
                let told = target.call(&GetPlacedRoom { fid, bytes, length }).await?;
                let rounds = told.rounds.iter().map(|round| round.to_vec()).collect();
                (told.room, told.drives.to_vec(), rounds)
            }
            Self::AtOne => {
                let told = target.call(&GetRoom { fid, bytes, length }).await?;
                (told.room, vec![told.drive], vec![vec![0]])
            }
        };
        Ok(Room { fid, form: self, number, drives, rounds })
    }
}

impl Room {
    async fn commit(&self, target: &Target, staged: &Staged, bytes: u64) -> Result<(), LoadError> {
        let (fid, status, room, drives) = (self.fid, SetStatus::default(), self.number, &staged.drives);
        let (expected, file_length, count) = (ANY_VERSION, 0, staged.places.len() as u32);
        if self.form == Form::Placed {
            let tables = drives.iter().flat_map(Encode::to_bytes);
            let tables = tables.chain(staged.places.iter().flat_map(Encode::to_bytes)).collect();
            let (drives, places) = (drives.len() as u32, count);
            let commit =
                CommitPlaced { fid, status, expected, file_length, grown_to: bytes, room, drives, places };
            return send(target, &commit, tables).await;
        }
        let part = |place: &CommitPlace| {
            let CommitPlace { position, chunk, receipt, .. } = place.clone();
            CommitPart { position, chunk, receipt }.to_bytes()
        };
        let CommitDrive { drive, run } = drives.first().cloned().ok_or(LoadError::Lost)?;
        let (grown_to, parts) = (bytes, count);
        let commit = CommitChunks { fid, status, expected, file_length, grown_to, drive, room, run, parts };
        send(target, &commit, staged.places.iter().flat_map(part).collect()).await
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
            let (mut positions, mut chunks) = (Vec::new(), Vec::new());
            for slot in 0..bytes.div_ceil(COMMIT_SLOT_LEN) {
                let round = room.rounds.get(slot as usize % room.rounds.len().max(1));
                if round.is_some_and(|round| round.contains(&at)) {
                    let position = slot * COMMIT_SLOT_LEN;
                    let part = vec![7; (bytes - position).min(COMMIT_SLOT_LEN) as usize];
                    chunks.push(client.stage(&handle, Bytes::from(part)).await.map_err(failed("staging"))?);
                    positions.push(position);
                }
            }
            let mut run = 0;
            if !chunks.is_empty() {
                let told = client.receipts(&handle, &chunks).await.map_err(failed("taking receipts"))?;
                run = told.run;
                for ((position, chunk), receipt) in positions.into_iter().zip(chunks).zip(told.receipts) {
                    let (chunk, receipt) = (Fixed(chunk.to_bytes()), Fixed(receipt.0));
                    places.push((position, CommitPlace { position, drive: at, chunk, receipt }));
                }
            }
            drives.push(CommitDrive { drive: drive.drive, run });
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

async fn send<R: Streamed<Reply = StatusReply>>(
    target: &Target,
    request: &R,
    tables: Vec<u8>,
) -> Result<(), LoadError> {
    let mut call = target.files.open(request).await.during(R::NAME)?;
    call.write(Bytes::from(tables)).await.during(R::NAME)?;
    call.finish_request().during(R::NAME)?;
    call.finish::<R>().await.during(R::NAME).map(drop)
}
