//! Test kit: a cell in this process, a mount of it for all users, and the users.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use afs_db::EmbeddedLocationDb;
use afs_drive::MemoryDrive;
use afs_fuse::{
    Account, AccountFuture, Accounts, KernelSink, MountOptions, Mounted, NO_GROUP, NoOwner, ProcessSessions,
    SESSION_VARIABLE, cell_user_of_uid, uid_of_cell_user,
};
use afs_kv::{Kv, MemoryMedium};
use afs_net::{System, Udp};
use afs_rpc::Parts;
use afs_rpc::Service;
use afs_server::{
    CellSpec, FileServer, FileServerConfig, FileServerLimits, Guard, LocationServer, Partitions,
    VolumeStates, bootstrap,
};
use afs_testkit::{Claim, ClaimServer, UserDirectory, WORD};
use afs_venus::{
    CellConfig, DiskCache, Limits, Requester, RootKind, SecurityConfig, Token, TokenOwner, Venus, VenusConfig,
};
use afs_volume::{Config, VolumeStore};
use afs_wire::ids::{CellName, PartitionId, Rights, Uuid, ViceId, VolumeName};

/// Shorter than a file server waits for a callback. A request that waits for its own kernel is cut even so, and a busy machine cuts none.
const SETTLE_MAX: Duration = Duration::from_secs(3);

pub const ALICE: u32 = 61_001;
pub const BOB: u32 = 61_002;
pub const NOBODY: u32 = 61_003;
/// A user of whom the cell does not say whether it knows the name.
pub const SILENT: u32 = 61_004;

/// A cell, and one machine that has mounted it.
pub struct MountedCell {
    pub system: Arc<System>,
    pub venus: Arc<Venus>,
    pub users: UserDirectory,
    mount: PathBuf,
    /// Stopped before the servers.
    _machine: Machine,
    _kept: (Vec<Udp>, Arc<FileServer>, tempfile::TempDir),
}

/// A cache manager with a cache of its own, and its mount.
pub struct Machine {
    pub system: Arc<System>,
    pub venus: Arc<Venus>,
    pub sink: KernelSink,
    pub mount: PathBuf,
    mounted: Option<Mounted>,
    _socket: Udp,
}

impl MountedCell {
    pub fn new() -> MountedCell {
        MountedCell::with_passthrough(true)
    }

    /// Without passthrough the mount is like that of an ordinary user.
    pub fn with_passthrough(passthrough: bool) -> MountedCell {
        let system = System::new().unwrap();
        let scratch = tempfile::tempdir().unwrap();
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let users = UserDirectory::default();
        for (name, id) in [("alice", 11), ("bob", 12), ("team", -300)] {
            users.add(name, id);
        }
        let (sockets, files) = serve(&system, &users);
        let config = Machine::config(&system, &sockets, &scratch.path().join("cache"), 7);
        let mount = scratch.path().join("mount");
        let machine = Machine::start(&system, config, &mount, passthrough);
        let venus = machine.venus.clone();
        let kept = (sockets, files, scratch);
        MountedCell { system, venus, users, mount, _machine: machine, _kept: kept }
    }

    /// Another machine, or the same one after a stop: `name` stands for its cache and its mount.
    pub fn machine(&self, name: &str, passthrough: bool) -> Machine {
        let (sockets, _, scratch) = &self._kept;
        let number = 8 + name.bytes().fold(0u8, u8::wrapping_add) % 200;
        let config = Machine::config(&self.system, sockets, &scratch.path().join(name), number);
        let mount = scratch.path().join(format!("{name}.mount"));
        Machine::start(&self.system, config, &mount, passthrough)
    }

    pub fn log_in(&self, owner: TokenOwner, name: &str) {
        self._machine.log_in(owner, name);
    }

    /// Alice sets the access list of a directory.
    pub fn set_acl(&self, path: &str, entries: &[(&str, &str)]) {
        let rights = |text: &str| text.parse::<Rights>().unwrap().0;
        let lines: String =
            entries.iter().map(|(name, text)| format!("{name}\t{}\n", rights(text))).collect();
        let text = format!("{}\n0\n{lines}", entries.len());
        self.system.block_on(async {
            let alice = self.venus.on_behalf_of(Requester { uid: ALICE, pid: 0 }).await;
            let node = alice.walk(path.as_bytes(), true).await.unwrap().node;
            alice.set_property(node, b"afs.acl", text.as_bytes()).await.unwrap();
            alice.forget(node, 1);
        });
    }

