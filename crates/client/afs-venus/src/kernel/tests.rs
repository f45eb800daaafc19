//! Tests of the kernel caches alone, with a sink that records invalidations.

use std::future::{Future, pending};
use std::pin::Pin;

use afs_rpc::Parts;
use afs_sim::Sim;
use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};
use parking_lot::Mutex;

use super::*;
use crate::key::CellIndex;

#[derive(Default)]
struct Recorder(Mutex<Vec<String>>);

impl InvalidationSink for Recorder {
    fn attributes(&self, node: NodeId) {
        self.0.lock().push(format!("attributes {}", node.0));
    }

    fn data(&self, node: NodeId) {
        self.0.lock().push(format!("data {}", node.0));
    }

    fn entry(&self, parent: NodeId, name: &[u8]) {
        self.0.lock().push(format!("entry {} {}", parent.0, String::from_utf8_lossy(name)));
    }
}

/// A sink that never settles.
struct Stuck;

impl InvalidationSink for Stuck {
    fn attributes(&self, _: NodeId) {}
    fn data(&self, _: NodeId) {}
    fn entry(&self, _: NodeId, _: &[u8]) {}

    fn settled(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(pending())
    }
}

fn kernel() -> (KernelCaches, Arc<Recorder>) {
    let sink = Arc::new(Recorder::default());
    (KernelCaches::new(Parts::inline(), sink.clone(), Arc::default(), Duration::from_secs(1)), sink)
}

/// Directories have odd vnode numbers (docs/protocol/fileserver.md).
fn key(n: u32) -> Key {
    Key::new(CellIndex(0), Fid::new(VolumeId(1), VnodeId(n), Uniquifier(1)))
}

#[test]
fn an_object_not_held_is_counted_and_not_invalidated() {
    let (kernel, sink) = kernel();
    kernel.invalidate(key(1));
    assert!(!kernel.invalidate_data(key(2)) && kernel.invalidate_attributes(key(2)).is_none());
    kernel.note_unpromised();
    assert_eq!(kernel.invalidations(), 4);
    assert!(sink.0.lock().is_empty());
}

#[test]
fn a_directory_is_invalidated_with_its_names_and_a_file_alone() {
    let (kernel, sink) = kernel();
    let dir = kernel.nodes().remember(NodeTarget::Object(key(1)), None);
    let file = kernel.nodes().remember(NodeTarget::Object(key(2)), Some((dir, b"file")));
    kernel.invalidate(key(1));
    kernel.invalidate(key(2));
    assert!(kernel.invalidate_data(key(2)));
    let (dir, file) = (dir.0, file.0);
    let expected = [
        format!("attributes {dir}"),
        format!("entry {dir} file"),
        format!("attributes {file}"),
        format!("data {file}"),
    ];
    assert_eq!(*sink.0.lock(), expected);
    assert_eq!(kernel.invalidations(), 3);
}

#[test]
fn a_forgotten_node_is_not_invalidated() {
    let (kernel, sink) = kernel();
    let file = kernel.nodes().remember(NodeTarget::Object(key(2)), None);
    kernel.nodes().forget(file, 1);
    kernel.invalidate(key(2));
    assert!(sink.0.lock().is_empty());
}

#[test]
fn the_wait_for_a_sink_that_never_settles_is_bounded_and_counted() {
    let sim = Sim::new(1);
    let node = sim.node("client", [10, 0, 0, 1].into());
    let env = sim.env(node);
    let counters = Arc::<Counters>::default();
    let kernel = KernelCaches::new(env.clone(), Arc::new(Stuck), counters.clone(), Duration::from_secs(1));
    let began = env.now();
    sim.block_on(node, Duration::from_secs(60), async move { kernel.settled().await }).unwrap();
    assert_eq!(env.now().saturating_since(began), Duration::from_secs(1));
    assert_eq!(counters.values().kernel_waits_cut, 1);
}
