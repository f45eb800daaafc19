//! Outcomes of what needs processes that the lab starts itself: a cell for operations on volumes, a peer for streams of bytes.

use super::measured::{Memo, ran, refused};
use super::outcome::Outcome;
use super::setting::Setting;
use crate::LabError;
use crate::catalogue::LayerTable;
use crate::clients::{Clients, Ran};
use crate::layers::{self, Layers, Link, Peer, PeerProcess};
use crate::volumes::{self, OwnCell};
use std::net::{Ipv4Addr, SocketAddr};

const VOLUMES: &str = "A cell of two servers on this machine, started for this, each with its own store. Volumes have files of 1 MB; times are \
                       those of whole commands (`andrew vos`). Travelled: bytes of volumes by the data path. Written: what both servers gave to \
                       their disks by the operation, the log included, and what they do in the background once it is over. Dumps have the files that changed, whole.";

/// Section 6 of Howard et al. 1988.
pub(super) fn volumes(setting: &Setting<'_>) -> Outcome {
    let andrew =
        setting.program.map(|program| program.with_file_name("andrew")).filter(|andrew| andrew.exists());
    let Some(andrew) = andrew else {
        return refused("the program `andrew` beside this one, which starts servers for it");
    };
    let measured = OwnCell::start(&andrew, setting.local)
        .and_then(|cell| volumes::measure(&cell, setting.quick, setting.stop));
    match measured {
        Ok(sheet) => ran(Some(sheet), "", &[VOLUMES]),
        Err(error) => Outcome::Failed { error: error.to_string() },
    }
}

const STACK: &str = "The peer sends, this end receives and counts, nothing is encrypted but by TLS; streams take turns, medians. Of UDP what \
                     arrives counts, of whatever was sent: nothing of it is sent again. The raw link has no row: a program has no \
                     way to it without the kernel's stack but one of its own for each card.";
const EXCHANGED: &str = "The layer below Rx is not exchanged here: bytes of files leave Rx instead, by the data path over TCP, whose \
                         frames stand in the place of the paper's packets. 1.4 KB is the packet of every AFS-3 peer on Ethernet, 16 KB the largest of Rx.";
const CHUNKS: &str = "Five chunks of 64 KB, each by one call in packets of 1444 bytes, are read page by page by a reader that looks at each \
                      byte four times. In turn: nothing is fetched while it reads, as with the lock. How much is saved depends on how alike \
                      the times of fetch and reader are; at most it is half.";

impl Memo {
    /// Tables 1 and 2 and Figure 2 of CITI TR 01-3.
    pub(super) fn layers(&self, setting: &Setting<'_>, table: LayerTable) -> Outcome {
        let measure = || measured(setting).map_err(|error| error.to_string());
        let layers = match self.layers.get_or_init(measure) {
            Ok(layers) => layers,
            Err(error) => return Outcome::Failed { error: error.clone() },
        };
        let (sheet, what) = match table {
            LayerTable::Stack => (layers::table1(layers), STACK),
            LayerTable::Exchanged => (layers::table2(layers), EXCHANGED),
            LayerTable::Chunks => (layers::figure2(layers), CHUNKS),
        };
        ran(Some(sheet), "", &[what, &ends(setting)])
    }
}

fn measured(setting: &Setting<'_>) -> Result<Layers, LabError> {
    let of = |peer: SocketAddr| layers::measure(&Link::open(peer)?, setting.quick, setting.stop);
    match (setting.peer, setting.program) {
        (Some(peer), _) => of(peer),
        (None, Some(program)) => of(PeerProcess::start(program)?.address()),
        (None, None) => {
            let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let peer = Peer::listen(at);
            of(peer.map_err(|source| LabError::Network { operation: "listen", source })?.address())
        }
    }
}

fn ends(setting: &Setting<'_>) -> String {
    match (setting.peer, setting.program) {
        (Some(peer), _) => format!("The peer is {peer}."),
        (None, Some(_)) => "Both ends are processes of this machine, over the loopback interface.".into(),
        (None, None) => "Both ends are in one process, over the loopback interface.".into(),
    }
}

/// Many clients as processes, in a mount whose server tells its processor time.
pub(super) fn many(setting: &Setting<'_>) -> Result<Option<Ran>, LabError> {
    let (Some(mount), Some(program)) = (&setting.mount, setting.program) else { return Ok(None) };
    let Some(probe) = mount.probe else { return Ok(None) };
    // A process that is the mount too would be bounded with it.
    let server = mount.place.processes.iter().find(|process| process.name == "server");
    let clients = Clients {
        program,
        local: setting.local,
        directory: &mount.place.directory,
        probe,
        server: server.filter(|_| !setting.servers_are_apart).map(|server| server.pid),
        quick: setting.quick,
        stop: setting.stop,
    };
    clients.run()
}

pub(super) fn ran_note(ran: &Ran) -> String {
    let server = if ran.part < 1.0 {
        format!(
            "The server had {:.3} of a processor, by a control group: so much that one client uses 8.1 % of it, as in the paper.",
            ran.part
        )
    } else {
        "The server was not bounded: that needs root, control groups, and a server whose process is not the mount's, and uses less than a processor.".to_owned()
    };
    format!(
        "Columns with 'ran' were run: so many processes in one mount at once, each on a copy of its own, with {} s of waiting in the place of \
         compiling (`andrew-lab bench andrew --think`); the mean of their times, medians of runs. {server} 'ran model' is the model of the same \
         clients from load 1. They share the mount's cache and connections, and with the server this machine.",
        ran.think.as_secs()
    )
}
