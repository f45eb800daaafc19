//! Several cells in one mount: by configuration, and by look-ups that may lie or hang.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_rpc::{BoxFuture, EnvExt, EnvRef};
use afs_sim::Sim;
use afs_testkit::scripted::{Locations, site};
use afs_testkit::{Claim, ClaimServer, ClientMachine, Server, ServerPlan, UserDirectory, cell_of, net};
use afs_venus::{
    CellResolver, ErrorKind, Kind, MemoryCache, NodeId, OwnIdentity, PinOptions, PinState, Resolved, Token,
    TokenOwner, VenusConfig,
};
use afs_wire::ids::{CellName, VolumeId};
use afs_wire::vl::{EntryFlags, SiteFlags};

use crate::common::{Client, LIMIT, plan};

const HOME: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// An address that no machine has.
const NOWHERE: Ipv4Addr = Ipv4Addr::new(10, 0, 9, 9);
const MINUTE: Duration = Duration::from_secs(60);

fn location(server: Ipv4Addr) -> SocketAddr {
    SocketAddr::new(server.into(), 7003)
}

/// Two cells, each of one server that believes claims with a word of its own.
struct Two {
    sim: Sim,
    home: Server,
    other: Server,
    dns: Arc<Dns>,
}

/// A domain name system of a test.
struct Dns {
    env: EnvRef,
    replies: Mutex<BTreeMap<String, (Duration, Resolved)>>,
    asked: Mutex<Vec<String>>,
}

impl CellResolver for Dns {
    fn resolve(&self, cell: &CellName) -> BoxFuture<'static, Resolved> {
        self.asked.lock().unwrap().push(cell.to_string());
        let reply = self.replies.lock().unwrap().get(cell.as_str()).cloned();
        let (pause, reply) = reply.unwrap_or((Duration::ZERO, Resolved::NotFound { ttl: MINUTE }));
        let env = self.env.clone();
        Box::pin(async move {
            env.sleep(pause).await;
            reply
        })
    }
}

impl Dns {
    fn says(&self, cell: &str, servers: &[SocketAddr], ttl: Duration) {
        self.replies_after(Duration::ZERO, cell, Resolved::Found { location_servers: servers.to_vec(), ttl });
    }

    fn hangs(&self, cell: &str) {
        self.replies_after(LIMIT, cell, Resolved::Failed("late".into()));
    }

    fn replies_after(&self, pause: Duration, cell: &str, reply: Resolved) {
        self.replies.lock().unwrap().insert(cell.into(), (pause, reply));
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

impl Two {
    fn new(seed: u64) -> Two {
        let sim = Sim::new(seed);
        let server = |name: &str, address, word: &'static str| {
            let users = UserDirectory::default();
            users.add("alice", 5);
            let claims = move |_: &EnvRef| -> Vec<Box<dyn afs_rx::ServerSecurity>> {
                vec![Box::new(afs_rx::NullServer), Box::new(ClaimServer(word.into()))]
            };
            let plan = ServerPlan { classes: Arc::new(claims), ..plan(&users) };
            let server = Server::new(&sim, name, address, plan);
            server.start_now();
            server
        };
        let (home, other) = (server("home", HOME, "home"), server("other", OTHER, "other"));
        let dns = Dns { env: sim.env(home.node), replies: Mutex::default(), asked: Mutex::default() };
        Two { sim, home, other, dns: Arc::new(dns) }
    }

    /// A client that has the home cell configured, and these others.
    fn client(&self, others: &[(&str, Ipv4Addr)]) -> Client {
        self.client_with(1, others, |_| {})
    }

    fn client_with(
        &self,
        number: u8,
        others: &[(&str, Ipv4Addr)],
        configure: impl FnOnce(&mut VenusConfig),
    ) -> Client {
        let mut cells = vec![cell_of("home.cell", vec![location(HOME)])];
        cells.extend(others.iter().map(|(name, server)| cell_of(name, vec![location(*server)])));
        let address = [10, 0, 0, 10 + number].into();
        let mut machine = ClientMachine::new(&self.sim, number, address, cells);
        machine.config.resolver = Some(self.dns.clone());
        configure(&mut machine.config);
        Client::start(machine, self.sim.world()).unwrap()
    }

    fn on<T, F>(&self, client: &Client, work: F) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        self.sim.block_on(client.node, LIMIT, work).unwrap_or_else(|hang| panic!("{hang}"))
    }

