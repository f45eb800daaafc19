//! The directory of a drive that is not served, checked by `andrew store check`.

use std::fs;

use afs_drive::{Drive, FileDrive};
use afs_env::Parts;
use andrew_tests::live::cell::{andrew, try_command};
use andrew_tests::live::mount::wait_for_word;
use andrew_tests::live::netns::Netns;
use andrew_tests::live::process::{Daemon, seconds};
use andrew_tests::live::scratch::Scratch;
use std::future::Future;
use std::task::{Context, Poll, Waker};

/// The result of work that is done at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it is not done at once"),
    }
}

#[test]
fn a_damaged_segment_is_named_and_gives_status_1() {
    let scratch = Scratch::new("damaged-drives");
    let netns = Netns::machine();
    let directory = scratch.folder("drive");
    let shown = directory.to_str().unwrap();
    let mut command = netns.command(andrew());
    command.args(["drive", "serve", "--listen", "127.0.0.1:0", "--dir", shown]);
    let mut served = Daemon::start(command, &scratch.path().join("drive.log"));
    wait_for_word(&mut served, "the drive listens at");
    let check = |more: &[&str]| {
        let output = try_command(&netns, &[&["store", "check", shown], more].concat());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (status, _, said) = check(&[]);
    assert!(status == Some(1) && said.contains("is served by another process"), "{said}");
    served.end(seconds(20));

    let store = FileDrive::open_directory(directory.join("store-0"), Parts::inline()).unwrap();
    let chunk = now(store.write(vec![5; 300_000].into())).unwrap();
    now(store.sync(&[chunk])).unwrap();
    drop(store);
    let (status, said, _) = check(&[]);
    assert!(status == Some(0) && said.contains("1 chunks with 0 MiB in 1 segments, all whole"), "{said}");

    let segment = directory.join("store-0/0000000000000001.seg");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[200_000] ^= 4;
    fs::write(&segment, &bytes).unwrap();
    let (status, said, error) = check(&[]);
    assert!(status == Some(1) && said.contains(segment.to_str().unwrap()), "{said}{error}");
    assert!(error.contains("1 parts of the drive") && error.contains("andrew drive check"), "{error}");
    let (status, said, _) = check(&["--json"]);
    let reports: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!((status, &reports[0]["whole"], &reports[0]["chunks"]), (Some(1), &false.into(), &0.into()));
    assert_eq!(reports[0]["damage"][0]["file"], segment.to_str().unwrap());
    assert_eq!(fs::read(&segment).unwrap(), bytes);
}
