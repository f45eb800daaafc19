//! A drive on another host that takes the new data of the cell, and to which clients are sent.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use afs_datapath::capability::{DriveId as PathDrive, DriveKey, KeyEpoch, StoreNumber};
use afs_datapath::session::{Drive as Served, DriveLimits, Offer, Security, accept};
use afs_drive::{BLOCK, DriveId, SegmentStore};
use afs_remote::{ChunkStores, DirectDrive, RemoteDrive, RemoteOptions, Run};
use afs_sim::NodeId;
use afs_sim::disk::SimDisk;
use afs_volume::{DataRoute, Placement, VolumeHeader};
use afs_wire::fs::AclText;
use afs_wire::ids::{PartitionId, VolumeId};

use super::{Cell, PATIENCE};

/// The drive, as the store of the partition knows it.
pub const FAR: DriveId = DriveId(1);
/// The store of the partition, as the drive knows it.
pub const STORE: StoreNumber = StoreNumber(3);

/// Where the drive listens.
pub fn at() -> SocketAddr {
    at_of(FAR)
}

fn at_of(id: DriveId) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, id.0 as u8 - 1, 9), 7010))
}

pub fn key() -> DriveKey {
    key_of(FAR)
}

/// The key of a drive with such an id.
pub fn key_of(id: DriveId) -> DriveKey {
    DriveKey::new(PathDrive(0xd0 + u128::from(id.0)), KeyEpoch(1), [6 + id.0 as u8; 32])
}

pub fn acl(text: &str) -> AclText {
    AclText::new(format!("{text}\0").into_bytes()).unwrap()
}

/// The host of the drive.
pub struct Far {
    id: DriveId,
    pub node: NodeId,
    pub disk: SimDisk,
    /// The process of the present run.
    pub served: Arc<Served>,
}

impl Far {
    /// A drive in its first run.
    pub fn new(cell: &Cell) -> Self {
        Self::with_id(cell, FAR)
    }

    /// The same, of another id.
    pub fn with_id(cell: &Cell, id: DriveId) -> Self {
        let node = cell.sim.node(&format!("drive {id}"), at_of(id).ip());
        let disk = cell.sim.disk(node);
        let served = serve(cell, (id, node), (&disk, 1));
        Self { id, node, disk, served }
    }

    /// Bytes of the blocks that hold something. The simulated disk fills what is freed with zeros.
    pub fn bytes(&self) -> u64 {
        let segments = self.disk.segments(&format!("store-{}", STORE.0));
        let of_segment = |number: u64| {
            let mut bytes = vec![0; segments.len(number).unwrap() as usize];
            segments.read_at(number, 0, &mut bytes).unwrap();
            let held = bytes.chunks(BLOCK as usize).filter(|block| block.iter().any(|byte| *byte != 0));
            held.count() as u64 * BLOCK
        };
        segments.list().unwrap().into_iter().map(of_segment).sum()
    }

    /// A power failure of the host, and the next start of the drive.
    pub fn crash(&mut self, cell: &Cell, next_run: u64) {
        cell.sim.crash(self.node);
        cell.sim.restart(self.node);
        self.served = serve(cell, (self.id, self.node), (&self.disk, next_run));
    }
}

fn serve(cell: &Cell, (id, node): (DriveId, NodeId), (disk, run): (&SimDisk, u64)) -> Arc<Served> {
    let (env, disk) = (cell.sim.env(node), disk.clone());
    let open = move |store: StoreNumber| Ok(disk.segments(&format!("store-{}", store.0)));
    let stores = ChunkStores::new(env.clone(), Run(run), open);
    let revocations = stores.revocations();
    let drive = Served::new(key_of(id), revocations, Arc::new(stores), DriveLimits::default());
    let listener = env.listen(at_of(id)).unwrap();
    env.spawn(Box::pin(accept(env.clone(), listener, Offer::clear(), drive.clone())));
    drive
}

/// Adds the drive to the server, after each start of it.
pub fn add(cell: &Cell) {
    add_all(cell, &[FAR]);
}

/// The same for several drives, to all of which new data may go.
pub fn add_all(cell: &Cell, ids: &[DriveId]) {
    let env = cell.sim.env(cell.server);
    let store = cell.partitions().store(PartitionId(0)).unwrap();
    for id in ids {
        let (name, key) = (format!("far {id}"), Arc::new(key_of(*id)));
        let options = RemoteOptions::new(&name, at_of(*id), Security::Clear, key, STORE);
        store.add_drive(*id, Arc::new(RemoteDrive::new(env.clone(), options.clone()))).unwrap();
        cell.partitions().add_direct(PartitionId(0), *id, DirectDrive::new(env.clone(), options));
    }
    store.use_drives(ids).unwrap();
}

/// Has what files do not have any more deleted, after each start of the server.
pub fn delete_in_background(cell: &Cell) {
    let store = cell.partitions().store(PartitionId(0)).unwrap().clone();
    cell.sim.env(cell.server).spawn(Box::pin(async move { store.run_background().await }));
}

/// Sets the route of a volume.
pub fn set_route(cell: &Cell, volume: VolumeId, route: DataRoute) {
    edit(cell, volume, move |header| header.route = route);
}

/// Sets the placement of a volume.
pub fn set_placement(cell: &Cell, volume: VolumeId, placement: Placement) {
    edit(cell, volume, move |header| header.placement = placement);
}

fn edit(cell: &Cell, volume: VolumeId, change: impl FnOnce(&mut VolumeHeader) + Send + 'static) {
    let volume = cell.partitions().volume(volume).unwrap();
    let setting = async move {
        let set = volume.edit(move |tx| {
            change(tx.edit_header());
            Ok(())
        });
        set.await
    };
    cell.sim.block_on(cell.server, PATIENCE, setting).unwrap().unwrap();
}
