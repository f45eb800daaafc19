//! Requests of a cell's owner on the control socket: calls to its services, statistics, scrub reports, imports,
//! counters of the data path, states of partitions.

use crate::configuration::options::ServerOptions;
use crate::configuration::ports::Ports;
use crate::control::{ControlReply, ControlRequest, Statistics};
use crate::drives::AttachedDrives;
use crate::servers::DriveCounts;
use crate::servers::import::{self, Importer};
use crate::servers::owner_calls::OwnerCalls;
use crate::servers::owner_records::OwnerChange;
use crate::servers::partition_reports;
use crate::servers::roles::Role;
use crate::servers::scrub;
use crate::servers::security::CellSecurity;
use afs_net::{System, Udp};
use afs_rpc::{CallError, Connection, EnvRef, Rx};
use afs_server::audit::Audit;
use afs_server::scrub::Scrubber;
use afs_server::{FileServer, Partitions};
use afs_wire::rpc::ServiceId;
use serde::Serialize;
use std::sync::{Arc, Weak};

/// Handler of the requests of the owner.
pub(super) struct OwnerRequests {
    pub(super) system: Arc<System>,
    pub(super) calls: OwnerCalls,
    pub(super) audit: Audit,
    /// The transports of the services, for statistics.
    pub(super) transports: Vec<Rx>,
    pub(super) scrubber: Option<Scrubber>,
    /// On a host that serves the databases.
    pub(super) importer: Option<Importer>,
    pub(super) drives: AttachedDrives,
    pub(super) partitions: Partitions,
    /// On a host with a file server.
    pub(super) file_server: Option<Weak<FileServer>>,
}

impl OwnerRequests {
    /// Serves one request of the user with this id, and records what it changed. May wait for disks and other hosts.
    pub(super) fn serve(&self, uid: u32, request: ControlRequest) -> ControlReply {
        let change = OwnerChange::of(&request);
        let reply = self.reply(uid, request);
        if let Some(change) = change {
            change.record(&self.audit, self.calls.person(uid), self.calls.address, &reply);
        }
        reply
    }

    fn reply(&self, uid: u32, request: ControlRequest) -> ControlReply {
        match request {
            ControlRequest::Call { service, call } => match self.calls.connection(service, uid) {
                Some(connection) => self.system.block_on(call_service(&connection, call)),
                None => ControlReply::Refused(format!("the cell has no service {service}")),
            },
            ControlRequest::Statistics => statistics(&self.transports),
            ControlRequest::Scrub => json(&scrub::reports(self.scrubber.as_ref())),
            ControlRequest::Partitions => json(&partition_reports::reports(&self.partitions)),
            ControlRequest::DataPath => {
                let server = self.file_server.as_ref().and_then(Weak::upgrade);
                json(&server.map(|server| DriveCounts::of(&server)))
            }
            ControlRequest::Import(request) => {
                match import::import_json(&self.system, self.importer.as_ref(), &request) {
                    Ok(done) => json(&done),
                    Err(error) => ControlReply::Refused(error.to_string()),
                }
            }
            ControlRequest::Drives(json) => self.drives(&json),
        }
    }
}

impl OwnerRequests {
    fn drives(&self, json: &[u8]) -> ControlReply {
        let served = match serde_json::from_slice(json) {
            Ok(request) => self.system.block_on(self.drives.serve(request)),
            Err(error) => return ControlReply::Refused(error.to_string()),
        };
        match served {
            Ok(answer) => self::json(&answer),
            Err(error) => ControlReply::Refused(error.to_string()),
        }
    }
}

/// The services that the owner may call, over connections from `owner`.
pub(super) fn owner_calls(
    roles: &[Box<dyn Role>],
    owner: &Udp,
    options: &ServerOptions,
    security: &CellSecurity,
    env: EnvRef,
) -> OwnerCalls {
    let at = |(service, port): (ServiceId, u16)| (service.0, Ports::at(options.listen, port));
    let services = roles.iter().flat_map(|role| role.for_owner(options.ports)).map(at).collect();
    let (rx, security) = (owner.rx().clone(), security.clone());
    OwnerCalls { env, rx, address: owner.local_addr(), services, security, people: Arc::default() }
}

/// Makes one call.
async fn call_service(connection: &Connection, call: Vec<u8>) -> ControlReply {
    let answer = async {
        let mut call = connection.begin(call.into(), true).await?;
        call.read_to_end(connection.rx().limits().reply).await
    };
    match answer.await {
        Ok(reply) => ControlReply::Done(reply.to_vec()),
        Err(CallError::Abort(code)) => ControlReply::Aborted(code.0),
        Err(error) => ControlReply::Refused(error.to_string()),
    }
}

/// Packets of all transports, and processor time of the process.
fn statistics(transports: &[Rx]) -> ControlReply {
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let cpu_us = cpu.tv_sec.unsigned_abs() * 1_000_000 + cpu.tv_nsec.unsigned_abs() / 1000;
    let packets = |rx: &Rx| {
        let stats = rx.stats();
        (stats.packets_sent.iter().sum::<u64>(), stats.packets_read.iter().sum::<u64>())
    };
    let (sent, received): (Vec<u64>, Vec<u64>) = transports.iter().map(packets).unzip();
    let counted =
        Statistics { packets_sent: sent.iter().sum(), packets_received: received.iter().sum(), cpu_us };
    json(&counted)
}

fn json(answer: &impl Serialize) -> ControlReply {
    match serde_json::to_vec(answer) {
        Ok(json) => ControlReply::Done(json),
        Err(error) => ControlReply::Refused(error.to_string()),
    }
}