    fn get(&self, client: &Client, path: &str) -> Result<Vec<u8>, ErrorKind> {
        let (one, path) = (client.clone(), path.to_owned());
        self.on(client, async move { one.get(&path).await.map_err(|error| error.kind) })
    }

    fn put(&self, client: &Client, path: &str, data: &'static [u8]) {
        let (one, path) = (client.clone(), path.to_owned());
        self.on(client, async move { one.put(&path, data).await.unwrap() });
    }

    fn names(&self, client: &Client) -> Vec<String> {
        let one = client.clone();
        self.on(client, async move { one.names("").await.unwrap() })
    }

    /// How long an operation takes.
    fn time<T: Send + 'static>(
        &self,
        client: &Client,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Duration {
        let env = client.env.clone();
        self.on(client, async move {
            let begun = env.now();
            work.await;
            env.now().saturating_since(begun)
        })
    }
}

#[test]
fn cells_stand_side_by_side_and_one_goes_on_without_the_other() {
    let two = Two::new(1);
    let a = two.client(&[("other.cell", OTHER)]);
    two.put(&a, "home.cell/file", b"at home");
    two.put(&a, "other.cell/file", b"elsewhere");
    assert_eq!(two.get(&a, "home.cell/file").unwrap(), b"at home");
    assert_eq!(two.get(&a, ".Other.Cell/file").unwrap(), b"elsewhere");
    assert_eq!(two.names(&a), [".", "..", "home.cell", ".home.cell", "other.cell", ".other.cell"]);
    two.sim.crash(two.other.node);
    two.sim.run_for(MINUTE * 10);
    assert!(two.get(&a, "other.cell/none").is_err());
    let one = a.clone();
    let took = two.time(&a, async move {
        one.put("home.cell/file", b"at home again").await.unwrap();
        one.get("home.cell/file").await.unwrap()
    });
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(two.dns.asked(), [""; 0], "both are configured");
}

#[test]
fn a_token_of_one_cell_is_not_shown_to_another() {
    let two = Two::new(2);
    let a = two.client(&[("other.cell", OTHER)]);
    let alice = a.user(1001);
    for (cell, word) in [("home.cell", "home"), ("other.cell", "other")] {
        let one = a.clone();
        two.on(&a, async move {
            one.mkdir(&format!("{cell}/private")).await.unwrap();
            one.set_acl(&format!("{cell}/private"), &[("alice", "rlidwka")]).await.unwrap();
        });
        let one = alice.clone();
        two.on(&a, async move {
            let token = Token {
                cell: CellName::new(cell).unwrap(),
                security: Claim::of("alice").with_word(word).security(),
                expires: None,
                label: "alice".into(),
                is_narrowed: false,
            };
            // A server that is shown a claim with the word of another one refuses it, and the client drops the token.
            let elsewhere = if cell == "home.cell" { "other.cell" } else { "home.cell" };
            one.venus.set_token(TokenOwner::Uid(1001), token).await.unwrap();
            one.put(&format!("{elsewhere}/public {word}"), b"x").await.unwrap();
            one.put(&format!("{cell}/private/file"), b"x").await.unwrap();
            assert_eq!(one.get(&format!("{cell}/private/file")).await.unwrap(), b"x");
        });
        let denied = two.get(&a, &format!("{cell}/private/file"));
        assert_eq!(denied, Err(ErrorKind::AccessDenied), "without a token");
    }
    assert_eq!(alice.venus.tokens().iter().filter(|token| !token.is_expired).count(), 2);
    let one = alice.clone();
    two.on(&a, async move {
        let other = CellName::new("other.cell").unwrap();
        assert_eq!(one.venus.remove_token(TokenOwner::Uid(1001), Some(&other)).await.unwrap(), 1);
        assert_eq!(one.get("other.cell/private/file").await.unwrap_err().kind, ErrorKind::AccessDenied);
        assert_eq!(one.get("home.cell/private/file").await.unwrap(), b"x");
    });
}

#[test]
fn the_identity_of_the_user_who_mounts_is_shown_to_the_home_cell_alone() {
    let two = Two::new(9);
    let security = Claim::of("alice").with_word("home").security();
    let own = OwnIdentity { uid: 1002, security };
    let a = two.client_with(1, &[("other.cell", OTHER)], |config| config.security.own = Some(own));
    let (alice, nobody) = (a.user(1002), a.user(1003));
    for (cell, is_shown) in [("home.cell", true), ("other.cell", false)] {
        let (one, own) = (nobody.clone(), alice.clone());
        two.on(&a, async move {
            one.mkdir(&format!("{cell}/private")).await.unwrap();
            one.set_acl(&format!("{cell}/private"), &[("alice", "rlidwka")]).await.unwrap();
            let put = own.put(&format!("{cell}/private/file"), b"x").await;
            assert_eq!(
                put.map_err(|error| error.kind),
                if is_shown { Ok(()) } else { Err(ErrorKind::AccessDenied) }
            );
            own.put(&format!("{cell}/public"), b"x").await.unwrap();
        });
    }
}

