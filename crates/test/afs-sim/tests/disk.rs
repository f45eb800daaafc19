//! Tests of simulated disks and their crash images.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::net::{IpAddr, Ipv4Addr};

use afs_drive::SegmentStore;
use afs_kv::Medium;
use afs_sim::disk::SimDisk;
use afs_sim::{NodeId, Sim, SimRng};

fn host(sim: &Sim) -> (NodeId, SimDisk) {
    let node = sim.node("a", IpAddr::V4(Ipv4Addr::LOCALHOST));
    let disk = sim.disk(node);
    (node, disk)
}

fn content(disk: &SimDisk) -> Vec<u8> {
    let blob = disk.medium("m").open("b").unwrap();
    let mut out = vec![0; usize::try_from(blob.len().unwrap()).unwrap()];
    blob.read_at(0, &mut out).unwrap();
    out
}

#[test]
fn synced_data_survives_every_crash() {
    for seed in 0..50 {
        let sim = Sim::new(seed);
        let (node, disk) = host(&sim);
        let blob = disk.medium("m").open("b").unwrap();
        blob.write_at(0, &[1; 5000]).unwrap();
        blob.sync().unwrap();
        blob.write_at(5000, &[2; 5000]).unwrap();
        sim.restart(node);
        assert_eq!(content(&disk)[..5000], [1; 5000]);
        assert!(blob.len().is_err(), "a handle of an earlier life still works");
    }
}

#[test]
fn unsynced_data_is_kept_lost_or_torn() {
    let (mut kept, mut lost, mut torn) = (0, 0, 0);
    for seed in 0..200 {
        let sim = Sim::new(seed);
        let (node, disk) = host(&sim);
        disk.medium("m").open("b").unwrap().write_at(0, &[7; 3000]).unwrap();
        sim.restart(node);
        let left = content(&disk);
        match left.iter().filter(|byte| **byte == 7).count() {
            3000 => kept += 1,
            0 => lost += 1,
            _ => torn += 1,
        }
    }
    assert!(kept > 10 && lost > 10 && torn > 10, "{kept} {lost} {torn}");
}

#[test]
fn a_crash_can_fall_between_two_writes() {
    let sim = Sim::new(1);
    let (node, disk) = host(&sim);
    let blob = disk.medium("m").open("b").unwrap();
    disk.crash_after(2);
    assert!(blob.write_at(0, b"a").is_ok());
    assert!(blob.sync().is_ok());
    assert!(blob.write_at(1, b"b").is_err());
    assert!(blob.write_at(2, b"c").is_err());
    assert!(!sim.is_up(node));
    sim.restart(node);
    assert_eq!(content(&disk)[0], b'a');
}

#[test]
fn a_full_disk_says_so() {
    let disk = SimDisk::new(SimRng::new(1));
    let blob = disk.medium("m").open("b").unwrap();
    disk.set_capacity(Some(1000));
    blob.write_at(0, &[0; 900]).unwrap();
    let full = blob.write_at(900, &[0; 200]).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    blob.set_len(0).unwrap();
    blob.write_at(0, &[0; 1000]).unwrap();
}

#[test]
fn a_failing_disk_fails_by_chance() {
    let disk = SimDisk::new(SimRng::new(1));
    let blob = disk.medium("m").open("b").unwrap();
    disk.set_failures(500_000, 0);
    let failed = (0..100).filter(|_| blob.write_at(0, b"x").is_err()).count();
    assert!((20..80).contains(&failed), "{failed}");
}

#[test]
fn a_segment_that_was_never_synced_may_be_gone() {
    let left: Vec<bool> = (0..40)
        .map(|seed| {
            let sim = Sim::new(seed);
            let (node, disk) = host(&sim);
            disk.segments("d").write_at(3, 0, b"x").unwrap();
            sim.restart(node);
            !disk.segments("d").list().unwrap().is_empty()
        })
        .collect();
    assert!(left.contains(&true) && left.contains(&false));
}

#[test]
fn a_punched_range_reads_as_zeros() {
    let disk = SimDisk::new(SimRng::new(1));
    let segments = disk.segments("d");
    segments.write_at(1, 0, &[9; 12288]).unwrap();
    segments.punch(1, 4096, 4096).unwrap();
    let mut out = [1; 12288];
    segments.read_at(1, 0, &mut out).unwrap();
    assert_eq!(out[4095], 9);
    assert_eq!(out[4096..8192], [0; 4096]);
    assert_eq!(out[8192], 9);
}
