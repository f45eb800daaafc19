//! The threads on which tasks continue that were begun on a thread of their own.

// Tests and their helpers may panic.
#![allow(clippy::unwrap_used)]

use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::sync::mpsc::{RecvError, channel};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use afs_net::System;
use afs_rpc::sync::{Notify, oneshot};
use afs_rpc::{Env, EnvExt, Stall};

fn system() -> Arc<System> {
    System::with_workers(1).unwrap()
}

#[test]
fn a_task_goes_on_where_blocking_work_has_woken_it() {
    let system = system();
    let env = system.env();
    let (go, started) = channel();
    let (tell, told) = channel();
    system.start(
        Box::pin(async move {
            let work = move || {
                started.recv().unwrap();
                thread::current().id()
            };
            let worked_at = env.run_blocking(work).await.unwrap();
            // Work that may block for any time needs no other thread there.
            let works_at = env.run_stalling(Stall::Any, || thread::current().id()).await.unwrap();
            tell.send([worked_at, thread::current().id(), works_at]).unwrap();
        }),
        Stall::Brief,
    );
    go.send(()).unwrap();
    let [first, second, third] = told.recv().unwrap();
    assert_eq!((first, first), (second, third));
    assert_ne!(first, thread::current().id());
}

#[test]
fn small_work_is_done_where_a_request_was_read_and_other_work_is_not() {
    let system = system();
    let env = system.env();
    let (tell, told) = channel();
    system.start(
        Box::pin(async move {
            let brief = env.run_stalling(Stall::Brief, || thread::current().id()).await.unwrap();
            let any = env.run_stalling(Stall::Any, || thread::current().id()).await.unwrap();
            tell.send((brief, any)).unwrap();
        }),
        Stall::Brief,
    );
    let (brief, any) = told.recv().unwrap();
    assert_eq!(brief, thread::current().id());
    assert_ne!(any, brief);
    assert_eq!(system.stall(), Stall::None, "only while the task is polled");
}

#[test]
fn a_woken_task_does_not_wait_for_the_rest_of_the_work_that_woke_it() {
    let system = system();
    let env = system.env();
    let (answer, answered) = oneshot::channel();
    let (tell, told) = channel();
    system.start(
        Box::pin(async move {
            answered.await.unwrap();
            tell.send(()).unwrap();
        }),
        Stall::None,
    );
    let (end, ended) = channel();
    system.blocking(Box::new(move || {
        answer.send(()).unwrap();
        env.release_woken();
        end.send(told.recv()).unwrap();
    }));
    assert_eq!(ended.recv().unwrap(), Ok(()));
}

#[test]
fn work_that_continues_runs_tasks_that_it_has_woken() {
    let system = system();
    let env = system.env();
    let woken = Arc::new(Notify::new());
    let (tell, told) = channel();
    for _ in 0..3 {
        let (woken, tell) = (woken.clone().notified_owned(), tell.clone());
        system.start(
            Box::pin(async move {
                woken.await;
                tell.send(thread::current().id()).unwrap();
            }),
            Stall::None,
        );
    }
    let (end, ended) = channel();
    system.blocking(Box::new(move || {
        woken.notify_waiters();
        env.release_woken();
        let first = told.try_recv();
        end.send((thread::current().id(), first, told)).unwrap();
    }));
    let (worked_at, first, told) = ended.recv().unwrap();
    assert_eq!(first, Ok(worked_at));
    // Where the processor was taken away, the pool has run the others.
    assert_eq!(told.iter().take(2).count(), 2);
}

#[test]
fn all_tasks_that_one_work_has_woken_go_on() {
    let system = system();
    let woken = Arc::new(Notify::new());
    let (tell, told) = channel();
    for number in 0..20 {
        let (woken, tell) = (woken.clone().notified_owned(), tell.clone());
        system.start(
            Box::pin(async move {
                woken.await;
                tell.send(number).unwrap();
            }),
            Stall::None,
        );
    }
    system.blocking(Box::new(move || woken.notify_waiters()));
    let mut all: Vec<u32> = told.iter().take(20).collect();
    all.sort_unstable();
    assert_eq!(all, (0..20).collect::<Vec<_>>());
}

#[test]
fn a_task_that_is_woken_while_it_runs_runs_again() {
    let system = system();
    let (tell, told) = channel();
    let mut polls = 0;
    let task = poll_fn(move |cx| {
        polls += 1;
        cx.waker().wake_by_ref();
        if polls < 3 {
            return Poll::Pending;
        }
        tell.send(polls).unwrap();
        Poll::Ready(())
    });
    system.start(Box::pin(task), Stall::Brief);
    assert_eq!(told.recv(), Ok(3));
}

#[test]
fn a_panic_ends_the_task_alone() {
    let system = system();
    system.start(Box::pin(async { panic!("on purpose") }), Stall::None);
    let (tell, told) = channel();
    system.start(Box::pin(async move { tell.send(()).unwrap() }), Stall::None);
    assert_eq!(told.recv(), Ok(()));
}

#[test]
fn waiting_tasks_are_dropped_at_the_end_of_the_runtime() {
    let system = system();
    let (kept, dropped) = channel::<()>();
    system.start(
        Box::pin(async move {
            pending::<()>().await;
            drop(kept);
        }),
        Stall::None,
    );
    // The `Notify` that it waits for references it, too.
    let never = Arc::new(Notify::new());
    let (held, let_go) = channel::<()>();
    let waiting = never.clone().notified_owned();
    system.start(
        Box::pin(async move {
            waiting.await;
            drop(held);
        }),
        Stall::None,
    );
    system.shutdown(Duration::from_secs(10));
    assert_eq!((dropped.recv(), let_go.recv()), (Err(RecvError), Err(RecvError)));
    never.notify_waiters();
    let (tell, told) = channel();
    system.start(Box::pin(async move { tell.send(()).unwrap() }), Stall::None);
    assert_eq!(told.recv(), Err(RecvError), "begun after the end");
}
