//! Codec of the messages of DNS (RFC 1035) that the look-up of a cell needs, by the crate `simple-dns`: what comes in is bounded before it is
//! parsed, must be the reply to the question that was sent, and is reduced to the records that were asked for.

use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, ResourceRecord, TYPE};
use std::net::Ipv4Addr;

/// Most records of one section of a reply.
const RECORDS_MAX: u16 = 64;
/// Most aliases that are followed from the name that was asked for.
const ALIASES_MAX: usize = 8;
/// Length of the header, in which the numbers of records are.
const HEADER: usize = 12;

/// Kind of the records that are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A service's hosts.
    Srv,
    /// A cell's hosts.
    Afsdb,
    /// A host's addresses.
    Address,
}

impl Kind {
    fn number(self) -> TYPE {
        match self {
            Self::Srv => TYPE::SRV,
            Self::Afsdb => TYPE::AFSDB,
            Self::Address => TYPE::A,
        }
    }
}

/// A host that offers the location service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    /// Its name, in lower case.
    pub(crate) name: String,
    /// Hosts with a lower one are tried first.
    pub(crate) priority: u16,
    /// Among hosts of one priority those with more are tried first.
    pub(crate) weight: u16,
    /// Port of the service; `None`: the usual one.
    pub(crate) port: Option<u16>,
}

/// What a reply says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The hosts, and the addresses of hosts that came with them, with the time for which all of it counts, in seconds.
    Hosts(Vec<Host>, Vec<(String, Ipv4Addr)>, u32),
    /// The addresses, with that time.
    Addresses(Vec<Ipv4Addr>, u32),
    /// There is no such name, or no such record, for so many seconds; `None`: that is not told.
    Nothing(Option<u32>),
    /// The reply did not fit into a datagram.
    Truncated,
    /// The server cannot say.
    Refused(String),
}

/// The question for records of a name, as a message; `None` if the name cannot be one of DNS.
pub(crate) fn question(id: u16, name: &str, kind: Kind) -> Option<Vec<u8>> {
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    let name = Name::new(name).ok()?;
    packet.questions.push(Question::new(name, QTYPE::TYPE(kind.number()), QCLASS::CLASS(CLASS::IN), false));
    packet.build_bytes_vec().ok()
}

/// What a message says in reply to the question; `None` if it is no reply to it.
pub(crate) fn answer(bytes: &[u8], id: u16, name: &str, kind: Kind) -> Option<Answer> {
    if !is_bounded(bytes) {
        return None;
    }
    let packet = Packet::parse(bytes).ok()?;
    let asked = packet.questions.first()?;
    let is_reply = packet.id() == id
        && packet.has_flags(PacketFlag::RESPONSE)
        && asked.qtype == QTYPE::TYPE(kind.number())
        && text(&asked.qname).as_deref() == Some(&name.to_ascii_lowercase());
    if !is_reply {
        return None;
    }
    if packet.has_flags(PacketFlag::TRUNCATION) {
        return Some(Answer::Truncated);
    }
    Some(match packet.rcode() {
        RCODE::NoError => found(&packet, name, kind),
        RCODE::NameError => Answer::Nothing(nothing_for(&packet)),
        other => Answer::Refused(format!("the server replies {other:?}")),
    })
}

/// The parser allocates by the numbers in the header.
fn is_bounded(bytes: &[u8]) -> bool {
    let Some(counts) = bytes.get(4..HEADER) else { return false };
    let mut counts = counts.chunks_exact(2).map(|two| u16::from_be_bytes([two[0], two[1]]));
    counts.next() == Some(1) && counts.all(|count| count <= RECORDS_MAX)
}