/// Both trees of a cell whose servers never replied are shown at once, as directories of which nothing else is known; what is done in them
/// fails, and goes on when the servers are there.
#[test]
fn a_cell_whose_servers_do_not_reply_is_shown_and_entered_when_they_do() {
    let two = Two::new(12);
    two.sim.crash(two.other.node);
    let a = two.client(&[("other.cell", OTHER)]);
    let one = a.clone();
    let inside = two.on(&a, async move {
        for round in 0..3 {
            for name in ["home.cell", ".home.cell", "other.cell", ".other.cell"] {
                let began = one.env.now();
                let entry = one.venus.lookup(NodeId::ROOT, name.as_bytes()).await.unwrap();
                assert_eq!(entry.attr.kind, Kind::Directory);
                assert_eq!(one.venus.getattr(entry.node).await.unwrap().kind, Kind::Directory);
                let took = one.env.now().saturating_since(began);
                let most = if round == 0 { Duration::from_secs(3) } else { Duration::from_millis(100) };
                assert!(took < most, "{name}: {took:?}");
            }
        }
        let [usual, writable] = [&b"other.cell"[..], b".other.cell"].map(|name| {
            let venus = one.venus.clone();
            async move { venus.lookup(NodeId::ROOT, name).await.unwrap().node }
        });
        let (usual, writable) = (usual.await, writable.await);
        assert_ne!(usual, writable);
        assert_eq!(one.venus.lookup(usual, b"..").await.unwrap().node, NodeId::ROOT);
        for error in [
            one.venus.lookup(usual, b"file").await.unwrap_err(),
            one.venus.readdir(writable, 0, 9).await.unwrap_err(),
            one.venus.mkdir(usual, b"new", 0o755).await.unwrap_err(),
            one.venus.property(usual, b"afs.fid").await.unwrap_err(),
        ] {
            assert!(matches!(error.kind, ErrorKind::ServerUnreachable | ErrorKind::ReadOnly), "{error}");
        }
        assert_eq!(one.put("other.cell/file", b"x").await.unwrap_err().kind, ErrorKind::ServerUnreachable);
        usual
    });
    two.other.restart();
    two.sim.run_for(MINUTE);
    // Somebody was inside: the kernel is made to look the path up again.
    let one = a.clone();
    two.on(&a, async move {
        let again = one.venus.lookup(inside, b"file").await.unwrap_err();
        assert_eq!(again.errno(), 116, "{again}");
    });
    two.put(&a, "other.cell/file", b"x");
    assert_eq!(two.get(&a, "other.cell/file").unwrap(), b"x");
}

#[test]
fn a_mount_point_leads_into_another_cell_and_back() {
    let two = Two::new(3);
    two.dns.says("found.cell", &[location(OTHER)], MINUTE);
    let a = two.client(&[]);
    let one = a.clone();
    two.on(&a, async move {
        one.mount("home.cell/over", "#found.cell:root.cell.").await.unwrap();
        one.put("home.cell/over/file", b"elsewhere").await.unwrap();
        assert_eq!(one.get("found.cell/file").await.unwrap(), b"elsewhere");
        let over = one.find("home.cell/over").await.unwrap();
        assert!(!over.attr.is_home, "an owner there is no user of the home cell");
        assert!(one.find("home.cell").await.unwrap().attr.is_home);
        assert_eq!(&one.venus.property(over.node, b"afs.cell").await.unwrap()[..], b"found.cell");
        // A cell that does not exist: the mount point is shown, and leads nowhere.
        one.mount("home.cell/nowhere", "#no.such.cell:root.cell.").await.unwrap();
        assert_eq!(one.get("home.cell/nowhere/file").await.unwrap_err().kind, ErrorKind::NoVolume);
    });
}

