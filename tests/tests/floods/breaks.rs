//! Clients that hold a callback promise on a file that changes all the time, and never reply to breaks.

use std::sync::atomic::{AtomicUsize, Ordering};

use afs_wire::fs::FetchStatus;
use andrew_tests::hostile::caller::silent_callback_service;

use super::client::{Client, Who};
use super::crowd::{Crowd, address};
use super::flood::{Flood, run};
use super::setup::{CROWD, Setup};

/// Clients, each at an address of its own outside those from which the crowd sends.
const CLIENTS: u16 = 64;
const FIRST: u16 = 0xff00;
/// That many clients, and 4096 calls that wait for them, of 8 KiB.
const GROWTH_KIB_MAX: u64 = 4096 * 8;

#[test]
fn clients_that_ignore_breaks_delay_few_writers() {
    let Some(mut setup) = Setup::new("floods-breaks") else { return };
    let (system, file) = (setup.honest.system().clone(), setup.honest.file());
    let netns = setup.lan.netns(CROWD);
    let deaf = |number: u16| {
        Client::new(
            &system,
            &netns,
            address(FIRST + number),
            silent_callback_service,
            Who::anonymous(FIRST + number),
        )
    };
    let clients: Vec<Client> = (0..CLIENTS).map(deaf).collect();
    let turn = AtomicUsize::new(0);
    // Each fetches the status again and again, and so renews the promise. These are no flood datagrams, so there is
    // nothing to divert.
    let wave = |crowd: &Crowd, _: &mut _| {
        if crowd.is_diverted() {
            return 1;
        }
        let files = clients[turn.fetch_add(1, Ordering::Relaxed) % clients.len()].files().clone();
        system.env().spawn(Box::pin(async move {
            let _ = files.call(&FetchStatus { fid: file }).await;
        }));
        1
    };
    let flood = Flood {
        name: "deaf clients",
        rate: 100,
        at_least: 0,
        growth_kib_max: GROWTH_KIB_MAX,
        also: &[],
        wave: &wave,
    };
    run(&mut setup, &flood);
}
