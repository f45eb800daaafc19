//! Table of what an attacker may present: each is refused, counted and logged, and brings no byte.

#![allow(clippy::unwrap_used)]

use crate::kit;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use afs_datapath::capability::{
    ByteRange, Capability, DriveId, DriveKey, Group, KeyEpoch, Nonces, Proof, Refusal, Revocations, Secret,
};
use afs_datapath::frame::{HandleNumber, Message, Presented, RequestId};
use afs_datapath::session::{Drive, DriveLimits, Offer};
use kit::log::{Log, logging};
use kit::raw::Sent;
use kit::{Kit, Raw, VERSION, directory, file, range};

const LEN: usize = 1000;
/// A key that the attacker has: that of a drive of its own.
const OTHER_KEY: [u8; 32] = [8; 32];

/// What the attacker changes.
struct Row {
    name: &'static str,
    refusal: Refusal,
    sent: Sent,
    change: fn(&mut Capability, u64),
    is_forged: bool,
    is_revoked: bool,
    range: ByteRange,
}

fn row(name: &'static str, refusal: Refusal) -> Row {
    let range = range(0, 10);
    Row { name, refusal, sent: Sent::Here, change: |_, _| {}, is_forged: false, is_revoked: false, range }
}

fn rows() -> Vec<Row> {
    let other = Sent::ToAnother(DriveId(0xd2), KeyEpoch(5));
    let restarted = Sent::ToAnother(DriveId(0xd1), KeyEpoch(6));
    // Says that it is the same drive with the same key, and has not that key.
    let pretended = Sent::ToAnother(DriveId(0xd1), KeyEpoch(5));
    let of_another_file = |capability: &mut Capability, _: u64| capability.group = Group::File(file(4));
    let of_ten_bytes = |capability: &mut Capability, _: u64| capability.range = range(0, 10);
    vec![
        Row { is_forged: true, ..row("a secret that was guessed", Refusal::Forged) },
        Row { change: |capability, now| capability.expires = now, ..row("expired", Refusal::Expired) },
        Row { change: of_another_file, ..row("for another file", Refusal::OtherObject) },
        Row { change: of_ten_bytes, range: range(1, 11), ..row("beyond its range", Refusal::OutOfRange) },
        Row { sent: Sent::AgainByTheSame, ..row("on another connection", Refusal::Forged) },
        Row { sent: Sent::ByAnother, ..row("by another client", Refusal::Forged) },
        Row { sent: other, ..row("on another drive", Refusal::OtherDrive) },
        Row { sent: restarted, ..row("on the drive with its next key", Refusal::OtherEpoch) },
        Row { sent: pretended, ..row("on a drive of the same id", Refusal::Forged) },
        Row { is_revoked: true, ..row("after revocation", Refusal::Revoked) },
    ]
}

/// A cell with a drive, and perhaps another one.
struct Case {
    kit: Kit,
    /// The drive to which the attacker presents.
    drive: Arc<Drive>,
    at: SocketAddr,
}

fn case(row: &Row) -> Case {
    let kit = Kit::new(1);
    kit.files.add(file(2), LEN);
    kit.files.add(file(4), LEN);
    let Sent::ToAnother(id, epoch) = row.sent else {
        return Case { drive: kit.drive.clone(), kit, at: kit::at() };
    };
    let key = DriveKey::new(id, epoch, OTHER_KEY);
    let drive = Drive::new(key, Revocations::default(), kit.files.clone(), DriveLimits::default());
    let at = SocketAddr::from(([10, 0, 0, 1], 7006));
    kit.serve(at, Offer::clear(), drive.clone());
    Case { kit, drive, at }
}

impl Case {
    /// A connection of a node to a drive, which has not said anything.
    fn connect(&self, is_another_client: bool, at: SocketAddr) -> Raw {
        let node = match is_another_client {
            true => self.kit.sim.node("thief", Ipv4Addr::new(10, 0, 0, 3).into()),
            false => self.kit.client_node,
        };
        let env = self.kit.sim.env(node);
        Raw::new(self.kit.run(async move { env.connect(at).await.unwrap() }))
    }

