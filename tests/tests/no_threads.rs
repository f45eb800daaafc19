//! A machine that grants no more threads: the limit of processes of an ordinary user, at the start and while programs run.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use andrew_tests::live::cell::{CELL, andrew};
use andrew_tests::live::fuse_for_all::fuse_for_all;
use andrew_tests::live::mount::{Mount, wait_for_word};
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::netns::Netns;
use andrew_tests::live::process::{Daemon, run, run_any, seconds};
use andrew_tests::live::setup::Setup;
use andrew_tests::live::user::User;
use andrew_tests::live::wait::until;

/// No test starts more threads in one program.
const LIMITS: std::ops::Range<u32> = 1..400;
const ADVICE: &str = "the limit of processes and threads is reached; raise it (`ulimit -u`";

/// Users with accounts.
const USERS: [u32; 4] = [47_110, 47_111, 47_112, 47_113];

fn with_fuse_for_all(setup: &Setup) -> (Daemon, Netns) {
    fuse_for_all(setup.netns(), setup.scratch().path(), &USERS)
}

/// A user without an account, who is nobody of the cell until [`User::new`].
fn local<'a>(netns: &'a Netns, setup: &Setup, name: &str, uid: u32) -> User<'a> {
    let user = User::known(netns, setup.scratch().path(), name, uid);
    let home = user.home().to_owned();
    std::fs::create_dir_all(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(uid), Some(uid)).unwrap();
    user
}

/// A command of `andrew` as this user, who may have so many processes and threads.
fn limited(user: &User<'_>, limit: u32, words: &[&str]) -> Command {
    let program = andrew().display().to_string();
    let limit = format!("--nproc={limit}");
    let words: Vec<&str> = [&*limit, &program].into_iter().chain(words.iter().copied()).collect();
    user.command("prlimit", &words)
}

/// The end of a program that could not start: one line, and no trace of a panic.
fn assert_told(said: &str, code: Option<i32>, what: &str) {
    assert!(!said.contains("panicked") && !said.contains("backtrace"), "{what}:\n{said}");
    let errors: Vec<_> = said.lines().filter(|line| line.starts_with("andrew: ")).collect();
    assert!(errors.len() == 1 && errors[0].contains(ADVICE), "{what}: {errors:?}\n{said}");
    assert_eq!(code, Some(1), "{what}:\n{said}");
}

/// Starts a daemon with one thread more at a time until it runs; returns how often it said that it cannot.
fn starts_or_tells(user: &User<'_>, words: &[&str], ready: &str) -> usize {
    let what = words[0];
    for limit in LIMITS {
        let log = user.home().join(format!("{what}-{limit}.log"));
        let mut process = Daemon::start(limited(user, limit, words), &log);
        let runs = until(&format!("{what} with {limit} threads"), seconds(60), || {
            let is_over = process.is_over();
            (is_over || process.said().contains(ready)).then_some(!is_over)
        });
        let status =
            process.end(seconds(30)).unwrap_or_else(|| panic!("{what} with {limit} threads does not end"));
        if runs {
            assert!(status.success(), "{what} with {limit} threads: {status}\n{}", process.said());
            return limit as usize - 1;
        }
        assert_told(&process.said(), status.code(), &format!("{what} with {limit} threads"));
    }
    panic!("{what} did not start with {} threads", LIMITS.end)
}

#[test]
fn what_cannot_start_says_so_in_a_line() {
    if !all_there(&[Need::Fuse, Need::Root]) {
        return;
    }
    let setup = Setup::new("no_threads_start", 90, seconds(900));
    let (_fuse, netns) = with_fuse_for_all(&setup);
    let user = local(&netns, &setup, "starter", 47_110);
    let home = |name: &str| user.home().join(name).display().to_string();
    let (state, point, drive) = (home("state"), home("afs"), home("drive"));
    let serve = ["serve", "--state", &state, "--cell", CELL, "--listen", setup.address()];
    let mut told = starts_or_tells(&user, &serve, "its state is in");
    let address = format!("{}:0", setup.address());
    told += starts_or_tells(
        &user,
        &["drive", "serve", "--listen", &address, "--dir", &drive],
        "the drive listens at",
    );
    let up = [&["up"], &serve[1..], &["--mount", &point]].concat();
    told += starts_or_tells(&user, &up, "its state is in");

    let mut cell =
        Daemon::start(user.command(&andrew().display().to_string(), &serve), &user.home().join("cell.log"));
    wait_for_word(&mut cell, "its state is in");
    // Mounts and commands are another user's, whose threads alone count.
    let other = local(&netns, &setup, "mounter", 47_111);
    let (point, cache) = (other.home().join("afs"), other.home().join("cache"));
    let (point, cache) = (point.display().to_string(), cache.display().to_string());
    let mount = ["mount", "--cell", CELL, "--servers", setup.address(), "--cache", &cache, &point];
    told += starts_or_tells(&other, &mount, "its cache is in");
    assert!(told > 40, "only {told} starts were refused");
    for words in [&["vos", "listvldb", "--cell", CELL, "--servers", setup.address()][..], &["tokens"]] {
        let refused = run_any(limited(&other, 1, words), seconds(60));
        assert_told(&all_of(&refused), refused.status.code(), words[0]);
    }
    let detached = [&mount[..], &["--detach"]].concat();
    for limit in [1, 2, 4] {
        let refused = run_any(limited(&other, limit, &detached), seconds(60));
        assert_told(&all_of(&refused), refused.status.code(), "mount --detach");
    }
}

