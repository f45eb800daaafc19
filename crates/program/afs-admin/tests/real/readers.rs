//! What clients see of releases, backups, restores and exchanges of names, however soon one follows another.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use afs_admin::{CreateOptions, ReleaseOptions};
use afs_sim::{NodeId, SimRng};
use afs_testkit::{ClientMachine, cell_of};
use afs_venus::{InvalidationSink, OpenFlags, RootKind, Venus, VenusError};
use afs_wire::ids::VolumeName;
use bytes::Bytes;
use parking_lot::Mutex;

use super::cell::{Cell, address, place};

/// Virtual time that an operation of a client may take.
const LIMIT: Duration = Duration::from_secs(300);
/// Time for a break to arrive.
const SOON: Duration = Duration::from_millis(100);
/// A client that could not be notified learns of a change so soon after it can be reached again.
const PROBED: Duration = Duration::from_secs(75);

/// A sink that records the names which Venus invalidates.
#[derive(Clone, Default)]
struct Names(Arc<Mutex<Vec<String>>>);

impl InvalidationSink for Names {
    fn attributes(&self, _: afs_venus::NodeId) {}

    fn data(&self, _: afs_venus::NodeId) {}

    fn entry(&self, _: afs_venus::NodeId, name: &[u8]) {
        self.0.lock().push(String::from_utf8_lossy(name).into_owned());
    }
}

/// A client whose root is a volume.
struct Client {
    venus: Arc<Venus>,
    node: NodeId,
    names: Names,
}

impl Client {
    fn new(cell: &Cell, number: u8, root: &str) -> Self {
        let databases = SocketAddr::from((address(1), 7003));
        let cells = vec![cell_of("sim.test", vec![databases])];
        let mut machine = ClientMachine::new(&cell.sim, number, address(50 + number).into(), cells);
        let names = Names::default();
        machine.config.root = RootKind::Volume(VolumeName::new(root).unwrap());
        machine.config.sink = Arc::new(names.clone());
        let node = machine.node;
        Self { venus: machine.start(LIMIT).unwrap().unwrap(), node, names }
    }

    fn on<T: Send + 'static, F>(
        &self,
        cell: &Cell,
        work: impl FnOnce(Arc<Venus>) -> F,
    ) -> Result<T, VenusError>
    where
        F: Future<Output = Result<T, VenusError>> + Send + 'static,
    {
        cell.sim.block_on(self.node, LIMIT, work(self.venus.clone())).unwrap()
    }

    fn read(&self, cell: &Cell, path: &'static str) -> Result<String, VenusError> {
        self.on(cell, move |venus| async move {
            let entry = venus.walk(path.as_bytes(), true).await?;
            let handle = venus.open(entry.node, OpenFlags::READ).await?.handle;
            let data = venus.read(handle, 0, 4096).await;
            venus.release(handle).await?;
            Ok(String::from_utf8_lossy(&data?).into_owned())
        })
    }

    fn write(&self, cell: &Cell, path: &'static str, text: &str) {
        let text = Bytes::copy_from_slice(text.as_bytes());
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        let written = self.on(cell, move |venus| async move {
            let dir = venus.walk(dir.as_bytes(), true).await?.node;
            let flags = OpenFlags { truncate: true, ..OpenFlags::READ_WRITE };
            let handle = match venus.lookup(dir, name.as_bytes()).await {
                Ok(entry) => venus.open(entry.node, flags).await?.handle,
                Err(_) => venus.create(dir, name.as_bytes(), 0o644, flags).await?.1.handle,
            };
            venus.write(handle, 0, text).await?;
            venus.flush(handle, 0).await?;
            venus.release(handle).await
        });
        written.unwrap();
    }

    /// Looks a name up as a kernel does, which keeps it.
    fn hold(&self, cell: &Cell, name: &'static str) {
        let found = self.on(cell, move |venus| async move {
            venus.lookup(afs_venus::NodeId::ROOT, name.as_bytes()).await
        });
        found.unwrap();
    }

    fn link(&self, cell: &Cell, name: &'static str, text: &'static str) {
        let made = self.on(cell, move |venus| async move {
            venus.symlink(afs_venus::NodeId::ROOT, name.as_bytes(), text.as_bytes()).await
        });
        made.unwrap();
    }
}