    /// Runs a script in a user's shell, in which `$M` is the mount. Returns its output, or its error output if it
    /// fails.
    pub fn sh(&self, uid: u32, script: &str) -> Result<String, String> {
        self.sh_in(uid, None, script)
    }

    pub fn sh_in(&self, uid: u32, session: Option<u128>, script: &str) -> Result<String, String> {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).current_dir("/").env("M", &self.mount).uid(uid).gid(uid);
        if let Some(session) = session {
            shell.env(SESSION_VARIABLE, format!("{session:032x}"));
        }
        let output = shell.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    pub fn denied(&self, uid: u32, script: &str) {
        let said = self.sh(uid, script);
        let denied = said.as_ref().is_err_and(|error| error.contains("ermission denied"));
        assert!(denied, "{uid} {script}: {said:?}");
    }
}

impl Machine {
    /// Sets the token of a user of this machine.
    pub fn log_in(&self, owner: TokenOwner, name: &str) {
        let security = Claim::of(name).security();
        let token =
            Token { cell: cell_name(), security, expires: None, label: name.into(), is_narrowed: false };
        self.system.block_on(self.venus.set_token(owner, token)).unwrap();
    }

    fn config(
        system: &Arc<System>,
        sockets: &[Udp],
        cache: &Path,
        number: u8,
    ) -> (Udp, KernelSink, VenusConfig) {
        let own = Udp::bind(system, local(), afs_rx::Config::default()).unwrap();
        let sink = KernelSink::new();
        let cell = |name| CellConfig {
            name,
            location_servers: vec![sockets[1].local_addr()],
            file_port: sockets[0].local_addr().port(),
            is_listed: true,
        };
        let config = VenusConfig {
            env: system.env(),
            rx: own.rx().clone(),
            // The same servers by another name are another cell to a client.
            cells: [cell_name(), CellName::new("other.cell").unwrap()].map(cell).into(),
            resolver: None,
            root: RootKind::Volume(VolumeName::new("root.cell").unwrap()),
            uuid: Uuid([number; 16]),
            cache: Arc::new(DiskCache::open(cache, 64 << 20, "boot").unwrap()),
            sink: Arc::new(sink.clone()),
            snapshots: Some(".snapshots".into()),
            sysnames: Vec::new(),
            limits: Limits { settle_max: SETTLE_MAX, ..Limits::default() },
            security: SecurityConfig {
                sessions: Some(Arc::new(ProcessSessions::start().unwrap())),
                ..SecurityConfig::default()
            },
            data_path: Default::default(),
            objects: None,
        };
        (own, sink, config)
    }

    fn start(
        system: &Arc<System>,
        (socket, sink, config): (Udp, KernelSink, VenusConfig),
        mount: &Path,
        passthrough: bool,
    ) -> Machine {
        let venus = system.block_on(Venus::start(config)).unwrap();
        fs::create_dir_all(mount).unwrap();
        let mounted = Some(mount_for_all(system, &venus, sink.clone(), mount, passthrough));
        Machine { system: system.clone(), venus, sink, mount: mount.to_owned(), mounted, _socket: socket }
    }
}

/// The orderly stop of a mount.
impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(mounted) = self.mounted.take() {
            mounted.unmount().ok();
        }
        self.system.block_on(self.venus.shut_down()).ok();
    }
}

/// Alice and Bob are users of this machine who are known in the cell. The cell's users and those of the machine who are not are numbers.
#[derive(Debug)]
struct Users;

