//! Two cells in one mount: an honest one, and one whose only server is behind a relay that lies.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use afs_drive::DriveId;
use afs_rpc::EnvExt;
use afs_sim::Sim;
use afs_testkit::relay::{Liar, Relay};
use afs_testkit::{
    ClientMachine, DriveHost, DrivePlan, Server, Service, Staging, UserDirectory, WORD, cell_of,
};
use afs_venus::{DataPathConfig, Token, TokenOwner, VenusConfig};
use afs_wire::ids::CellName;
use afs_wire::rpc::ServiceId;
use afs_wire::vol::DataRoute;

use super::falsified::liar;
use crate::common::{Client, LIMIT, PROJ, pattern, plan};

pub const GOOD: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const BAD: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const RELAY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 66);
pub const ALICE: u32 = 1001;
pub const BOB: u32 = 1002;
pub const KNOWN: &[u8] = b"what the honest cell has";
pub const SECRET: &[u8] = b"what Alice alone may read";
/// Length of the large file of the cell that lies.
pub const LARGE: usize = 200_000;
/// Length of files that are stored at drives: those of shorter parts are not.
pub const PLACED: usize = 20_000;
/// Files of one directory whose bytes are at drives.
pub const FILES: u64 = 6;
/// Where the bytes of a file begin of which no layout tells that tells of its beginning.
pub const SPARSE_AT: u64 = 9 << 20;
/// How long drives have room for what clients store, and how long they have not then.
const FREE_FOR: Duration = Duration::from_secs(240);
const FULL_FOR: Duration = Duration::from_secs(60);

/// How the bytes of the cell that lies travel, and what its clients keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Setup {
    Calls,
    /// With leases of directories.
    Leases,
    /// The server offers a data path, where nobody listens behind the relay.
    DataPath,
    /// The bytes are at a drive on another host.
    Drives,
    /// They are at two of them, with files that are long enough to be stored there by clients: in one volume by themselves, in another
    /// one when the file server has commanded it.
    Rooms,
}

impl Setup {
    /// Those in which the same programs run. With [`Setup::Rooms`] there are others.
    pub const ALL: [Setup; 4] = [Setup::Calls, Setup::Leases, Setup::DataPath, Setup::Drives];

    fn has_data_path(self) -> bool {
        matches!(self, Setup::DataPath | Setup::Drives | Setup::Rooms)
    }
}

pub struct Scene {
    pub sim: Sim,
    pub liar: Arc<Liar>,
    /// A machine with both cells.
    pub client: Client,
    /// One that calls the server behind the relay itself.
    pub witness: Client,
}

impl Scene {
    pub fn new(seed: u64, setup: Setup) -> Scene {
        let sim = Sim::new(seed);
        started(&sim, "good", GOOD, Setup::Calls);
        let drives = started(&sim, "bad", BAD, setup);
        let liar = Arc::new(liar(seed, BAD, RELAY));
        let services = [(ServiceId::FILE, 7000), (ServiceId::LOCATION, 7003)];
        Relay::start(&sim.world(), RELAY, BAD, &services, &liar);
        let cells = [("good.cell", GOOD), ("bad.cell", RELAY)];
        let client = client_of(&sim, 1, &cells, |config| {
            config.limits.leases = setup == Setup::Leases;
            let minimum_size = setup.has_data_path().then_some(4096);
            config.data_path =
                DataPathConfig { minimum_size, allow_clear: true, ..DataPathConfig::default() };
        });
        let witness = client_of(&sim, 2, &[("bad.cell", BAD)], |_| {});
        let scene = Scene { sim, liar, client, witness };
        scene.fill();
        if setup == Setup::Rooms {
            scene.fill_drives();
            scene.fill_up_at_times(drives);
        }
        scene
    }

