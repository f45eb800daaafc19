//! Look-up of a cell: which records are asked for, and what they come to.

use super::exchange::Exchange;
use super::message::{Answer, Host, Kind};
use crate::cells::other::LOCATION_PORT;
use afs_venus::Resolved;
use afs_wire::ids::CellName;
use std::cmp::Reverse;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Hosts whose addresses are used.
const HOSTS_MAX: usize = 8;
/// How long nothing counts if no reply says it.
const NOTHING_FOR: Duration = Duration::from_secs(300);

/// Whatever replies to questions: the servers of DNS, or a test.
pub(super) trait Ask {
    /// What is said of a name; the error says why nothing is.
    fn ask(&self, name: &str, kind: Kind) -> Result<Answer, String>;
}

impl Ask for Exchange<'_> {
    fn ask(&self, name: &str, kind: Kind) -> Result<Answer, String> {
        Exchange::ask(self, name, kind)
    }
}

/// Looks a cell up: its SRV records, else its AFSDB records (RFC 5864, section 5).
pub(super) fn of_cell(dns: &impl Ask, cell: &CellName) -> Resolved {
    let kinds = [(format!("_afs3-vlserver._udp.{cell}"), Kind::Srv), (cell.to_string(), Kind::Afsdb)];
    let mut nothing_for = None;
    for (name, kind) in kinds {
        match dns.ask(&name, kind) {
            Ok(Answer::Hosts(hosts, with, ttl)) => return of_hosts(dns, hosts, &with, ttl),
            Ok(Answer::Nothing(seconds)) => nothing_for = least(nothing_for, seconds),
            Ok(_) => return Resolved::Failed("the reply is none to the question".into()),
            Err(why) => return Resolved::Failed(why),
        }
    }
    let ttl = nothing_for.map_or(NOTHING_FOR, |seconds| Duration::from_secs(seconds.into()));
    Resolved::NotFound { ttl }
}

fn least(a: Option<u32>, b: Option<u32>) -> Option<u32> {
    a.into_iter().chain(b).min()
}