    /// The capability of a row with its secret, as the attacker has them.
    fn capability(&self, row: &Row) -> (Capability, Secret) {
        let mut capability = self.kit.capability(Group::Directory(directory(1)));
        (row.change)(&mut capability, self.kit.client_env().wall().secs);
        let secret =
            if row.is_forged { Secret::new([0; 32]) } else { self.kit.drive.key().seal(&capability) };
        (capability, secret)
    }

    /// What is answered to a read by what the row presents.
    fn presented(&self, row: &Row) -> Option<Message> {
        let (capability, secret) = self.capability(row);
        let (mut raw, nonces) = self.greeted(false, kit::at());
        let present = present(&capability, &secret, &nonces);
        if row.is_revoked {
            self.kit.drive.revocations.revoke(Group::Directory(directory(1)));
        }
        if row.sent != Sent::Here {
            // It is recorded where it is good.
            assert!(matches!(self.answer(raw, &present, row), Some(Message::Announce { .. })));
            (raw, _) = self.greeted(row.sent == Sent::ByAnother, self.at);
        }
        self.answer(raw, &present, row)
    }

    fn greeted(&self, is_another_client: bool, at: SocketAddr) -> (Raw, Nonces) {
        let mut raw = self.connect(is_another_client, at);
        self.kit.run(async move {
            let (_, nonces) = raw.greet().await;
            (raw, nonces)
        })
    }

    /// Presents, reads, and takes the first message.
    fn answer(&self, mut raw: Raw, present: &Message, row: &Row) -> Option<Message> {
        let read = Message::Read {
            request: RequestId(1),
            handle: HandleNumber(0),
            fid: file(2),
            range: row.range,
            version: VERSION,
            credit: 0,
        };
        let present = present.clone();
        self.kit.run(async move {
            raw.send(&present).await;
            raw.send(&read).await;
            raw.message().await
        })
    }
}

fn present(capability: &Capability, secret: &Secret, nonces: &Nonces) -> Message {
    let proof = Presented(Proof::new(capability, secret, nonces));
    Message::Present { handle: HandleNumber(0), capability: *capability, proof }
}

#[track_caller]
fn assert_refused(row: &Row, log: &Log) {
    let case = case(row);
    let before = case.drive.counts();
    let answer = case.presented(row);
    let failed = Message::Failed { request: RequestId(1), failure: row.refusal.into() };
    assert_eq!(answer, Some(failed), "{}", row.name);
    let counts = case.drive.counts();
    let refused = counts.refused_for(row.refusal);
    assert!(refused > 0 && counts.refused.iter().sum::<u64>() == refused, "{}: {counts:?}", row.name);
    // What was recorded was good once, on the drive for which it is.
    let reads = u64::from(matches!(row.sent, Sent::AgainByTheSame | Sent::ByAnother));
    assert_eq!((before.reads, counts.reads, counts.bytes_sent), (0, reads, 0), "{}", row.name);
    let (lines, wanted) = (log.take(), format!(" refusal={} count=", row.refusal));
    let logged = lines.iter().filter(|line| line.contains(&wanted));
    assert_eq!(logged.count() as u64, refused, "{}: {lines:?}", row.name);
    let from = if row.sent == Sent::ByAnother { "10.0.0.3" } else { "10.0.0.2" };
    assert!(lines.iter().all(|line| line.contains(&format!(" peer={from}:"))), "{}: {lines:?}", row.name);
}

#[test]
fn whatever_an_attacker_presents_is_refused_counted_and_logged() {
    logging(|log| rows().iter().for_each(|row| assert_refused(row, log)));
}

/// The attacker's own key makes it a drive, and no capability of another one.
#[test]
fn what_another_key_sealed_is_refused() {
    let kit = Kit::new(1);
    kit.files.add(file(2), LEN);
    let own = DriveKey::new(kit.drive.key().drive(), kit.drive.key().epoch(), OTHER_KEY);
    let capability = kit.capability(Group::Directory(directory(1)));
    let client = kit.open();
    let handle = client.present(&capability, &own.seal(&capability)).unwrap();
    let outcome = kit.run(async move { kit::read(&client, &handle, file(2), range(0, 10)).await });
    assert_eq!(outcome, Err(afs_datapath::session::Failure::from(Refusal::Forged).into()));
    assert_eq!(kit.drive.counts().refused_for(Refusal::Forged), 2, "when presented, and when used");
}