#[test]
fn an_unknown_cell_is_looked_up_once_if_its_name_can_be_a_domain() {
    let two = Two::new(4);
    let a = two.client(&[]);
    for name in ["other", ".hidden", "a.b", "192.0.2.1", "-.org", "x y.org", "bin.@sys", &"long.".repeat(20)]
    {
        assert_eq!(two.get(&a, &format!("{name}/file")), Err(ErrorKind::NotFound), "{name}");
    }
    assert_eq!(two.dns.asked(), [""; 0]);
    for _ in 0..5 {
        assert_eq!(two.get(&a, "late.cell/file"), Err(ErrorKind::NotFound));
        assert_eq!(two.get(&a, ".LATE.cell/file"), Err(ErrorKind::NotFound));
    }
    assert_eq!(two.dns.asked(), ["late.cell"], "the reply is remembered");
    two.dns.says("late.cell", &[location(OTHER)], MINUTE);
    assert_eq!(two.names(&a).len(), 4);
    two.sim.run_for(MINUTE);
    two.put(&a, "late.cell/file", b"now");
    assert_eq!(two.dns.asked(), ["late.cell"]);
    assert_eq!(two.names(&a)[4..], ["late.cell", ".late.cell"], "it was entered");
}

#[test]
fn the_addresses_of_a_cell_are_looked_up_again_when_they_are_not_valid_any_more() {
    let two = Two::new(5);
    two.dns.says("found.cell", &[location(OTHER)], MINUTE * 5);
    let a = two.client(&[]);
    two.put(&a, "found.cell/file", b"x");
    two.dns.says("found.cell", &[location(NOWHERE)], MINUTE * 5);
    two.sim.run_for(MINUTE * 4);
    assert_eq!(two.dns.asked(), ["found.cell"], "they are valid");
    two.sim.run_for(MINUTE * 2);
    assert_eq!(two.dns.asked(), ["found.cell"], "by then");
    assert_eq!(a.venus.cells()[1].location_servers, [location(NOWHERE)]);
    two.sim.run_for(MINUTE * 20);
    assert_eq!(two.dns.asked(), [""; 0], "nothing is asked of the cell");
    // Without a reply the last addresses stay.
    two.dns.hangs("found.cell");
    let one = a.clone();
    two.on(&a, async move {
        one.venus.set_property(afs_venus::NodeId::ROOT, b"afs.flush", b"locations").await.unwrap();
        assert!(one.get("found.cell/file").await.is_err());
    });
    two.sim.run_for(MINUTE);
    let asked = two.dns.asked();
    assert!((1..4).contains(&asked.len()), "once a minute: {asked:?}");
    assert_eq!(a.venus.cells()[1].location_servers, [location(NOWHERE)]);
    two.dns.says("found.cell", &[location(OTHER)], MINUTE * 5);
    two.sim.run_for(MINUTE * 3);
    assert_eq!(two.get(&a, "found.cell/file").unwrap(), b"x");
    assert_eq!(a.venus.cells()[1].location_servers, [location(OTHER)]);
}

/// Replies are forged as easily as datagrams: they name the home cell, this machine, all machines, and more cells than there are.
#[test]
fn a_look_up_changes_no_configured_cell_and_sends_no_packet_where_no_server_can_be() {
    let two = Two::new(6);
    two.dns.says("home.cell", &[location(NOWHERE)], MINUTE);
    two.dns.says("other.cell", &[location(NOWHERE)], MINUTE);
    let a = two.client(&[("other.cell", OTHER)]);
    two.put(&a, "home.cell/file", b"x");
    two.put(&a, "other.cell/file", b"x");
    two.sim.run_for(MINUTE * 60);
    assert_eq!(two.dns.asked(), [""; 0]);
    for (n, octets) in
        [[127, 0, 0, 1], [0; 4], [255; 4], [224, 0, 0, 1], [240, 0, 0, 1]].into_iter().enumerate()
    {
        let name = format!("bad{n}.cell");
        two.dns.says(&name, &[location(octets.into())], MINUTE);
        assert_eq!(two.get(&a, &format!("{name}/file")), Err(ErrorKind::NotFound), "{octets:?}");
    }
    let one = a.clone();
    let dns = two.dns.clone();
    let found = two.on(&a, async move {
        for n in 0..300 {
            let name = format!("many{n}.cell");
            dns.says(&name, &[location(OTHER)], Duration::from_secs(u64::MAX / 4));
            let _ = one.find(&name).await;
        }
        one.venus.cells().iter().filter(|cell| cell.is_found).count()
    });
    assert_eq!(found, 256);
    assert_eq!(two.get(&a, "home.cell/file").unwrap(), b"x");
}

