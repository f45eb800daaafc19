//! Model of a volume server as `docs/protocol/volserver.md` describes OpenAFS's, for volumes that contain
//! numbers.
//!
//! Writes to its disk are immediate; transactions are in memory. It is the worse case for a tool: restores
//! are visible half-written, an increment is what changed since a date, and unpublished volumes are deleted
//! when the server starts. One that is [`Implementation::Andrew`] differs as that server does: a restore becomes visible at
//! once.

mod streams;

pub use streams::{head, row};

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use afs_rpc::{EnvExt, EnvRef, Service, Table, WeakRx};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::{KindNumber, PartitionNumber, UnixSeconds, VolumeId};
use afs_wire::rpc::{Nothing, Opcode, Request, ServiceId};
use afs_wire::vol::*;
use afs_wire::xdr::{BoundedVec, Decode, DecodeError, Encode, Reader};

/// A volume on the disk.
#[derive(Clone, Debug, Default)]
pub struct DiskVolume {
    pub name: String,
    pub kind: KindNumber,
    pub parent: VolumeId,
    pub numbers: BTreeMap<u64, UnixSeconds>,
    pub in_service: bool,
    pub destroy_me: bool,
    pub created: UnixSeconds,
    pub updated: UnixSeconds,
    /// Its way for bytes; `None` at a server that does not know that setting.
    pub route: Option<DataRoute>,
}

/// The implementation of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Implementation {
    Andrew,
    OpenAfs,
}

/// State that outlives the server's process.
pub type Disk = Arc<Mutex<BTreeMap<VolumeId, DiskVolume>>>;

#[derive(Clone, Copy)]
struct Open {
    volume: VolumeId,
    busy: bool,
    deleted: bool,
}

#[derive(Default)]
struct Memory {
    last: i32,
    open: BTreeMap<i32, Open>,
    moved: BTreeSet<VolumeId>,
}

/// One process of a volume server.
pub struct VolumeModel {
    implementation: Implementation,
    env: EnvRef,
    /// Weak: the endpoint holds this service, and a cycle would leak a megabyte.
    rx: WeakRx,
    disk: Disk,
    memory: Mutex<Memory>,
}

/// A client's change: adds a number to a volume.
#[derive(Clone, Debug)]
pub struct Append {
    pub volume: VolumeId,
    pub number: u64,
}

impl Encode for Append {
    fn encode(&self, out: &mut Vec<u8>) {
        self.volume.encode(out);
        self.number.encode(out);
    }
}

impl Decode for Append {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { volume: Decode::decode(r)?, number: Decode::decode(r)? })
    }
}

impl Request for Append {
    const SERVICE: ServiceId = ServiceId::VOLUME;
    const OPCODE: u32 = 7777;
    const NAME: &'static str = "Append";
    type Reply = Nothing;
}

type Outcome<T> = Result<T, AbortCode>;

const NO_TRANSACTION: AbortCode = AbortCode(Errno::ENOENT as i32);