fn found(packet: &Packet<'_>, name: &str, kind: Kind) -> Answer {
    let (owner, ttl_of_aliases) = canonical(packet, name);
    let of_name = || packet.answers.iter().filter(|record| is_of(record, &owner));
    let ttl = |records: &mut dyn Iterator<Item = u32>| records.min().unwrap_or(u32::MAX).min(ttl_of_aliases);
    if kind == Kind::Address {
        let addresses: Vec<Ipv4Addr> = of_name().filter_map(address).collect();
        return match addresses.is_empty() {
            true => Answer::Nothing(nothing_for(packet)),
            false => Answer::Addresses(addresses, ttl(&mut of_name().map(|record| record.ttl))),
        };
    }
    let hosts: Vec<Host> = of_name().filter_map(|record| host(record, kind)).collect();
    if hosts.is_empty() {
        return Answer::Nothing(nothing_for(packet));
    }
    let with = packet.additional_records.iter().filter(|record| record.class == CLASS::IN);
    let with = with.filter_map(|record| Some((text(&record.name)?, address(record)?, record.ttl)));
    let with: Vec<(String, Ipv4Addr, u32)> =
        with.filter(|(name, ..)| hosts.iter().any(|host| host.name == *name)).collect();
    let times = of_name().map(|record| record.ttl).chain(with.iter().map(|(.., ttl)| *ttl));
    let time = ttl(&mut times.into_iter());
    Answer::Hosts(hosts, with.into_iter().map(|(name, address, _)| (name, address)).collect(), time)
}

/// The name at the end of the aliases of a name, and the time for which they count.
fn canonical(packet: &Packet<'_>, name: &str) -> (String, u32) {
    let (mut at, mut ttl) = (name.to_ascii_lowercase(), u32::MAX);
    for _ in 0..ALIASES_MAX {
        let alias =
            packet.answers.iter().filter(|record| is_of(record, &at)).find_map(|record| {
                match &record.rdata {
                    RData::CNAME(target) => Some((text(target)?, record.ttl)),
                    _ => None,
                }
            });
        let Some((target, time)) = alias else { break };
        (at, ttl) = (target, ttl.min(time));
    }
    (at, ttl)
}

fn is_of(record: &ResourceRecord<'_>, owner: &str) -> bool {
    record.class == CLASS::IN && text(&record.name).as_deref() == Some(owner)
}

fn address(record: &ResourceRecord<'_>) -> Option<Ipv4Addr> {
    match &record.rdata {
        RData::A(a) => Some(Ipv4Addr::from(a.address)),
        _ => None,
    }
}

fn host(record: &ResourceRecord<'_>, kind: Kind) -> Option<Host> {
    match (&record.rdata, kind) {
        (RData::SRV(srv), Kind::Srv) => Some(Host {
            name: text(&srv.target)?,
            priority: srv.priority,
            weight: srv.weight,
            port: Some(srv.port).filter(|port| *port != 0),
        }),
        // Subtype 1 is AFS's location service (RFC 1183, section 1).
        (RData::AFSDB(afsdb), Kind::Afsdb) if afsdb.subtype == 1 => {
            Some(Host { name: text(&afsdb.hostname)?, priority: 0, weight: 0, port: None })
        }
        _ => None,
    }
}

/// For how long there is nothing: the lesser of the time and the minimum of the zone (RFC 2308, section 5).
fn nothing_for(packet: &Packet<'_>) -> Option<u32> {
    packet.name_servers.iter().find_map(|record| match &record.rdata {
        RData::SOA(soa) => Some(soa.minimum.min(record.ttl)),
        _ => None,
    })
}

/// A name that a host can have, in lower case; `None` for any other, also for the root, which says that there is no host.
fn text(name: &Name<'_>) -> Option<String> {
    let mut text = String::new();
    for label in name.as_bytes() {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if label.is_empty() || !label.iter().all(is_plain) {
            return None;
        }
        if !text.is_empty() {
            text.push('.');
        }
        text.push_str(&String::from_utf8_lossy(label).to_ascii_lowercase());
    }
    Some(text).filter(|text| !text.is_empty())
}
