//! Simulated cells with an adversary on the network: acknowledged changes are kept, no user loses access or is
//! impersonated, honest clients continue to work, and the server stays within its bounds.
//!
//! Each kind of move has a test of its own, and one test mixes them. `ANDREW_SEEDS=N` runs that many mixed worlds, and
//! a twelfth of that for each kind; `ANDREW_SEED=S` runs the world of that seed, with `ANDREW_MOVE=NAME` of that kind
//! only. A failure message has the seed and the moves. An ignored test is of a move that still does harm; that kind is
//! not mixed with others.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeMap;

use afs_datapath::capability::Refusal;
use afs_sim::SimRng;
use afs_testkit::allocated::Counting;
use andrew_tests::sim::adversary::Move;
use andrew_tests::sim::adversary_run::{self, Plan};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_stranger_makes_no_call_on_the_connection_of_another() {
    kind(Move::Hijack);
}

#[test]
fn recorded_packets_do_nothing_after_a_restart() {
    kind(Move::Replay);
}

/// The server takes a new client's first call, is restarted, and has no record of it any more.
#[test]
fn a_client_that_starts_during_a_restart_of_the_server_starts_again() {
    run(4, &plan_of(Move::Replay, 4));
}

#[test]
fn recorded_packets_do_nothing_when_the_connection_was_forgotten() {
    kind(Move::ReplayEvicted);
}

#[test]
fn packets_that_overtake_their_originals_take_no_reply_away() {
    kind(Move::Overtake);
}

#[test]
fn packets_of_strangers_end_and_move_no_connection() {
    kind(Move::Disturb);
}

#[test]
fn gaps_in_a_sequence_take_no_memory() {
    kind(Move::SequenceGaps);
}

#[test]
fn calls_that_never_arrive_whole_keep_nobody_out() {
    kind(Move::IncompleteCalls);
}

#[test]
fn replies_that_nobody_takes_keep_nobody_out() {
    kind(Move::UnackedReplies);
}

#[test]
fn callers_that_do_not_identify_themselves_keep_no_other_out() {
    kind(Move::UnknownHosts);
}

#[test]
fn questions_tell_strangers_nothing_of_connections_and_caches() {
    kind(Move::Questions);
}

#[test]
fn an_address_that_has_proven_nothing_is_sent_little() {
    kind(Move::Amplify);
}

/// Two hundred addresses and eight sites of IPv6, at each of which the adversary takes its replies.
#[test]
fn hundreds_of_real_addresses_keep_nobody_out() {
    kind(Move::ManyAddresses);
}

/// The table is full all the time, and of the adversary's connections.
#[test]
fn hundreds_of_real_addresses_fill_the_table_of_connections() {
    let outcome = adversary_run::run(1, &plan_of(Move::ManyAddresses, 1));
    assert_eq!(outcome.verdict, Ok(()));
    let (sources, spent) = (outcome.account.sources(), outcome.account.spent());
    assert!(sources > 250, "{sources} addresses reached the server: {spent:?}");
    assert!(outcome.connections >= CONNECTIONS - 1, "{} connections: {spent:?}", outcome.connections);
}

#[test]
fn callbacks_are_not_diverted_to_a_client_that_uses_another_name() {
    kind(Move::Divert);
}

/// Packets are lost, so the server waits longer than usual for the reply to a break; the client that had the promise is gone.
#[test]
fn a_client_that_is_gone_delays_a_change_by_the_time_out_of_its_break() {
    run(42, &plan_of(Move::Divert, 42));
}

/// Hundreds of clients come and go, and nothing of those that are gone is held.
#[test]
fn clients_that_were_impersonated_and_are_gone_take_no_memory() {
    run(5, &plan_of(Move::Divert, 5));
}

#[test]
fn a_client_that_ignores_breaks_does_not_delay_writers() {
    kind(Move::IgnoreBreaks);
}

#[test]
fn false_breaks_cost_fetches_only() {
    kind(Move::FalseBreaks);
}

#[test]
fn streams_that_say_nothing_keep_nobody_out() {
    kind(Move::SilentStreams);
}

#[test]
fn recorded_streams_do_nothing() {
    kind(Move::ReplayedStreams);
}

#[test]
fn a_capability_that_nobody_has_sealed_permits_nothing() {
    kind(Move::ForgedCapabilities);
}

#[test]
fn streams_that_break_fail_no_operation() {
    kind(Move::CutStreams);
}