impl VolumeModel {
    /// The service of a process that starts, the first or `again`. Volumes marked for deletion are deleted.
    pub fn service(
        implementation: Implementation,
        env: EnvRef,
        rx: WeakRx,
        disk: Disk,
        again: bool,
    ) -> Arc<dyn Service> {
        disk.lock().unwrap().retain(|_, held| !held.destroy_me);
        let model = Arc::new(Self { implementation, env, rx, disk, memory: Mutex::default() });
        if again {
            model.env.spawn(Box::pin(strangers_come(model.env.clone(), Arc::downgrade(&model))));
        }
        let table = Table::new(ServiceId::VOLUME, model)
            .refuse(Opcode(GetSize::OPCODE), AbortCode::RXGEN_OPCODE)
            .streamed::<Restore, _, _>(|m: Arc<Self>, call, request| async move {
                m.restore(call, request).await
            });
        macro_rules! calls {
            ($table:expr; $($request:ident => $method:ident;)*) => {
                $table$(.call::<$request, _, _, AbortCode>(
                    |m: Arc<Self>, _, call| async move { m.$method(call) },
                ))*
            };
        }
        let table = calls! { table;
            ListSnapshots => snapshots;
            XListPartitions => partitions;
            PartitionInfo64 => room;
            ListOneVolume => list_one;
            Monitor => monitor;
            TransCreate => take;
            EndTrans => end;
            SetFlags => set_flags;
            SetInfo => set_info;
            GetRoute => route;
            SetRoute => set_route;
            GetStatus => status;
            Clone => make_clone;
            ReClone => reclone;
            CreateVolume => create;
            DeleteVolume => delete;
            SetForwarding => forward_clients;
            SetIdsTypes => set_ids;
            Append => append;
        };
        let table = table
            .call::<Forward, _, _, AbortCode>(|m: Arc<Self>, _, call| async move { m.forward(call).await })
            .call::<ForwardMultiple, _, _, AbortCode>(|m: Arc<Self>, _, call| async move {
                m.forward_multiple(call).await
            });
        Arc::new(table)
    }

    fn now(&self) -> UnixSeconds {
        UnixSeconds(self.env.wall().secs_u32())
    }

    fn open(&self, tid: TransactionId) -> Outcome<Open> {
        let open = self.memory.lock().unwrap().open.get(&tid.0).copied();
        open.filter(|o| !o.deleted).ok_or(NO_TRANSACTION)
    }

    fn with<T>(&self, tid: TransactionId, work: impl FnOnce(&mut DiskVolume) -> T) -> Outcome<T> {
        let open = self.open(tid)?;
        let mut disk = self.disk.lock().unwrap();
        disk.get_mut(&open.volume).map(work).ok_or(AbortCode::VNOVOL)
    }

    fn hold(&self, volume: VolumeId, busy: bool) -> Outcome<TransactionId> {
        let mut memory = self.memory.lock().unwrap();
        if memory.open.values().any(|o| o.volume == volume) {
            return Err(AbortCode::VOLSERVOLBUSY);
        }
        memory.last += 1;
        let tid = memory.last;
        memory.open.insert(tid, Open { volume, busy, deleted: false });
        Ok(TransactionId(tid))
    }

    fn snapshots(&self, _: ListSnapshots) -> Outcome<ListSnapshotsReply> {
        self.only_ours().map(|()| ListSnapshotsReply { snapshots: BoundedVec::default() })
    }

    fn only_ours(&self) -> Outcome<()> {
        if self.implementation == Implementation::Andrew { Ok(()) } else { Err(AbortCode::RXGEN_OPCODE) }
    }

    fn partitions(&self, _: XListPartitions) -> Outcome<XListPartitionsReply> {
        Ok(XListPartitionsReply { partitions: BoundedVec::first_of([PartitionNumber(0)]) })
    }

    fn room(&self, _: PartitionInfo64) -> Outcome<PartitionInfo64Reply> {
        Ok(PartitionInfo64Reply {
            partition: DiskPartition64 { free: 1 << 20, ..DiskPartition64::default() },
        })
    }

    fn list_one(&self, call: ListOneVolume) -> Outcome<ListVolumesReply> {
        let disk = self.disk.lock().unwrap();
        let held = disk.get(&call.volume).ok_or(AbortCode(Errno::ENODEV as i32))?;
        let busy = self.memory.lock().unwrap().open.values().any(|o| o.volume == call.volume);
        let info = VolumeInfo {
            id: call.volume,
            kind: held.kind,
            status: if busy { InfoStatus::BUSY } else { InfoStatus::OK },
            in_use: held.in_service && !held.destroy_me,
            destroy_me: if held.destroy_me { DESTROY_ME } else { 0 },
            creation_date: held.created,
            update_date: held.updated,
            ..VolumeInfo::default()
        };
        Ok(ListVolumesReply { volumes: BoundedVec::first_of([info]) })
    }

