//! A cell of three hosts, as docs/servers.md describes: the databases of one host are moved into etcd, two hosts join,
//! and then each host in turn is killed, and cut off from the others. A reader of a replicated volume is not affected,
//! volumes elsewhere are read and written, every kind of change is made; the returning host has all changes, and while
//! it was alone it refused changes. Then a key is rotated and tokens are revoked. Once with etcd behind certificates and a password. And a server that is added,
//! emptied while its volumes are in use, and removed.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod cell;
mod changed_keys;
mod etcd_keys;
mod guarded;
mod one_writer;
mod reader;
mod rounds;
mod server;
mod two_hosts;

use andrew_tests::live::bridge::Bridge;
use andrew_tests::live::exclusive::Exclusive;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::process::seconds;
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::watchdog::Watchdog;

use cell::ThreeHosts;
use rounds::Loss;

#[test]
fn any_of_three_hosts_may_be_killed() {
    each_host_in_turn("three-hosts-killed", 28, Loss::Killed);
}

#[test]
fn any_of_three_hosts_may_be_cut_off() {
    each_host_in_turn("three-hosts-cut-off", 29, Loss::CutOff);
}

#[test]
fn etcd_is_used_with_certificates_and_a_password() {
    if all_there(&[Need::Root, Need::Etcd]) {
        let _turn = Exclusive::take();
        let scratch = Scratch::new("etcd-guarded");
        guarded::check(&scratch);
    }
}

#[test]
fn a_server_is_added_emptied_and_removed() {
    if all_there(&[Need::Root, Need::Fuse]) {
        let _turn = Exclusive::take();
        two_hosts::check(&Scratch::new("two-hosts"));
    }
}

#[test]
fn keys_and_tokens_change_while_a_user_works() {
    if all_there(&[Need::Root, Need::Fuse]) {
        let _turn = Exclusive::take();
        let scratch = Scratch::new("changed-keys");
        std::fs::set_permissions(scratch.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        changed_keys::check(&scratch);
    }
}

#[test]
fn a_volume_has_one_writer_whatever_is_converted_by_force() {
    if all_there(&[Need::Root, Need::Fuse]) {
        let _turn = Exclusive::take();
        let scratch = Scratch::new("one-writer");
        std::fs::set_permissions(scratch.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        one_writer::check(&scratch);
    }
}

fn each_host_in_turn(name: &'static str, number: u8, loss: Loss) {
    if !all_there(&[Need::Root, Need::Fuse, Need::OpenAfs, Need::Etcd]) {
        return;
    }
    let _turn = Exclusive::take();
    let scratch = Scratch::new(name);
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new(name, seconds(600), move || unmount_below(&folder));
    let bridge = Bridge::new(number);
    let mut cell = ThreeHosts::grown_from_one(&bridge, scratch.path());
    for victim in 0..3 {
        rounds::lose(&mut cell, &bridge, victim, loss);
    }
    if loss == Loss::Killed {
        etcd_keys::change(&mut cell);
    }
}
