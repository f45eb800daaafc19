//! Database servers whose lists do not end: the tool says which server that is.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use afs_admin::{Admin, AdminError, CheckOptions, EntryFilter};
use afs_rpc::Table;
use afs_sim::Sim;
use afs_testkit::administrator::admin;
use afs_testkit::net;
use afs_wire::error::AbortCode;
use afs_wire::operations::{ListOperations, ListOperationsReply, OpenOperation, Operations};
use afs_wire::rpc::ServiceId;
use afs_wire::vl::{Entry, ListAttributesN2, ListAttributesN2Reply};
use afs_wire::xdr::BoundedVec;

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const LONG: Duration = Duration::from_secs(10);

/// What a server lies.
#[derive(Clone, Copy)]
struct Lies {
    /// The index after the page of an index.
    next: fn(i32) -> i32,
    /// The numbers of the operations after one.
    after: fn(u64) -> std::ops::Range<u64>,
}

/// What a tool says of a server.
fn said<T, F>(lies: Lies, work: impl FnOnce(Admin) -> F + Send + 'static) -> String
where
    T: Send + 'static,
    F: Future<Output = Result<T, AdminError>> + Send + 'static,
{
    let sim = Sim::new(1);
    let (tool, server) = (sim.node("tool", [10, 0, 0, 1].into()), sim.node("server", SERVER.into()));
    let rx = net::endpoint(&sim, server, (SERVER, 7003).into());
    let entries = Table::new(ServiceId::LOCATION, Arc::new(lies));
    rx.listen(Arc::new(entries.call(|lies: Arc<Lies>, _, call: ListAttributesN2| async move {
        let entries = BoundedVec::first_of([Entry::default()]);
        Ok::<_, AbortCode>(ListAttributesN2Reply { count: 1, entries, next: (lies.next)(call.start) })
    })))
    .unwrap();
    let operations = Table::new(ServiceId::OPERATIONS, Arc::new(lies));
    rx.listen(Arc::new(operations.call(|lies: Arc<Lies>, _, call: ListOperations| async move {
        let operation = |id| OpenOperation { id, ..OpenOperation::default() };
        let operations = Operations::first_of((lies.after)(call.after).map(operation));
        Ok::<_, AbortCode>(ListOperationsReply { operations })
    })))
    .unwrap();
    net::keep(&sim.env(server), rx);
    let env = sim.env(tool);
    let rx = net::endpoint(&sim, tool, ([10, 0, 0, 1], 7001).into());
    let work = work(admin(&env, rx, SERVER, "tool"));
    let result = sim.block_on(tool, LONG, work).unwrap_or_else(|hang| panic!("{hang}"));
    result.map(drop).unwrap_err().to_string()
}

#[test]
fn a_list_of_entries_whose_pages_do_not_go_forward_ends_with_the_name_of_its_server() {
    for (next, index) in [
        ((|_| 7) as fn(i32) -> i32, "7 as the index after 7"),
        (|start| if start == 3 { 2 } else { 3 }, "2 as the index after 3"),
        (|_| -2, "-2 as the index after 0"),
    ] {
        let lies = Lies { next, after: |_| 0..0 };
        let why = said(lies, |admin| async move { admin.entries(&EntryFilter::default()).await });
        assert_eq!(why, format!("Could not list the VLDB: the location server 10.0.0.2 sent {index}"));
        let options = CheckOptions { server: Some(SERVER), ..CheckOptions::default() };
        let why = said(lies, |admin| async move { admin.check(&options).await });
        assert!(why.contains(&format!("the location server 10.0.0.2 sent {index}")), "{why}");
    }
}

#[test]
fn a_list_of_operations_without_end_ends_with_the_name_of_its_server() {
    for after in [(|_| 1..20) as fn(u64) -> std::ops::Range<u64>, |last| last + 1..last + 30] {
        let why = said(Lies { next: |_| -1, after }, |admin| async move { admin.operations().await });
        assert!(why.ends_with("the list that server 10.0.0.2 sends does not end"), "{why}");
    }
}