#[test]
fn a_look_up_that_hangs_delays_no_other_cell() {
    let two = Two::new(7);
    for n in 0..40 {
        two.dns.hangs(&format!("slow{n}.cell"));
    }
    let a = two.client(&[]);
    let ended = Arc::new(Mutex::new(0));
    for n in 0..40 {
        let (one, ended) = (a.clone(), ended.clone());
        a.env.spawn(Box::pin(async move {
            assert_eq!(one.find(&format!("slow{n}.cell")).await.unwrap_err().kind, ErrorKind::NotFound);
            *ended.lock().unwrap() += 1;
        }));
    }
    two.sim.run_for(Duration::from_secs(1));
    let one = a.clone();
    let took = two.time(&a, async move { one.put("home.cell/file", b"x").await.unwrap() });
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(two.dns.asked().len(), 16, "so many at a time");
    two.sim.run_for(Duration::from_secs(6));
    assert_eq!(*ended.lock().unwrap(), 40);
}

#[test]
fn a_cell_is_added_or_moved_while_the_mount_runs() {
    let two = Two::new(8);
    let a = two.client(&[("other.cell", NOWHERE)]);
    assert_eq!(two.get(&a, "other.cell/file"), Err(ErrorKind::ServerUnreachable));
    assert_eq!(two.get(&a, "third.cell/file"), Err(ErrorKind::NotFound));
    for name in ["other.cell", "third.cell"] {
        a.venus.configure_cell(&cell_of(name, vec![location(OTHER)])).unwrap();
    }
    two.put(&a, "other.cell/file", b"x");
    assert_eq!(two.get(&a, "third.cell/file").unwrap(), b"x", "not what was remembered of the name");
    let known: Vec<String> = a.venus.cells().iter().map(|cell| cell.name.to_string()).collect();
    assert_eq!(known, ["home.cell", "other.cell", "third.cell"]);
    assert!(a.venus.configure_cell(&cell_of("other.cell", vec![])).is_err());
    assert!(two.home.volume("root.cell").is_some());
}

#[test]
fn a_pin_in_a_cell_that_was_looked_up_is_read_without_its_server_when_the_cell_is_found_again() {
    let two = Two::new(13);
    two.dns.says("found.cell", &[location(OTHER)], MINUTE);
    let cache = Arc::new(MemoryCache::new(64 << 20));
    let kept = cache.clone();
    let a = two.client_with(1, &[], |config| config.cache = kept);
    two.put(&a, "found.cell/file", b"of last time");
    let (one, user) = (a.clone(), TokenOwner::Uid(1));
    two.on(&a, async move {
        let options = PinOptions { is_recursive: false, is_offline: true };
        one.venus.pin(user, b"found.cell/file", options).await.unwrap();
    });
    two.sim.run_for(MINUTE);
    assert_eq!(a.venus.pins(user, 0)[0].state, PinState::Complete);
    two.sim.crash(a.node);
    two.sim.crash(two.other.node);
    // A look-up that hangs delays neither the start of the mount nor another cell.
    two.dns.hangs("found.cell");
    let begun = two.sim.now();
    let b = two.client_with(2, &[], |config| config.cache = cache);
    two.put(&b, "home.cell/file", b"here");
    assert!(two.sim.now() - begun < Duration::from_secs(1));
    assert_eq!(two.get(&b.user(1), "found.cell/file"), Err(ErrorKind::NotFound));
    assert!(b.venus.pins(user, 0).is_empty());
    two.dns.says("found.cell", &[location(OTHER)], MINUTE);
    two.sim.run_for(3 * MINUTE);
    assert_eq!(two.get(&b.user(1), "found.cell/file"), Ok(b"of last time".to_vec()));
    assert!(b.venus.pins(user, 0)[0].unpromised.is_some());
}

#[test]
fn programs_that_enter_a_cell_at_once_start_one_look_up() {
    let two = Two::new(10);
    let second = Duration::from_secs(1);
    let found = Resolved::Found { location_servers: vec![location(OTHER)], ttl: MINUTE };
    two.dns.replies_after(second, "found.cell", found);
    two.dns.replies_after(second, "none.cell", Resolved::NotFound { ttl: MINUTE });
    let a = two.client(&[]);
    let one = a.clone();
    two.on(&a, async move {
        for (cell, is_found) in [("found.cell", true), ("none.cell", false)] {
            let all = afs_rpc::future::join_all((0..5).map(|_| one.find(cell))).await;
            assert!(all.iter().all(|entered| entered.is_ok() == is_found), "{cell}");
        }
    });
    assert_eq!(two.dns.asked(), ["found.cell", "none.cell"]);
}