/// The addresses of the hosts, the first choice first. A host without an address is left out.
fn of_hosts(dns: &impl Ask, mut hosts: Vec<Host>, with: &[(String, Ipv4Addr)], ttl: u32) -> Resolved {
    hosts.sort_by_key(|host| (host.priority, Reverse(host.weight)));
    let (mut location_servers, mut ttl, mut failure) = (Vec::new(), ttl, None);
    for host in hosts.iter().take(HOSTS_MAX) {
        let told: Vec<Ipv4Addr> =
            with.iter().filter(|(name, _)| *name == host.name).map(|(_, ip)| *ip).collect();
        let addresses = if told.is_empty() {
            match dns.ask(&host.name, Kind::Address) {
                Ok(Answer::Addresses(addresses, time)) => {
                    ttl = ttl.min(time);
                    addresses
                }
                Ok(_) => Vec::new(),
                Err(why) => {
                    failure = Some(why);
                    Vec::new()
                }
            }
        } else {
            told
        };
        let port = host.port.unwrap_or(LOCATION_PORT);
        location_servers.extend(addresses.into_iter().map(|ip| SocketAddr::from((ip, port))));
    }
    match (location_servers.is_empty(), failure) {
        (false, _) => Resolved::Found { location_servers, ttl: Duration::from_secs(ttl.into()) },
        (true, Some(why)) => Resolved::Failed(why),
        (true, None) => Resolved::NotFound { ttl: NOTHING_FOR },
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::{answer, question};
    use super::*;
    use simple_dns::rdata::{A, AFSDB, CNAME, RData, SOA, SRV};
    use simple_dns::{CLASS, Name, Packet, PacketFlag, RCODE, ResourceRecord};
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    /// A zone: records by name; the name of a record that replies name.
    #[derive(Default)]
    struct Zone {
        records: Vec<(String, u32, RData<'static>)>,
        /// Names for which the server fails.
        fails: Vec<String>,
        asked: RefCell<BTreeMap<String, usize>>,
    }

    fn name(text: &str) -> Name<'static> {
        Name::new(text).unwrap().into_owned()
    }

    fn record(owner: &str, ttl: u32, data: RData<'static>) -> ResourceRecord<'static> {
        ResourceRecord::new(name(owner), CLASS::IN, ttl, data)
    }

    impl Zone {
        fn with(mut self, owner: &str, ttl: u32, data: RData<'static>) -> Self {
            self.records.push((owner.into(), ttl, data));
            self
        }

        fn srv(self, cell: &str, (priority, weight, port): (u16, u16, u16), target: &str) -> Self {
            let srv = SRV { priority, weight, port, target: name(target) };
            self.with(&format!("_afs3-vlserver._udp.{cell}"), 900, RData::SRV(srv))
        }

        fn a(self, owner: &str, last: u8) -> Self {
            self.with(owner, 600, RData::A(A { address: Ipv4Addr::new(192, 0, 2, last).into() }))
        }

        fn of(&self, cell: &str) -> Resolved {
            of_cell(self, &CellName::new(cell).unwrap())
        }
    }

    /// Through the real messages.
    impl Ask for Zone {
        fn ask(&self, asked: &str, kind: Kind) -> Result<Answer, String> {
            *self.asked.borrow_mut().entry(asked.into()).or_default() += 1;
            if self.fails.iter().any(|name| name == asked) {
                return Err("no reply".into());
            }
            let query = question(7, asked, kind).unwrap();
            let mut reply = Packet::parse(&query).unwrap().into_reply();
            reply.set_flags(PacketFlag::RESPONSE);
            let mut at = asked.to_owned();
            for (owner, ttl, data) in &self.records {
                if owner.eq_ignore_ascii_case(&at) {
                    reply.answers.push(record(owner, *ttl, data.clone()));
                    if let RData::CNAME(target) = data {
                        at = target.0.to_string();
                    }
                }
            }
            if reply.answers.is_empty() {
                *reply.rcode_mut() = RCODE::NameError;
                let soa = SOA {
                    mname: name("ns.example"),
                    rname: name("root.example"),
                    serial: 1,
                    refresh: 1,
                    retry: 1,
                    expire: 1,
                    minimum: 77,
                };
                reply.name_servers.push(record("example", 3600, RData::SOA(soa)));
            }
            answer(&reply.build_bytes_vec().unwrap(), 7, asked, kind).ok_or("none".into())
        }
    }

    fn found(servers: &[(u8, u16)], ttl: u64) -> Resolved {
        let at = |(last, port): &(u8, u16)| SocketAddr::from(([192, 0, 2, *last], *port));
        Resolved::Found { location_servers: servers.iter().map(at).collect(), ttl: Duration::from_secs(ttl) }
    }

    #[test]
    fn srv_records_name_hosts_and_ports_in_their_order() {
        let zone = Zone::default()
            .srv("example.org", (10, 5, 7003), "second.example.org")
            .srv("example.org", (1, 1, 7103), "First.example.org")
            .srv("example.org", (10, 9, 7003), "heavy.example.org")
            .srv("example.org", (1, 1, 7003), "without.example.org")
            .a("first.example.org", 1)
            .a("first.example.org", 2)
            .with("second.example.org", 60, RData::CNAME(CNAME(name("real.example.org"))))
            .a("real.example.org", 3)
            .a("heavy.example.org", 4);
        assert_eq!(zone.of("example.org"), found(&[(1, 7103), (2, 7103), (4, 7003), (3, 7003)], 60));
        assert!(!zone.asked.borrow().contains_key("example.org"), "no AFSDB record is asked for");
    }

    #[test]
    fn afsdb_records_of_the_first_subtype_count_where_there_are_no_srv_records() {
        let afsdb = |subtype, host: &str| RData::AFSDB(AFSDB { subtype, hostname: name(host) });
        let zone = Zone::default()
            .with("example.org", 300, afsdb(2, "dce.example.org"))
            .with("example.org", 300, afsdb(1, "db.example.org"))
            .a("db.example.org", 1)
            .a("dce.example.org", 9);
        assert_eq!(zone.of("example.org"), found(&[(1, 7003)], 300));
    }

    #[test]
    fn nothing_and_no_reply_are_different() {
        let nothing = Resolved::NotFound { ttl: Duration::from_secs(77) };
        assert_eq!(Zone::default().of("example.org"), nothing);
        // The root as target: the service is decidedly not there (RFC 2782).
        let zone = Zone::default().srv("example.org", (0, 0, 0), ".");
        assert!(matches!(zone.of("example.org"), Resolved::NotFound { .. }));
        let zone = Zone { fails: vec!["_afs3-vlserver._udp.example.org".into()], ..Zone::default() };
        assert_eq!(zone.of("example.org"), Resolved::Failed("no reply".into()));
        let zone = Zone { fails: vec!["db.example.org".into()], ..Zone::default() };
        let zone = zone.srv("example.org", (0, 0, 7003), "db.example.org");
        assert_eq!(zone.of("example.org"), Resolved::Failed("no reply".into()));
    }

    #[test]
    fn a_message_that_is_no_reply_to_the_question_says_nothing() {
        let query = question(7, "db.example.org", Kind::Address).unwrap();
        let reply = |change: &dyn Fn(&mut Packet<'_>)| {
            let mut reply = Packet::parse(&query).unwrap().into_reply();
            reply.set_flags(PacketFlag::RESPONSE);
            reply.answers.push(record("db.example.org", 9, RData::A(A { address: 0xc000_0201 })));
            change(&mut reply);
            answer(&reply.build_bytes_vec().unwrap(), 7, "db.example.org", Kind::Address)
        };
        assert_eq!(reply(&|_| {}), Some(Answer::Addresses(vec![[192, 0, 2, 1].into()], 9)));
        assert_eq!(reply(&|packet| packet.set_id(8)), None);
        assert_eq!(reply(&|packet| packet.remove_flags(PacketFlag::RESPONSE)), None);
        assert_eq!(reply(&|packet| packet.questions[0].qname = name("evil.example.org")), None);
        assert_eq!(reply(&|packet| packet.questions.clear()), None);
        assert_eq!(answer(&query, 7, "db.example.org", Kind::Srv), None);
        // Records of other names are not believed.
        let other = reply(&|packet| packet.answers[0].name = name("evil.example.org"));
        assert_eq!(other, Some(Answer::Nothing(None)));
        let many = reply(&|packet| {
            let one = packet.answers[0].clone();
            packet.answers.resize(65, one);
        });
        assert_eq!(many, None, "more records than are read");
        // A loop of aliases ends.
        let alias = |packet: &mut Packet<'_>| {
            packet.answers[0].rdata = RData::CNAME(CNAME(name("db.example.org")));
        };
        assert_eq!(reply(&alias), Some(Answer::Nothing(None)));
    }
}