    fn monitor(&self, _: Monitor) -> Outcome<MonitorReply> {
        let memory = self.memory.lock().unwrap();
        let one = |(tid, open): (&i32, &Open)| TransactionInfo {
            id: TransactionId(*tid),
            volume: open.volume,
            ..TransactionInfo::default()
        };
        Ok(MonitorReply { transactions: BoundedVec::first_of(memory.open.iter().map(one)) })
    }

    fn take(&self, call: TransCreate) -> Outcome<TransCreateReply> {
        if !self.disk.lock().unwrap().contains_key(&call.volume) {
            return Err(AbortCode::VNOVOL);
        }
        let transaction = self.hold(call.volume, call.flags.contains(AttachFlags::BUSY))?;
        Ok(TransCreateReply { transaction })
    }

    fn end(&self, call: EndTrans) -> Outcome<EndTransReply> {
        let ended = self.memory.lock().unwrap().open.remove(&call.transaction.0);
        let strangers = ended.map(|open| open.volume).filter(|volume| is_strangers(*volume));
        if let Some(volume) = strangers {
            self.disk.lock().unwrap().entry(volume).or_default().name = "given back by another".into();
        }
        ended.map(|_| EndTransReply { return_code: 0 }).ok_or(NO_TRANSACTION)
    }

    fn set_flags(&self, call: SetFlags) -> Outcome<()> {
        self.with(call.transaction, |held| {
            held.destroy_me = call.flags.contains(VolumeFlags::DELETE_ON_SALVAGE);
            held.in_service = !call.flags.contains(VolumeFlags::OUT_OF_SERVICE);
        })
    }

    /// There is nothing to set.
    fn set_info(&self, call: SetInfo) -> Outcome<()> {
        self.open(call.transaction).map(drop)
    }

    fn route(&self, call: GetRoute) -> Outcome<GetRouteReply> {
        let route = self.disk.lock().unwrap().get(&call.volume).and_then(|held| held.route);
        Ok(GetRouteReply { route: route.ok_or(AbortCode::RXGEN_OPCODE)? })
    }

    fn set_route(&self, call: SetRoute) -> Outcome<()> {
        assert_eq!(self.implementation, Implementation::Andrew, "others are not told");
        self.with(call.transaction, |held| held.route.as_mut().map(|route| *route = call.route))?
            .ok_or(AbortCode::RXGEN_OPCODE)
    }

    fn status(&self, call: GetStatus) -> Outcome<GetStatusReply> {
        let id = self.open(call.transaction)?.volume;
        self.with(call.transaction, |held| GetStatusReply {
            status: HeaderStatus {
                id,
                kind: held.kind,
                parent_id: held.parent,
                creation_date: held.created,
                update_date: held.updated,
                ..HeaderStatus::default()
            },
        })
    }

    fn make_clone(&self, call: Clone) -> Outcome<CloneReply> {
        let (now, open) = (self.now(), self.open(call.transaction)?);
        let mut disk = self.disk.lock().unwrap();
        let source =
            disk.get(&open.volume).filter(|h| h.in_service && !h.destroy_me).ok_or(AbortCode::VOFFLINE)?;
        let clone = DiskVolume {
            name: call.name.to_text(),
            kind: call.kind,
            parent: source.parent,
            created: now,
            in_service: false,
            destroy_me: true,
            ..source.clone()
        };
        disk.insert(call.volume, clone);
        Ok(CloneReply { volume: call.volume })
    }

    fn reclone(&self, call: ReClone) -> Outcome<()> {
        let (now, open) = (self.now(), self.open(call.transaction)?);
        let mut disk = self.disk.lock().unwrap();
        let source = disk.get(&open.volume).cloned().ok_or(AbortCode::VNOVOL)?;
        let clone = disk.get_mut(&call.clone).ok_or(AbortCode::VNOVOL)?;
        (clone.numbers, clone.updated, clone.created) = (source.numbers, source.updated, now);
        (clone.in_service, clone.destroy_me) = (true, false);
        Ok(())
    }

