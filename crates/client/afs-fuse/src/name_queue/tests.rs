//! Tests of the queue with a kernel whose replies the test releases.

use super::*;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::Waker;

/// A kernel whose `invalidate` waits until the test continues it.
struct Kernel {
    told: Sender<&'static str>,
    go_on: Mutex<Receiver<()>>,
    can_revalidate: bool,
}

impl NameInvalidation for Kernel {
    fn invalidate(&self, _: INodeNo, _: &[u8]) {
        self.told.send("forget").unwrap();
        self.go_on.lock().recv().unwrap();
    }

    fn revalidate_all(&self) -> bool {
        self.told.send("doubt").unwrap();
        self.can_revalidate
    }
}

fn settled(names: &NameQueue) -> bool {
    let last = names.awaited(None);
    names.poll(last, &mut Context::from_waker(Waker::noop())).is_ready()
}

/// The thread with its kernel, and the test's ends of the channels.
struct Fixture {
    names: Arc<NameQueue>,
    kernel: Arc<Kernel>,
    heard: Receiver<&'static str>,
    go: Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

fn start(can_revalidate: bool) -> Fixture {
    let (told, heard) = channel();
    let (go, go_on) = channel();
    let names = Arc::new(NameQueue::default());
    let kernel = Arc::new(Kernel { told, go_on: Mutex::new(go_on), can_revalidate });
    let (theirs, theirs_kernel) = (names.clone(), kernel.clone());
    let thread = std::thread::spawn(move || theirs.run(&*theirs_kernel));
    Fixture { names, kernel, heard, go, thread }
}

#[test]
fn a_request_under_way_makes_all_names_doubtful_and_they_are_forgotten_after_it() {
    let Fixture { names, kernel, heard, go, thread } = start(true);
    names.enter(INodeNo(7), NameAccess::Changes, Some(&*kernel));
    names.enter(INodeNo(7), NameAccess::Changes, Some(&*kernel));
    names.add(INodeNo(7), [b"a"[..].into(), b"b"[..].into(), b"a"[..].into()]);
    assert_eq!(heard.recv().unwrap(), "doubt");
    while !settled(&names) {
        std::thread::yield_now();
    }
    names.leave(INodeNo(7), NameAccess::Changes);
    // A name of another directory is invalidated before: the first request is still in progress.
    names.add(INodeNo(8), [b"c"[..].into()]);
    assert_eq!(heard.recv().unwrap(), "forget");
    go.send(()).unwrap();
    while !settled(&names) {
        std::thread::yield_now();
    }
    assert!(heard.try_recv().is_err());
    names.leave(INodeNo(7), NameAccess::Changes);
    for _ in ["a", "b"] {
        assert_eq!(heard.recv().unwrap(), "forget");
        assert!(settled(&names), "nobody waits for it");
        go.send(()).unwrap();
    }
    names.close();
    thread.join().unwrap();
}

#[test]
fn a_name_is_queued_once_however_often_it_is_broken() {
    let (names, (told, _heard), (_go, go_on)) = (NameQueue::default(), channel(), channel());
    let kernel = Kernel { told, go_on: Mutex::new(go_on), can_revalidate: true };
    let add = || names.add(INodeNo(7), [b"a"[..].into(), b"b"[..].into()]);
    (0..1000).for_each(|_| add());
    assert_eq!(names.lock().work.queue.len(), 2);
    // The thread waits for the lock that a request holds: each break is awaited, and the names are revalidated instead.
    let step = names.try_next().unwrap();
    names.enter(INodeNo(7), NameAccess::Changes, Some(&kernel));
    for _ in 0..1000 {
        add();
        assert!(!settled(&names));
        names.awaited(Some(&kernel));
        assert!(settled(&names) && names.lock().work.queue.len() == 2);
    }
    names.ended(&step);
    names.leave(INodeNo(7), NameAccess::Changes);
    let left = std::iter::from_fn(|| names.try_next().inspect(|step| names.ended(step)));
    assert_eq!(left.map(|step| step.name).collect::<Vec<_>>(), [Box::from(*b"a"), Box::from(*b"b")]);
    assert!(names.lock().work.places.is_empty());
}

#[test]
fn a_request_that_comes_while_the_kernel_waits_frees_those_who_wait_for_it() {
    let Fixture { names, kernel, heard, go, thread } = start(true);
    names.add(INodeNo(7), [b"a"[..].into()]);
    assert_eq!(heard.recv().unwrap(), "forget");
    assert!(!settled(&names));
    names.enter(INodeNo(8), NameAccess::Changes, Some(&*kernel));
    assert!(!settled(&names));
    names.enter(INodeNo(7), NameAccess::Changes, Some(&*kernel));
    assert_eq!(heard.recv().unwrap(), "doubt");
    assert!(settled(&names));
    go.send(()).unwrap();
    names.close();
    thread.join().unwrap();
}

/// Two programs create files in a directory by turns, so that the lock goes from one request to the next.
#[test]
fn a_task_never_waits_for_a_lock_that_a_request_holds_whenever_its_name_was_added() {
    let Fixture { names, kernel, heard, go, thread } = start(true);
    names.add(INodeNo(7), [b"a"[..].into()]);
    assert_eq!(heard.recv().unwrap(), "forget");
    names.enter(INodeNo(7), NameAccess::Changes, Some(&*kernel));
    assert_eq!(heard.recv().unwrap(), "doubt");
    // A break that comes now is awaited by the server, for which the request waits.
    names.add(INodeNo(7), [b"b"[..].into()]);
    let last = names.awaited(Some(&*kernel));
    assert_eq!(heard.try_recv(), Ok("doubt"));
    assert!(names.poll(last, &mut Context::from_waker(Waker::noop())).is_ready());
    // Another one, of another directory, behind it in the queue; it costs one notification, however many wait.
    names.add(INodeNo(8), [b"c"[..].into()]);
    let last = names.awaited(Some(&*kernel));
    assert_eq!((names.awaited(Some(&*kernel)), heard.try_recv()), (last, Ok("doubt")));
    assert!(names.poll(last, &mut Context::from_waker(Waker::noop())).is_ready());
    assert!(heard.try_recv().is_err(), "nothing is left to wait for");
    names.leave(INodeNo(7), NameAccess::Changes);
    for _ in ["b", "c"] {
        go.send(()).unwrap();
        assert_eq!(heard.recv().unwrap(), "forget");
    }
    go.send(()).unwrap();
    names.close();
    thread.join().unwrap();
}

/// The kernel renames its entry `x` to `y`, so that it does not find `x` when that is to be invalidated.
#[test]
fn a_name_that_was_moved_meanwhile_is_forgotten_too() {
    let Fixture { names, kernel, heard, go, thread } = start(true);
    names.renamed(INodeNo(7), b"other", false);
    assert_eq!(names.awaited(None), 0, "nothing is stale");
    // Another directory keeps the thread from invalidating `x` while the request is in progress.
    names.add(INodeNo(8), [b"a"[..].into()]);
    assert_eq!(heard.recv().unwrap(), "forget");
    names.add(INodeNo(7), [b"x"[..].into()]);
    names.enter(INodeNo(7), NameAccess::Changes, Some(&*kernel));
    names.renamed(INodeNo(7), b"y", false);
    names.leave(INodeNo(7), NameAccess::Changes);
    for _ in ["x", "y"] {
        assert!(!settled(&names));
        go.send(()).unwrap();
        assert_eq!(heard.recv().unwrap(), "forget");
    }
    go.send(()).unwrap();
    names.renamed(INodeNo(7), b"z", true);
    assert_eq!(heard.recv().unwrap(), "forget", "something became stale while it was moved");
    go.send(()).unwrap();
    names.close();
    thread.join().unwrap();
}

#[test]
fn a_kernel_that_cannot_doubt_forgets_each_name_after_the_request_in_the_way() {
    let Fixture { names, kernel, heard, go, thread } = start(false);
    names.enter(INodeNo(7), NameAccess::Changes, Some(&*kernel));
    names.add(INodeNo(7), [b"a"[..].into(), b"b"[..].into()]);
    assert_eq!(heard.recv().unwrap(), "doubt");
    assert_eq!(heard.recv().unwrap(), "forget");
    // The request in progress may itself be waiting for the names.
    assert!(settled(&names));
    names.leave(INodeNo(7), NameAccess::Changes);
    go.send(()).unwrap();
    assert_eq!(heard.recv().unwrap(), "forget");
    go.send(()).unwrap();
    names.close();
    thread.join().unwrap();
}

#[test]
fn a_request_that_reads_is_waited_for_until_a_task_has_waited_long() {
    let Fixture { names, kernel, heard, go, thread } = start(true);
    names.enter(INodeNo(7), NameAccess::Reads, Some(&*kernel));
    names.add(INodeNo(7), [b"a"[..].into()]);
    assert_eq!(heard.recv().unwrap(), "forget", "the kernel waits for its lock");
    let first = names.awaited(Some(&*kernel));
    names.enter(INodeNo(7), NameAccess::Reads, Some(&*kernel));
    names.add(INodeNo(7), [b"b"[..].into()]);
    names.awaited(Some(&*kernel));
    assert!(heard.try_recv().is_err() && !settled(&names), "requests that read end by themselves");
    names.hurry(first, &*kernel);
    assert_eq!(heard.try_recv(), Ok("doubt"));
    assert!(settled(&names));
    // What is added later is waited for anew.
    names.add(INodeNo(8), [b"c"[..].into()]);
    names.awaited(Some(&*kernel));
    assert!(heard.try_recv().is_err() && !settled(&names));
    // A change is not waited for, as soon as it is there.
    names.enter(INodeNo(7), NameAccess::Changes, Some(&*kernel));
    assert_eq!(heard.try_recv(), Ok("doubt"));
    assert!(settled(&names));
    (0..2).for_each(|_| go.send(()).unwrap());
    names.close();
    thread.join().unwrap();
}

#[test]
fn names_that_are_hurried_wait_for_no_request_that_reads() {
    let (names, (told, heard), (_go, go_on)) = (NameQueue::default(), channel(), channel());
    let kernel = Kernel { told, go_on: Mutex::new(go_on), can_revalidate: true };
    names.enter(INodeNo(7), NameAccess::Reads, Some(&kernel));
    names.add(INodeNo(7), [b"a"[..].into()]);
    names.hurry(names.awaited(Some(&kernel)), &kernel);
    let step = names.try_next().unwrap();
    assert!(!names.begin(&step, &kernel) && settled(&names));
    assert_eq!(heard.try_recv(), Ok("doubt"));
    // Nobody waits for the name any more: it is invalidated when the directory is free.
    assert!(names.try_next().is_none());
    names.leave(INodeNo(7), NameAccess::Reads);
    assert_eq!(names.try_next().unwrap().name, Box::from(*b"a"));
}
