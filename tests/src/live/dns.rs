//! A server of DNS for one zone, over UDP, in a namespace of a test.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use simple_dns::rdata::{A, RData, SRV};
use simple_dns::{CLASS, Name, Packet, PacketFlag, RCODE, ResourceRecord};

use super::netns::Netns;

/// How often the server looks whether it is to end.
const LOOK: Duration = Duration::from_millis(200);
/// Seconds for which replies count.
const TTL: u32 = 300;

/// A running server; it ends when this is dropped.
#[derive(Debug)]
pub struct DnsServer {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl DnsServer {
    /// Serves at an address of a namespace: the location servers of these cells, each on one host.
    ///
    /// # Panics
    /// If the address cannot be used.
    #[must_use]
    pub fn start(netns: &Netns, at: SocketAddr, cells: &[(&str, Ipv4Addr)]) -> Self {
        let socket = netns.inside(|| UdpSocket::bind(at)).unwrap_or_else(|e| panic!("{at}: {e}"));
        socket.set_read_timeout(Some(LOOK)).unwrap_or_else(|e| panic!("{at}: {e}"));
        let cells: BTreeMap<String, Ipv4Addr> =
            cells.iter().map(|(name, server)| ((*name).to_owned(), *server)).collect();
        let ended = Arc::new(AtomicBool::new(false));
        let end = ended.clone();
        let thread = std::thread::spawn(move || {
            let mut bytes = [0; 512];
            while !end.load(Ordering::SeqCst) {
                let Ok((length, from)) = socket.recv_from(&mut bytes) else { continue };
                if let Some(reply) = bytes.get(..length).and_then(|query| reply(query, &cells)) {
                    let _ = socket.send_to(&reply, from);
                }
            }
        });
        Self { ended, thread: Some(thread) }
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The SRV record of a cell, or the address of its host `db.CELL`.
fn reply(query: &[u8], cells: &BTreeMap<String, Ipv4Addr>) -> Option<Vec<u8>> {
    let mut packet = Packet::parse(query).ok()?.into_reply();
    packet.set_flags(PacketFlag::RESPONSE);
    let asked = packet.questions.first()?.qname.to_string();
    let (service, host) = (asked.strip_prefix("_afs3-vlserver._udp."), asked.strip_prefix("db."));
    let data = match (service, host) {
        (Some(cell), _) if cells.contains_key(cell) => {
            let target = Name::new(&format!("db.{cell}")).ok()?.into_owned();
            Some(RData::SRV(SRV { priority: 0, weight: 0, port: 7003, target }))
        }
        (_, Some(cell)) => cells.get(cell).map(|server| RData::A(A { address: (*server).into() })),
        _ => None,
    };
    match data {
        Some(data) => {
            let owner = Name::new(&asked).ok()?.into_owned();
            packet.answers.push(ResourceRecord::new(owner, CLASS::IN, TTL, data));
        }
        None => *packet.rcode_mut() = RCODE::NameError,
    }
    packet.build_bytes_vec().ok()
}