    fn create(&self, call: CreateVolume) -> Outcome<CreateVolumeReply> {
        let now = self.now();
        let mut disk = self.disk.lock().unwrap();
        if disk.contains_key(&call.volume) {
            return Err(AbortCode(Errno::EIO as i32));
        }
        let transaction = self.hold(call.volume, false)?;
        let held = DiskVolume {
            name: call.name.to_text(),
            kind: call.kind,
            parent: if call.parent.0 == 0 { call.volume } else { call.parent },
            destroy_me: true,
            created: now,
            updated: now,
            ..DiskVolume::default()
        };
        disk.insert(call.volume, held);
        Ok(CreateVolumeReply { volume: call.volume, transaction })
    }

    fn delete(&self, call: DeleteVolume) -> Outcome<()> {
        let open = self.open(call.transaction)?;
        self.disk.lock().unwrap().remove(&open.volume);
        if let Some(open) = self.memory.lock().unwrap().open.get_mut(&call.transaction.0) {
            open.deleted = true;
        }
        Ok(())
    }

    fn forward_clients(&self, call: SetForwarding) -> Outcome<()> {
        let open = self.open(call.transaction)?;
        self.memory.lock().unwrap().moved.insert(open.volume);
        Ok(())
    }

    fn set_ids(&self, call: SetIdsTypes) -> Outcome<()> {
        self.with(call.transaction, |held| {
            (held.name, held.kind, held.parent) = (call.name.to_text(), call.kind, call.parent);
        })
    }

    fn append(&self, call: Append) -> Outcome<()> {
        let now = self.now();
        let busy =
            self.memory.lock().unwrap().open.values().find(|o| o.volume == call.volume).map(|o| o.busy);
        let moved = self.memory.lock().unwrap().moved.contains(&call.volume);
        let mut disk = self.disk.lock().unwrap();
        let absent = if moved { AbortCode::VMOVED } else { AbortCode::VNOVOL };
        let held = disk.get_mut(&call.volume).filter(|h| !h.destroy_me).ok_or(absent)?;
        match busy {
            Some(true) => return Err(AbortCode::VBUSY),
            Some(false) => return Err(AbortCode::VOFFLINE),
            None if !held.in_service => return Err(AbortCode::VOFFLINE),
            None => {}
        }
        held.numbers.insert(call.number, now);
        held.updated = now;
        Ok(())
    }
}

/// Volumes of strangers, which no tool may touch.
const STRANGERS: std::ops::Range<u32> = 9001..9013;

/// Soon after a restart strangers have transactions with the ids of earlier ones.
async fn strangers_come(env: EnvRef, model: std::sync::Weak<VolumeModel>) {
    env.sleep(std::time::Duration::from_secs(1)).await;
    let Some(model) = model.upgrade() else { return };
    for volume in STRANGERS.map(VolumeId) {
        let held = DiskVolume { in_service: true, parent: volume, ..DiskVolume::default() };
        model.disk.lock().unwrap().entry(volume).or_insert(held);
        model.hold(volume, true).unwrap();
    }
}

fn is_strangers(volume: VolumeId) -> bool {
    STRANGERS.contains(&volume.0)
}

/// Removes the strangers' volumes from a server's disk.
pub fn without_strangers(mut disk: BTreeMap<VolumeId, DiskVolume>) -> BTreeMap<VolumeId, DiskVolume> {
    let known = disk.keys().any(|volume| is_strangers(*volume));
    for volume in STRANGERS.map(VolumeId).filter(|_| known) {
        let held = disk.remove(&volume);
        let untouched =
            |h: &DiskVolume| h.name.is_empty() && h.in_service && !h.destroy_me && h.numbers.is_empty();
        let whole = held.as_ref().is_some_and(untouched);
        assert!(whole, "the volume of a stranger is now {held:?}");
    }
    disk
}

/// Address of a server.
pub fn address(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}