impl Accounts for Users {
    fn account(&self, id: ViceId) -> AccountFuture<'_, Account> {
        let known = match id.0 {
            11 => Some(ALICE),
            12 => Some(BOB),
            _ => None,
        };
        let number = || id.machine_uid().or(uid_of_cell_user(id)).unwrap_or(65_534);
        let (uid, gid) = known.map_or_else(|| (number(), NO_GROUP), |uid| (uid, uid));
        Box::pin(std::future::ready(Account { uid, gid, is_settled: true }))
    }

    fn id(&self, uid: u32) -> AccountFuture<'_, Result<ViceId, NoOwner>> {
        let id = match uid {
            ALICE => Ok(ViceId(11)),
            BOB => Ok(ViceId(12)),
            SILENT => Err(NoOwner::NoReply),
            uid => cell_user_of_uid(uid).or(ViceId::of_machine(uid)).ok_or(NoOwner::OutOfRange),
        };
        Box::pin(std::future::ready(id))
    }

    fn foreign_account(&self, _: ViceId) -> AccountFuture<'_, Account> {
        Box::pin(std::future::ready(Account { uid: NOBODY, gid: NO_GROUP, is_settled: true }))
    }
}

/// Whether the tests can run; prints that they are skipped if not.
pub fn can_mount() -> bool {
    let can = rustix::process::geteuid().is_root() && Path::new("/dev/fuse").exists();
    if !can {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "needed on CI: root and /dev/fuse");
        eprintln!("SKIPPED: this test must be run as root, with /dev/fuse");
    }
    can
}

fn mount_for_all(
    system: &Arc<System>,
    venus: &Arc<Venus>,
    sink: KernelSink,
    directory: &Path,
    passthrough: bool,
) -> Mounted {
    // The type number of overlayfs.
    let cache_is_stacked = rustix::fs::statfs(directory).is_ok_and(|s| s.f_type == 0x794c_7630);
    let options = MountOptions {
        allow_other: true,
        passthrough,
        cache_is_stacked,
        accounts: Some(Arc::new(Users)),
        ..MountOptions::new("test.cell")
    };
    afs_fuse::mount(venus.clone(), sink, directory, &options, system.env(), || ()).unwrap()
}

fn local() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

fn cell_name() -> CellName {
    CellName::new("test.cell").unwrap()
}

/// A file server and a location server; at first every user may do everything.
fn serve(system: &Arc<System>, users: &UserDirectory) -> (Vec<Udp>, Arc<FileServer>) {
    let env = system.env();
    let tables = [afs_volume::TABLES, afs_db::TABLES].concat();
    let medium = Arc::new(MemoryMedium::default());
    let kv = Kv::open(medium, &tables, Parts::inline(), afs_kv::Config::default()).unwrap();
    let db = Arc::new(EmbeddedLocationDb::new(kv.clone()));
    let uuid = Uuid([0x5e; 16]);
    let spec = CellSpec {
        cell: cell_name(),
        server: uuid,
        addresses: vec![Ipv4Addr::LOCALHOST],
        partition: PartitionId(0),
        anyuser: Rights::ALL,
        quota: 0,
    };
    let (within, place) = (env.clone(), db.clone());
    let partitions = system.block_on(async move {
        let drive = Arc::new(MemoryDrive::in_memory(1 << 30));
        let store = VolumeStore::open(kv, drive, within, Config::default()).await.unwrap();
        let partitions = Partitions::one(store);
        bootstrap(&*place, &partitions, &spec).await.unwrap();
        partitions
    });
    let bind = || Udp::bind(system, local(), afs_rx::Config::default()).unwrap();
    let (file_socket, location_socket) = (bind(), bind());
    let guard = Guard::new(Arc::new(users.clone()));
    let files = FileServer::new(FileServerConfig {
        env: env.clone(),
        rx: file_socket.rx().clone(),
        uuid,
        partitions,
        guard: guard.clone(),
        states: Arc::new(VolumeStates::default()),
        limits: FileServerLimits::default(),
    });
    let offer = |socket: &Udp, service: Arc<dyn Service>| {
        let classes: Vec<Box<dyn afs_rx::ServerSecurity>> =
            vec![Box::new(afs_rx::NullServer), Box::new(ClaimServer(WORD.into()))];
        socket.rx().listen_with(service, classes).unwrap();
    };
    offer(&file_socket, files.service());
    offer(&location_socket, LocationServer::service(env, db, guard));
    (vec![file_socket, location_socket], files)
}