/// What a domain name system says of time may be as wrong as the rest.
#[test]
fn a_reply_counts_for_a_bounded_time_whatever_it_says() {
    let two = Two::new(11);
    let (zero, always) = (Duration::ZERO, Duration::from_secs(u64::MAX / 4));
    let a = two.client(&[]);
    let asked_for = |name: &str, pause: Duration, reply: Resolved| {
        two.dns.replies_after(zero, name, reply);
        let path = format!("{name}/file");
        [zero, pause].map(|pause| {
            two.sim.run_for(pause);
            assert!(two.get(&a, &path).is_err());
            two.dns.asked().iter().filter(|asked| *asked == name).count()
        })
    };
    let seconds = Duration::from_secs;
    assert_eq!(asked_for("gone1.cell", seconds(29), Resolved::NotFound { ttl: zero }), [1, 0]);
    assert_eq!(asked_for("gone2.cell", seconds(601), Resolved::NotFound { ttl: always }), [1, 1]);
    assert_eq!(asked_for("fails1.cell", seconds(14), Resolved::Failed(String::new())), [1, 0]);
    assert_eq!(asked_for("fails2.cell", seconds(16), Resolved::Failed(String::new())), [1, 1]);
    let found = |ttl| Resolved::Found { location_servers: vec![location(OTHER)], ttl };
    assert_eq!(asked_for("found1.cell", seconds(50), found(zero)), [1, 0]);
    assert_eq!(asked_for("found2.cell", seconds(86_500), found(always)), [1, 1]);
}

#[test]
fn a_look_up_that_began_before_a_cell_was_configured_does_not_change_it() {
    let two = Two::new(12);
    two.dns.says("found.cell", &[location(OTHER)], MINUTE * 5);
    let a = two.client(&[]);
    two.put(&a, "found.cell/file", b"x");
    two.dns.asked();
    let late = Resolved::Found { location_servers: vec![location(NOWHERE)], ttl: MINUTE * 5 };
    two.dns.replies_after(Duration::from_secs(3), "found.cell", late);
    let is_asked = || !two.dns.asked.lock().unwrap().is_empty();
    two.sim.run_until(MINUTE * 10, is_asked).unwrap();
    a.venus.configure_cell(&cell_of("found.cell", vec![location(OTHER)])).unwrap();
    two.sim.run_for(MINUTE);
    assert_eq!(a.venus.cells()[1].location_servers, [location(OTHER)]);
}

#[test]
fn the_names_that_are_remembered_and_the_cells_are_bounded() {
    let two = Two::new(13);
    let a = two.client(&[]);
    let one = a.clone();
    two.on(&a, async move {
        for n in 0..1100 {
            assert!(one.find(&format!("none{n}.cell")).await.is_err());
        }
    });
    assert_eq!(two.dns.asked().len(), 1100);
    for (name, is_asked) in [("none1099.cell", false), ("none0.cell", true)] {
        assert_eq!(two.get(&a, &format!("{name}/file")), Err(ErrorKind::NotFound));
        assert_eq!(!two.dns.asked().is_empty(), is_asked, "{name}");
    }
    let add = |n: u32| a.venus.configure_cell(&cell_of(&format!("more{n}.cell"), vec![location(OTHER)]));
    assert_eq!((0..1100).filter(|n| add(*n).is_ok()).count(), 1023, "with the home cell 1024");
}

/// Its location servers may name this machine as any other.
#[test]
fn no_file_server_of_a_cell_that_was_found_is_called_on_this_machine() {
    let two = Two::new(14);
    let (locations, here) = (Locations::default(), Ipv4Addr::LOCALHOST);
    let site = site(here, SiteFlags::RW_VOLUME);
    locations.enter("root.cell", [1, 0, 0].map(VolumeId), EntryFlags::RW_EXISTS, vec![site]);
    let node = two.sim.node("locations", NOWHERE.into());
    net::serve(&two.sim, node, location(NOWHERE), locations.service());
    two.dns.says("found.cell", &[location(NOWHERE)], MINUTE);
    let a = two.client(&[]);
    assert_eq!(two.get(&a, "found.cell/file"), Err(ErrorKind::NoVolume));
    let log = two.sim.log_tail(1000);
    assert!(log.contains("10.0.9.9:7003") && !log.contains("127.0.0.1"), "{log}");
}