fn create(cell: &Cell, name: &'static str, server: u8) {
    let options = CreateOptions { name: name.into(), place: place(server, 0), quota: 0, id: None };
    cell.run(|admin| async move { admin.create(options).await }).unwrap();
}

fn release(cell: &Cell) {
    let options = ReleaseOptions { volume: "v".into(), ..ReleaseOptions::default() };
    cell.run(|admin| async move { admin.release(options).await }).unwrap();
}

fn back_up(cell: &Cell) {
    cell.run(|admin| async move { admin.backup("v").await }).unwrap();
}

/// A volume with three kinds of readers, and what each of them is to read.
struct States {
    cell: Cell,
    writer: Client,
    /// Readers of the volume itself, its copies and its backup.
    readers: [Client; 3],
    expected: [String; 3],
    /// What the snapshot has.
    kept: String,
    count: u32,
}

impl States {
    /// With `beside`, one of the copies is where the volume is.
    fn new(seed: u64, beside: bool) -> Self {
        let cell = Cell::new(seed, 2);
        create(&cell, "v", 0);
        // Before there is a copy, which would be the root.
        let (writer, itself) = (Client::new(&cell, 1, "v"), Client::new(&cell, 2, "v"));
        let sites = if beside { vec![place(0, 0), place(1, 0)] } else { vec![place(1, 0)] };
        for site in sites {
            cell.run(move |admin| async move { admin.add_site("v", site, false).await }).unwrap();
        }
        writer.write(&cell, "file", "0");
        release(&cell);
        back_up(&cell);
        cell.run(|admin| async move { admin.create_snapshot("v", "kept").await }).unwrap();
        let readers = [itself, Client::new(&cell, 3, "v.readonly"), Client::new(&cell, 4, "v.backup")];
        let expected = [(); 3].map(|()| "0".to_owned());
        Self { cell, writer, readers, expected, kept: "0".into(), count: 0 }
    }

    fn step(&mut self, rng: &mut SimRng) -> u64 {
        let what = rng.below(9);
        match what {
            0..4 => {
                self.count += 1;
                self.expected[0] = self.count.to_string();
                self.writer.write(&self.cell, "file", &self.expected[0]);
            }
            4 | 5 => {
                release(&self.cell);
                self.expected[1] = self.expected[0].clone();
            }
            6 | 7 => {
                back_up(&self.cell);
                self.expected[2] = self.expected[0].clone();
            }
            _ => {
                self.cell.run(|admin| async move { admin.restore_snapshot("v", "kept").await }).unwrap();
                self.expected[0] = self.kept.clone();
            }
        }
        what
    }

    fn check(&self, what: &str) {
        let read = self.readers.each_ref().map(|reader| reader.read(&self.cell, "file").unwrap());
        assert_eq!(read, self.expected, "{what}\n{}", self.cell.sim.log_tail(20));
    }
}

#[test]
fn releases_backups_and_restores_within_a_second_are_seen() {
    for seed in 0..12 {
        let mut states = States::new(seed, seed % 2 == 1);
        let mut rng = states.cell.sim.fork_rng();
        for step in 0..40 {
            let what = states.step(&mut rng);
            states.cell.sim.run_for(SOON + rng.duration(Duration::ZERO, Duration::from_millis(600)));
            states.check(&format!("seed {seed}, step {step}: {what}"));
        }
    }
}

/// A reader that could not be told knows a new state by its creation time alone.
#[test]
fn a_reader_that_was_cut_off_sees_the_last_of_two_releases_of_a_second() {
    for seed in 0..8 {
        let mut states = States::new(seed, seed % 2 == 1);
        let nodes: Vec<NodeId> = states.readers.iter().map(|reader| reader.node).collect();
        let mut rng = states.cell.sim.fork_rng();
        for round in 0..6 {
            // Each in the second of the state that is known.
            states.step(&mut rng);
            release(&states.cell);
            back_up(&states.cell);
            (states.expected[1], states.expected[2]) =
                (states.expected[0].clone(), states.expected[0].clone());
            states.cell.sim.run_for(SOON);
            states.check(&format!("seed {seed}, round {round}"));
            let servers: Vec<NodeId> = states.cell.servers.iter().map(|server| server.node).collect();
            let pairs: Vec<_> = nodes.iter().flat_map(|a| servers.iter().map(move |b| (*a, *b))).collect();
            for (reader, server) in &pairs {
                states.cell.sim.cut(*server, *reader);
                states.cell.sim.cut(*reader, *server);
            }
            for _ in 0..4 {
                states.step(&mut rng);
            }
            for (reader, server) in &pairs {
                states.cell.sim.mend(*server, *reader);
                states.cell.sim.mend(*reader, *server);
            }
            states.cell.sim.run_for(PROBED);
            states.check(&format!("seed {seed}, round {round}, after the cut"));
        }
    }
}