    /// Contents of both cells, of which the client has cached those of the honest one and none of the other.
    fn fill(&self) {
        let (one, witness) = (self.client.clone(), self.witness.clone());
        self.on(&self.client, async move {
            one.put("good.cell/known", KNOWN).await.unwrap();
            one.mkdir("good.cell/private").await.unwrap();
            one.set_acl("good.cell/private", &[("alice", "rlidwka")]).await.unwrap();
            let token = Token {
                cell: CellName::new("good.cell").unwrap(),
                security: crate::common::trusted_name("alice"),
                expires: None,
                label: WORD.into(),
                is_narrowed: false,
            };
            one.venus.set_token(TokenOwner::Uid(ALICE), token).await.unwrap();
            one.user(ALICE).put("good.cell/private/secret", SECRET).await.unwrap();
        });
        self.on(&self.witness, async move {
            witness.put("bad.cell/large", &pattern(LARGE, 1)).await.unwrap();
            witness.mkdir("bad.cell/dir").await.unwrap();
            for name in ["small", "moved", "dir/one", "dir/two"] {
                witness.put(&format!("bad.cell/{name}"), name.as_bytes()).await.unwrap();
            }
            let dir = witness.find("bad.cell/dir").await.unwrap().node;
            witness.venus.symlink(dir, b"link", b"one").await.unwrap();
            witness.mount("bad.cell/proj", "#proj.").await.unwrap();
        });
    }

    /// Files of which a client has layouts of each kind.
    fn fill_drives(&self) {
        let witness = self.witness.clone();
        self.on(&self.witness, async move {
            witness.mkdir("bad.cell/many").await.unwrap();
            for number in 0..FILES {
                witness.put(&format!("bad.cell/many/{number}"), &pattern(PLACED, number)).await.unwrap();
            }
            witness.put("bad.cell/proj/file", &pattern(LARGE, 2)).await.unwrap();
            let sparse = witness.open_new("bad.cell/sparse").await.unwrap();
            witness.venus.write(sparse, SPARSE_AT, pattern(PLACED, 3).into()).await.unwrap();
            witness.venus.flush(sparse, 0).await.unwrap();
            witness.venus.release(sparse).await.unwrap();
        });
    }

    /// Drives that tell clients at times that they are full: what was staged is given up then, with its room.
    fn fill_up_at_times(&self, drives: Vec<DriveHost>) {
        let env = self.witness.env.clone();
        let env_of_times = env.clone();
        env.spawn(Box::pin(async move {
            for staging in [Staging::Honest, Staging::Full].into_iter().cycle() {
                drives.iter().for_each(|drive| drive.set_staging(staging));
                env_of_times.sleep(if staging == Staging::Full { FULL_FOR } else { FREE_FOR }).await;
            }
        }));
    }

    pub fn on<T: Send + 'static>(
        &self,
        client: &Client,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        self.sim.block_on(client.node, LIMIT * 24, work).unwrap_or_else(|hang| panic!("{hang}"))
    }
}

/// Its drives on hosts of their own.
fn started(sim: &Sim, name: &str, address: Ipv4Addr, setup: Setup) -> Vec<DriveHost> {
    let users = UserDirectory::default();
    users.add("alice", 11);
    let mut plan = plan(&users);
    if setup.has_data_path() {
        plan.services.push(Service::Data);
        plan.clear_data = true;
    }
    let server = Server::new(sim, name, address, plan);
    server.start_now();
    let over = |drives, copies| {
        let plan = DrivePlan { drives, copies, width: copies, route: DataRoute::Drives };
        server.use_plan(&plan, None).hosts
    };
    match setup {
        Setup::Calls | Setup::Leases | Setup::DataPath => Vec::new(),
        Setup::Drives => over(&[DriveId(1)], 1),
        Setup::Rooms => {
            let hosts = over(&[DriveId(1), DriveId(2)], 2);
            server.edit_volume(PROJ, |header| header.route = DataRoute::Commanded);
            hosts
        }
    }
}

fn client_of(
    sim: &Sim,
    number: u8,
    cells: &[(&str, Ipv4Addr)],
    configure: impl FnOnce(&mut VenusConfig),
) -> Client {
    let location = |server: Ipv4Addr| vec![SocketAddr::new(server.into(), 7003)];
    let cells = cells.iter().map(|(name, server)| cell_of(name, location(*server))).collect();
    let mut machine = ClientMachine::new(sim, number, [10, 0, 0, 10 + number].into(), cells);
    configure(&mut machine.config);
    Client::start(machine, sim.world()).unwrap()
}
