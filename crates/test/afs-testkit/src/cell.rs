//! Cell whose databases have a machine of their own, with file servers and the machine of an administrator.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use afs_admin::{Admin, AdminResult};
use afs_rpc::{EnvRef, Rx, Security};
use afs_sim::{NodeId, Sim};
use afs_wire::rpc::Request;
use afs_wire::vl::RegisterAddrs;
use afs_wire::xdr::BoundedVec;

use crate::plan::{ServerPlan, Service};
use crate::server::Server;
use crate::{administrator, net};

/// The machines of a cell, all of them started.
pub struct Cell {
    /// The world.
    pub sim: Sim,
    /// The machine with the databases, at [`Cell::address`] 1.
    pub databases: Server,
    /// The file servers, at addresses from 2 on.
    pub servers: Vec<Server>,
    /// The administrator's machine, at address 100.
    pub tool: NodeId,
}

impl Cell {
    /// The address of the machine with that number.
    #[must_use]
    pub fn address(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, last)
    }

    /// A cell of so many file servers, on which all is set up as the plan says but for the services; with a data
    /// service if the plan has one.
    #[must_use]
    pub fn new(seed: u64, servers: u8, plan: &ServerPlan) -> Self {
        let sim = Sim::new(seed);
        let with = |services: &[Service]| ServerPlan { services: services.to_vec(), ..plan.clone() };
        let databases = with(&[Service::Location, Service::Journal]);
        let databases = Server::new(&sim, "databases", Self::address(1), databases);
        let data = plan.services.contains(&Service::Data).then_some(Service::Data);
        let file_server = [Service::File, Service::Volume].into_iter().chain(data).collect::<Vec<_>>();
        let file_server = with(&file_server);
        let server = |n| Server::new(&sim, &format!("server{n}"), Self::address(2 + n), file_server.clone());
        let servers = (0..servers).map(server).collect();
        let tool = sim.node("tool", Self::address(100).into());
        let cell = Self { sim, databases, servers, tool };
        cell.start();
        cell
    }

    fn start(&self) {
        self.databases.start_databases().expect("the databases start");
        self.servers.iter().for_each(Server::start_now);
        for server in &self.servers {
            let addresses = BoundedVec::first_of([server.address]);
            self.tell_databases(RegisterAddrs { uuid: server.uuid(), spare: 0, addresses });
        }
    }

    /// Makes one call to the location service, which must succeed.
    ///
    /// # Panics
    /// If it does not.
    pub fn tell_databases<R: Request + Send + Sync + 'static>(&self, request: R)
    where
        R::Reply: Send + 'static,
    {
        drop(self.ask_databases(request));
    }

    /// The same, with its reply.
    ///
    /// # Panics
    /// As [`Cell::tell_databases`].
    pub fn ask_databases<R: Request + Send + Sync + 'static>(&self, request: R) -> R::Reply
    where
        R::Reply: Send + 'static,
    {
        let (_, rx) = self.endpoint_of(self.tool, Self::address(100));
        let at = SocketAddr::from((self.databases.address, 7003));
        let databases = rx.connection(at, R::SERVICE, Security::null());
        let asked = async move { databases.call(&request).await };
        self.sim.block_on(self.tool, Duration::from_secs(60), asked).expect("a reply").expect("success")
    }

    /// Crashes a machine, and restarts it some seconds later with its services. The tool is not restarted.
    ///
    /// # Panics
    /// If they do not start.
    pub fn crash(&self, node: NodeId) {
        self.sim.crash(node);
        self.sim.run_for(Duration::from_secs(4));
        if node == self.tool {
            return;
        }
        self.sim.restart(node);
        match self.servers.iter().find(|server| server.node == node) {
            Some(server) => server.start_now(),
            None => self.databases.start_databases().expect("the databases start"),
        }
    }

    /// The machines that can crash: file servers, tool, databases.
    #[must_use]
    pub fn victims(&self) -> Vec<NodeId> {
        self.servers.iter().map(|server| server.node).chain([self.tool, self.databases.node]).collect()
    }

    /// The tool's handle.
    #[must_use]
    pub fn admin(&self) -> Admin {
        let (env, rx) = self.endpoint_of(self.tool, Self::address(100));
        administrator::admin(&env, rx, self.databases.address, "tool")
    }

    /// Runs the tool's work to its end.
    ///
    /// # Errors
    /// The tool's.
    ///
    /// # Panics
    /// If it does not end.
    pub fn run<T, W, F>(&self, work: W) -> AdminResult<T>
    where
        T: Send + 'static,
        W: FnOnce(Admin) -> F,
        F: Future<Output = AdminResult<T>> + Send + 'static,
    {
        let work = work(self.admin());
        self.sim.block_on(self.tool, OPERATION, work).expect("an end")
    }

    /// Waits until no operation is in progress. Asks from the databases' machine, because the tool may be dead.
    ///
    /// # Panics
    /// If there is one after twenty minutes.
    pub fn wait_until_quiet(&self) {
        let node = self.databases.node;
        let (env, rx) = self.endpoint_of(node, self.databases.address);
        let admin = administrator::admin(&env, rx, self.databases.address, "asker");
        let quiet = administrator::no_operation_is_open(admin, env);
        if let Err(hang) = self.sim.block_on(node, OPERATION, quiet) {
            panic!("an operation does not end: {hang}\n{}", self.sim.log_tail(40));
        }
    }

    /// An endpoint at an unused port.
    fn endpoint_of(&self, node: NodeId, address: Ipv4Addr) -> (EnvRef, Rx) {
        let port = self.sim.fork_rng().between(20_000, 60_000) as u16;
        (self.sim.env(node), net::endpoint(&self.sim, node, SocketAddr::new(address.into(), port)))
    }
}

/// Virtual time that an operation may take.
const OPERATION: Duration = Duration::from_secs(1200);