/// How homes are rolled: the names of two volumes are exchanged while both are mounted.
#[test]
fn an_exchange_of_names_is_seen_behind_every_mount_point_and_takes_the_writes() {
    let cell = Cell::new(3, 2);
    for (name, server) in [("top", 0), ("home", 0), ("home.new", 1)] {
        create(&cell, name, server);
    }
    let (a, b) = (Client::new(&cell, 1, "top"), Client::new(&cell, 2, "top"));
    a.link(&cell, "home", "#home.");
    a.link(&cell, "new", "#home.new.");
    a.write(&cell, "home/file", "old");
    a.write(&cell, "new/file", "new");
    for client in [&a, &b] {
        assert_eq!(client.read(&cell, "home/file").as_deref(), Ok("old"));
        assert_eq!(client.read(&cell, "new/file").as_deref(), Ok("new"));
        client.hold(&cell, "home");
        client.hold(&cell, "new");
        client.names.0.lock().clear();
    }
    cell.run(|admin| async move { admin.swap("home", "home.new").await }).unwrap();
    cell.sim.run_for(SOON);
    for client in [&a, &b] {
        let told = std::mem::take(&mut *client.names.0.lock());
        assert!(["home", "new"].iter().all(|name| told.iter().any(|it| it == name)), "{told:?}");
        assert_eq!(client.read(&cell, "home/file").as_deref(), Ok("new"));
        assert_eq!(client.read(&cell, "new/file").as_deref(), Ok("old"));
    }
    b.write(&cell, "home/more", "to the new one");
    assert_eq!(a.read(&cell, "home/more").as_deref(), Ok("to the new one"));
    assert!(a.read(&cell, "new/more").is_err());
    let names = cell.run(|admin| async move {
        let both = [admin.group("home").await?, admin.group("home.new").await?];
        Ok(both.map(|group| group.home().unwrap()))
    });
    assert_eq!(names.unwrap(), [place(1, 0), place(0, 0)]);
    let wrong = cell.run(|admin| async move { admin.check(&afs_admin::CheckOptions::default()).await });
    assert_eq!(wrong.unwrap().findings, []);
}

/// No server recalls a name from a client that has no promise in the volume: its term ends then.
#[test]
fn a_name_that_nobody_recalled_is_asked_for_again_after_its_term() {
    let cell = Cell::new(4, 2);
    for (name, server) in [("top", 0), ("home", 0), ("home.new", 1)] {
        create(&cell, name, server);
    }
    let a = Client::new(&cell, 1, "top");
    a.link(&cell, "home", "#home.");
    a.write(&cell, "home/file", "old");
    let kept_for = |client: &Client| {
        let looked_up = client.on(&cell, |venus| async move { venus.walk(b"home", true).await });
        let found =
            client.on(&cell, |venus| async move { venus.lookup(afs_venus::NodeId::ROOT, b"home").await });
        looked_up.and(found).unwrap().name_for.unwrap()
    };
    let term = kept_for(&a);
    assert!(term > Duration::from_secs(590) && term <= Duration::from_secs(600), "{term:?}");
    let nodes: Vec<NodeId> = cell.servers.iter().map(|server| server.node).collect();
    nodes.iter().for_each(|server| cell.sim.cut(*server, a.node));
    cell.run(|admin| async move { admin.swap("home", "home.new").await }).unwrap();
    cell.sim.run_for(term + SOON);
    nodes.iter().for_each(|server| cell.sim.mend(*server, a.node));
    cell.sim.run_for(PROBED);
    assert!(a.read(&cell, "home/file").is_err(), "the other volume has no such file");
}