fn all_of(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

/// Longer than a thread without work stays.
const IDLE: Duration = Duration::from_secs(12);

/// The owner of a process may set its limit, too.
fn set_limit((user, process): (&User<'_>, &Daemon), limit: &str) {
    let (pid, limit) = (process.pid().to_string(), format!("--nproc={limit}:"));
    let _ = run(user.command("prlimit", &["--pid", &pid, &limit]), seconds(10));
}

fn sh(user: &User<'_>, path: &Path, line: &str) -> String {
    let output = user.sh(path, line);
    assert!(output.status.success(), "{line}: {}", all_of(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Eight processes make, write, read, rename and remove at the same time, in a private directory.
const WORK: &str = r#"set -e; cd "$A/private"; mkdir $R; cd $R
for p in 1 2 3 4 5 6 7 8; do (
  for n in 1 2 3 4 5 6; do
    head -c ${p}00000 /dev/urandom > new; mv new $p-$n; { echo; echo $R $p $n; } >> $p-$n; sync $p-$n; tail -n 1 $p-$n | grep -qx "$R $p $n"; done 
  rm $p-1 ) 2>&1 & pids="$pids $!"; done
for pid in $pids; do wait $pid; done
sha256sum * > sums; ls | wc -l"#;

fn work(user: &User<'_>, mount: &Mount, round: &str) {
    // Each process renames a file of its own.
    let line = WORK.replace("> new; mv new", "> new-$p; mv new-$p").replace("$R", round);
    assert_eq!(sh(user, mount.path(), &line).trim(), "41");
}

fn verify(user: &User<'_>, mount: &Mount, rounds: &[&str]) {
    for round in rounds {
        let line = format!("cd \"$A/private/{round}\" && sha256sum --quiet -c sums && ls | wc -l");
        assert_eq!(sh(user, mount.path(), &line).trim(), "41", "{round}");
    }
}

#[test]
fn programs_that_run_go_on_without_further_threads() {
    if !all_there(&[Need::Fuse, Need::Root]) {
        return;
    }
    let setup = Setup::new("no_threads_running", 91, seconds(600));
    let (_fuse, netns) = with_fuse_for_all(&setup);
    let owner = local(&netns, &setup, "owner", 47_112);
    let state = owner.home().join("state");
    let shown = state.display().to_string();
    let words =
        ["serve", "--state", &shown, "--cell", CELL, "--listen", setup.address(), "--anyuser", "rlidwka"];
    let serve = |log: &str| {
        let command = owner.command(&andrew().display().to_string(), &words);
        let mut process = Daemon::start(command, &owner.home().join(log));
        wait_for_word(&mut process, "its state is in");
        process
    };
    let mut cell = serve("cell0.log");
    let user = User::new(&netns, &state, setup.scratch().path(), "amy", 47_113);
    let mounts = ["one", "two"].map(|name| Mount::of_user(&user, CELL, setup.address(), name));
    user.log_in(CELL, setup.address());
    let private = mounts[0].path().join("private").display().to_string();
    let _ = sh(&user, mounts[0].path(), "mkdir \"$A/private\"");
    let _ = user.andrew(&["fs", "setacl", &private, "amy", "all", "--clear"]);
    work(&user, &mounts[0], "before");

    let processes = [(&owner, &cell), (&user, &mounts[0].process), (&user, &mounts[1].process)];
    processes.iter().for_each(|process| set_limit(*process, "1"));
    std::thread::sleep(IDLE);
    work(&user, &mounts[0], "without");
    work(&user, &mounts[1], "too");
    mounts.iter().for_each(|mount| verify(&user, mount, &["before", "without", "too"]));
    // A connection of the control socket has a thread of its own.
    let asked = || {
        run_any(
            owner.command(&andrew().display().to_string(), &["drive", "list", "--state", &shown]),
            seconds(60),
        )
    };
    let refused = asked();
    let said = all_of(&refused);
    assert!(
        refused.status.code() == Some(1)
            && said.contains("the limit of processes is reached there; try again"),
        "{said}"
    );

    processes.iter().for_each(|process| set_limit(*process, "1000"));
    assert!(asked().status.success());
    work(&user, &mounts[1], "after");
    processes
        .iter()
        .for_each(|(_, process)| assert!(!process.said().contains("panicked"), "{}", process.said()));
    cell.kill();
    let _again = serve("cell1.log");
    let fresh = Mount::of_user(&user, CELL, setup.address(), "fresh");
    user.log_in(CELL, setup.address());
    verify(&user, &fresh, &["before", "without", "too", "after"]);
    let stranger = setup.mount("stranger", &[]);
    assert!(std::fs::read_dir(stranger.path().join("private")).is_err());
}
