//! Runs the fuzz targets over seeded inputs: random ones, plausible ones, and captured ones with changes.

#![allow(clippy::unwrap_used)]

use afs_wire::dir::Blob;
use afs_wire::fuzzing;
use afs_wire::ids::{Uniquifier, VnodeId};

/// A small generator (splitmix64): the same numbers on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn bytes(&mut self, len_max: usize) -> Vec<u8> {
        (0..self.below(len_max + 1)).map(|_| self.next() as u8).collect()
    }

    /// Words that are mostly small, as counts and lengths are.
    fn words(&mut self, count_max: usize) -> Vec<u8> {
        let mut bytes = vec![self.next() as u8, self.next() as u8];
        for _ in 0..self.below(count_max + 1) {
            let word = match self.below(8) {
                0 => self.next() as u32,
                1 => u32::MAX,
                _ => self.below(4) as u32,
            };
            bytes.extend(word.to_be_bytes());
        }
        bytes
    }

    fn mutated(&mut self, sample: &[u8]) -> Vec<u8> {
        let mut bytes = sample.to_vec();
        for _ in 0..=self.below(6) {
            let at = self.below(bytes.len().max(1));
            match (self.below(4), bytes.get_mut(at)) {
                (0, _) => bytes.truncate(at),
                (1, _) => bytes.extend(self.bytes(16)),
                (2, Some(byte)) => *byte ^= 1 << self.below(8),
                (_, Some(byte)) => *byte = self.next() as u8,
                _ => {}
            }
        }
        bytes
    }
}

fn run(target: &str, seed: u64, rounds: usize, samples: &[Vec<u8>]) {
    let body = fuzzing::TARGETS.iter().find(|(name, _)| *name == target).unwrap().1;
    let mut random = Random(seed);
    for sample in samples {
        body(sample);
    }
    for _ in 0..rounds {
        body(&random.bytes(300));
        body(&random.words(600));
        if !samples.is_empty() {
            let sample = random.below(samples.len());
            body(&random.mutated(&samples[sample]));
        }
    }
}

/// Captured messages of a service as fuzz inputs: choice of call, choice of direction, bytes.
fn captured(service: &str) -> Vec<Vec<u8>> {
    let text = include_str!("data/openafs-1.8.9-cell.txt");
    let hex = |text: &str| -> Vec<u8> {
        (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
    };
    let of_service = text.lines().filter(|line| line.split(' ').next() == Some(service));
    let messages = of_service.flat_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let reply = words[1] == "reply";
        let bytes = if words[3] == "-" { Vec::new() } else { hex(words[3]) };
        let bytes = bytes[if reply { 0 } else { 4 }..].to_vec();
        // Every decoder sees every message.
        (0..48u8).map(move |call| [&[call, reply.into()], bytes.as_slice()].concat())
    });
    messages.collect()
}

#[test]
fn file_service() {
    run("file_service", 1, 8_000, &captured("fs"));
}

#[test]
fn callback_service() {
    run("callback_service", 2, 8_000, &captured("cb"));
}

#[test]
fn location_service() {
    run("location_service", 3, 8_000, &captured("vl"));
}

#[test]
fn volume_service() {
    run("volume_service", 4, 8_000, &captured("vol"));
}

#[test]
fn protection_service() {
    // A name in a list is 64 words, far more than random bytes reach: each call sees a list, a name and a structure.
    let name = [&[0; 3][..], b"a", &[0; 63 * 4]].concat();
    let list = [&[0, 0, 0, 1], name.as_slice(), &[0; 8]].concat();
    let text = [&b"\0\0\0\x05alice\0\0\0"[..], &[0; 320]].concat();
    let samples = [list, text, vec![0xff; 600], vec![0; 400]];
    let for_each_call =
        |bytes: &Vec<u8>| (0..46u8).map(|n| [&[n / 2, n % 2], bytes.as_slice()].concat()).collect::<Vec<_>>();
    run("protection_service", 9, 8_000, &samples.iter().flat_map(for_each_call).collect::<Vec<_>>());
}

#[test]
fn login_service() {
    run("login_service", 9, 8_000, &[]);
}

#[test]
fn overseer_service() {
    let text = [&b"\0\0\0\x02fs\0\0"[..], &[0; 80]].concat();
    let for_each_call = |call: u8| [&[call / 2, call % 2], text.as_slice()].concat();
    run("overseer_service", 10, 8_000, &(0..74).map(for_each_call).collect::<Vec<_>>());
}

#[test]
fn operations_service() {
    let text = [&b"\0\0\0\x02fs\0\0"[..], &[0; 80]].concat();
    let for_each_call = |call: u8| [&[call / 2, call % 2], text.as_slice()].concat();
    run("operations_service", 12, 8_000, &(0..16).map(for_each_call).collect::<Vec<_>>());
}

#[test]
fn directory() {
    let mut blob = Blob::create((VnodeId(1), Uniquifier(1)), (VnodeId(1), Uniquifier(1)));
    for number in 0..150u32 {
        let name = format!("name {number} {}", "x".repeat(number as usize % 60));
        afs_wire::dir::insert(&mut blob, name.as_bytes(), (VnodeId(number), Uniquifier(number))).unwrap();
    }
    let sample = [&[7], blob.as_bytes()].concat();
    run("directory", 5, 700, &[sample]);
}

#[test]
fn dump() {
    let whole = [
        &include_bytes!("data/openafs-1.8.9-dump.bin")[..0x9c0],
        b"\x03\0\0\0\x02\0\0\0\x02\x03\0\0\0\x04\0\0\0\x09t\x01h\0\0\0\0\0\0\0\x03abcm\0\0\0\x07",
        b"\x03\0\0\0\x06\0\0\0\x09t\x01\x7eH\0\0\0\0\0\0\x01\x03",
        b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01a\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\x02bcm\0\0\0\x07",
        b"\x04\x3a\x21\x4b\x6e",
    ]
    .concat();
    assert_eq!(fuzzing::rewrite_dump(&whole, 1000).0, Ok(()));
    run("dump", 11, 8_000, &[[&[7], whole.as_slice()].concat(), [&[1], &whole[..300]].concat()]);
}

#[test]
fn acl() {
    let text = b"2\n1\nsystem:administrators\t127\nsystem:anyuser\t9\nbob\t-1\n\0".to_vec();
    let block = afs_wire::acl::Acl::of_new_volume().to_block().to_vec();
    run("acl", 6, 12_000, &[text, block]);
}

#[test]
fn mount_point() {
    let texts = ["#root.cell.", "%example.org:user.alice.readonly.", "#example.org:536870912:1:1."];
    run("mount_point", 7, 12_000, &texts.map(|text| text.as_bytes().to_vec()));
}

#[test]
fn names() {
    let texts =
        ["root.cell.backup", "example.org", "rlidwka", "/vicepaa", "00112233-4455-6677-8899-aabbccddeeff"];
    run("names", 8, 12_000, &texts.map(|text| text.as_bytes().to_vec()));
}

#[test]
fn no_target_is_left_out() {
    let tested = [
        "file_service",
        "callback_service",
        "location_service",
        "volume_service",
        "protection_service",
        "login_service",
        "overseer_service",
        "operations_service",
        "directory",
        "dump",
        "acl",
    ];
    let all: Vec<&str> = fuzzing::TARGETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(all, [&tested[..], &["mount_point", "names"]].concat());
}