/// Moves that do nothing would show nothing.
#[test]
fn the_moves_on_streams_reach_the_drive() {
    let drive = |one| adversary_run::run(1, &plan_of(one, 1)).drive.unwrap();
    let silent = drive(Move::SilentStreams);
    assert!(silent.turned_away > 0 && silent.reads + silent.stores > 0, "{silent:?}");
    for one in [Move::ReplayedStreams, Move::ForgedCapabilities] {
        let counts = drive(one);
        assert!(counts.refused_for(Refusal::Forged) > 0 && counts.reads > 0, "{one:?}: {counts:?}");
    }
}

#[test]
fn files_that_look_like_the_log_harm_no_store() {
    kind(Move::LogRecords);
}

#[test]
fn a_machine_that_was_suspended_sees_nothing_old() {
    kind(Move::Suspend);
}

#[test]
fn more_files_than_the_status_cache_holds_lose_no_callbacks() {
    kind(Move::Crowd);
}

#[test]
fn more_files_than_the_status_cache_holds_and_partitions_lose_no_callbacks() {
    kind(Move::CrowdCutOff);
}

#[test]
fn every_kind_of_move_has_a_test() {
    let source = include_str!("adversary.rs");
    for one in Move::ALL {
        assert!(source.contains(&format!("    kind(Move::{one:?});\n")), "{one:?}");
    }
}

#[test]
fn no_mixture_of_moves_of_the_adversary_does_harm() {
    if std::env::var("ANDREW_MOVE").is_ok() {
        return;
    }
    let moves = each_seed(number("ANDREW_SEEDS").unwrap_or(10), &mixed);
    let in_vain: Vec<_> =
        moves.iter().filter(|(one, reached)| !one.is_of_the_world() && **reached == 0).collect();
    assert!(in_vain.is_empty(), "nothing of them has reached its target in any world: {in_vain:?}");
}

/// The same seed must give the same run, or a failing seed could not be reproduced.
#[test]
fn a_siege_from_one_seed_runs_the_same_twice() {
    for seed in 0..3 {
        let fingerprint = || adversary_run::run(seed, &mixed(seed)).fingerprint;
        assert_eq!(fingerprint(), fingerprint(), "seed {seed}");
    }
}

fn kind(one: Move) {
    if std::env::var("ANDREW_MOVE").is_ok_and(|name| Move::named(&name) != Some(one)) {
        return;
    }
    let seeds = number("ANDREW_SEEDS").map_or(SEEDS_OF_A_KIND, |seeds| seeds.div_ceil(12));
    each_seed(seeds, &|seed| plan_of(one, seed));
}

fn plan_of(one: Move, seed: u64) -> Plan {
    Plan::of(&[one], &mut SimRng::new(seed << 8 | one as u64))
}

/// Two to four kinds of moves that can be combined.
fn mixed(seed: u64) -> Plan {
    let mut rng = SimRng::new(seed);
    let count = rng.between(2, 4);
    let moves: Vec<Move> = (0..count).filter_map(|_| rng.pick(Move::HELD).copied()).collect();
    Plan::of(&moves, &mut rng)
}

/// What the moves of all runs have reached.
fn each_seed(seeds: u64, plan: &dyn Fn(u64) -> Plan) -> BTreeMap<Move, u64> {
    let seeds = number("ANDREW_SEED").map_or(0..seeds, |seed| seed..seed + 1);
    let mut all = BTreeMap::new();
    for (one, reached) in seeds.flat_map(|seed| run(seed, &plan(seed))) {
        *all.entry(one).or_default() += reached;
    }
    all
}

/// What each move has reached.
fn run(seed: u64, plan: &Plan) -> Vec<(Move, u64)> {
    println!("seed {seed} {plan:?}");
    let outcome = adversary_run::run(seed, plan);
    let adversary_run::Outcome { verdict, took, held, log, account, connections, .. } = outcome;
    let reached: Vec<_> = plan.moves.iter().map(|one| (*one, account.reached(*one))).collect();
    println!(
        "seed {seed} {:?} from {} addresses: took {took:?}, held {held}, {connections} connections: {verdict:?}",
        reached,
        account.sources()
    );
    if let Err(what) = verdict {
        panic!("seed {seed} {plan:?}: {what}\nthe last events:\n{log}");
    }
    reached
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

const SEEDS_OF_A_KIND: u64 = 2;
/// The server's bound of connections, in these cells.
const CONNECTIONS: usize = 600;
