use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use afs_wire::fs::{Name, RemoveFile};
use afs_wire::ids::Fid;

use super::*;
use crate::api::TokenOwner;
use crate::key::CellIndex;
use afs_wire::fs::Change;

const DIR: Key = Key { cell: CellIndex(0), fid: Fid::root(afs_wire::ids::VolumeId(7)) };

type Entering<'a> = Pin<Box<dyn Future<Output = Seat> + Send + 'a>>;

fn poll<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
    match Pin::new(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// Somebody who enters, and has been polled once.
fn enter(rounds: &Arc<Rounds>, uid: u32, names: Option<&[&str]>) -> (Entering<'static>, Option<Seat>) {
    let rounds = rounds.clone();
    let names = names.map(|names| names.iter().map(|name| name.as_bytes().to_vec()).collect());
    let wish = Wish { user: Some(TokenOwner::Uid(uid)), names };
    let mut entering: Entering = Box::pin(async move { rounds.enter(DIR, wish).await });
    let seat = poll(&mut entering);
    (entering, seat)
}

fn remove(name: &str) -> Change {
    Change::RemoveFile(RemoveFile { dir: DIR.fid, name: Name::truncated(name.as_bytes()) })
}

#[test]
fn who_waits_at_the_same_moment_shares_a_round_with_the_same_user_and_other_names() {
    let rounds: Arc<Rounds> = Arc::default();
    let (_, first) = enter(&rounds, 1, Some(&["a"]));
    let first = first.unwrap();
    assert!(first.is_alone());
    let wishes: [(u32, Option<&[&str]>); 6] = [
        (1, Some(&["a"])),
        (2, Some(&["b"])),
        (1, Some(&["b", "c"])),
        (1, Some(&["c"])),
        (1, None),
        (1, Some(&["d"])),
    ];
    let mut waiting: Vec<_> = wishes.iter().map(|(uid, names)| enter(&rounds, *uid, *names).0).collect();
    drop(first);
    let mut rounds_of = Vec::new();
    while rounds_of.iter().map(Vec::len).sum::<usize>() < waiting.len() {
        let seats: Vec<(usize, Seat)> = (0..waiting.len())
            .filter(|at| !rounds_of.iter().flatten().any(|seated| seated == at))
            .collect::<Vec<_>>()
            .into_iter()
            .filter_map(|at| poll(&mut waiting[at]).map(|seat| (at, seat)))
            .collect();
        assert!(seats.iter().all(|(_, seat)| seat.is_alone() == (seats.len() == 1)));
        rounds_of.push(seats.iter().map(|(at, _)| *at).collect());
    }
    assert_eq!(rounds_of, [vec![0, 2, 5], vec![1], vec![3], vec![4]]);
    assert!(rounds.queues.lock().is_empty(), "nothing is kept of a directory that nobody changes");
}

#[test]
fn who_gives_up_in_the_queue_or_in_his_place_delays_nobody() {
    let rounds: Arc<Rounds> = Arc::default();
    let first = enter(&rounds, 1, Some(&["a"])).1.unwrap();
    let names: [&[&str]; 5] = [&["a"], &["b"], &["c"], &["d"], &["e"]];
    let mut waiting: Vec<_> = names.iter().map(|names| Some(enter(&rounds, 1, Some(names)).0)).collect();
    waiting[0] = None;
    drop(first);
    // In the round, and never looked at it.
    waiting[1] = None;
    let mut seats: Vec<Seat> = waiting.iter_mut().flatten().filter_map(poll).collect();
    assert_eq!(seats.len(), 3);
    let last = seats.pop().unwrap();
    let mut submitted = Box::pin(seats[0].submit(remove("c")));
    assert!(poll(&mut submitted).is_none(), "two have not said what they change");
    drop(last);
    let mut other = Box::pin(seats[1].submit(remove("d")));
    let Some(Step::Send(sending)) = poll(&mut other) else { panic!("the last one sends") };
    assert_eq!(sending.list().len(), 2);
    // The server has made none of them.
    sending.answered(Vec::new());
    drop(other);
    assert!(matches!(poll(&mut submitted), Some(Step::Single)));
    drop(submitted);
    let mut next = Box::pin(seats[1].next());
    assert!(poll(&mut next).is_none(), "its turn comes when the one before has done");
    drop(next);
    seats.remove(0);
    assert!(matches!(poll(&mut Box::pin(seats[0].next())), Some(Step::Single)));
}

#[test]
fn a_list_without_an_outcome_has_failed_for_all() {
    let rounds: Arc<Rounds> = Arc::default();
    let first = enter(&rounds, 1, Some(&["a"])).1.unwrap();
    let names: [&[&str]; 2] = [&["b"], &["c"]];
    let mut waiting: Vec<_> = names.iter().map(|names| enter(&rounds, 1, Some(names)).0).collect();
    drop(first);
    let seats: Vec<Seat> = waiting.iter_mut().filter_map(poll).collect();
    let mut submitted = Box::pin(seats[0].submit(remove("b")));
    assert!(poll(&mut submitted).is_none());
    let mut other = Box::pin(seats[1].submit(remove("c")));
    let sending = match (poll(&mut submitted), poll(&mut other)) {
        (None, Some(Step::Send(sending))) => sending,
        _ => panic!("the last one sends"),
    };
    // Whoever sends the list gives up: nobody knows what has become of it.
    drop(sending);
    assert!(matches!(poll(&mut submitted), Some(Step::Over(Err(_)))));
    drop(submitted);
}
