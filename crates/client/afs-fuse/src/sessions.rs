//! Look-up of the session of a process: a group of processes of one user with a token of its own.
//!
//! The id of a session is a random number in the environment of its processes, which their children inherit. It is read
//! from `/proc`, with the environment that the process had when it started its program. A process whose environment may not be
//! read, because its program keeps secrets, is in the session of its parent.

use crate::reader_threads::ReaderThreads;
use afs_venus::{Requester, SessionCallback, SessionLookup};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

/// The environment variable: 32 hexadecimal digits.
pub const SESSION_VARIABLE: &str = "ANDREW_SESSION";

/// Longest environment that is read. Of a longer one, this much is searched for the variable.
const ENVIRONMENT_MAX: u64 = 1 << 20;
/// Most ancestors of a process that are examined, itself included.
const ANCESTORS_MAX: usize = 16;
/// Most processes remembered, about 100 bytes each.
const PROCESSES_MAX: usize = 4096;

/// Reads the environment of a process. The process can block it without end (see [`crate::reader_threads`]).
type Environment = fn(u32) -> Option<Vec<u8>>;

/// By process: the program it runs, and its session.
type Known = BTreeMap<u32, (Program, Option<u128>)>;

/// Finder of the sessions of processes of this machine.
pub struct ProcessSessions {
    known: Arc<Mutex<Known>>,
    readers: ReaderThreads,
    environment: Environment,
}

impl ProcessSessions {
    /// A finder with a thread of its own.
    ///
    /// # Errors
    /// The system grants no thread.
    pub fn start() -> io::Result<Self> {
        Ok(Self { known: Arc::default(), readers: ReaderThreads::start()?, environment })
    }
}

/// Identity of a program that a process runs: when the process began, and where its environment is in memory, which
/// differs for each program.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Program([u64; 3]);

impl SessionLookup for ProcessSessions {
    fn find_session(&self, of: Requester, tell: SessionCallback) {
        // The kernel has this line in memory: the process cannot block the read.
        let Some(program) = Program::running(of.pid) else { return };
        match self.lock().get(&of.pid) {
            Some((known, session)) if *known == program => return tell(*session),
            _ => {}
        }
        let (known, environment) = (self.known.clone(), self.environment);
        self.readers.read(of.uid, move || {
            let Some(session) = session_of(of.pid, environment) else { return };
            remember(&mut known.lock(), of.pid, program, session);
            tell(session);
        });
    }
}

impl ProcessSessions {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock()
    }
}

fn remember(known: &mut Known, pid: u32, program: Program, session: Option<u128>) {
    if known.len() >= PROCESSES_MAX {
        // Entries of processes that still make requests are found again.
        known.clear();
    }
    known.insert(pid, (program, session));
}

impl Program {
    /// The program that a process runs now; `None` if it has ended.
    fn running(pid: u32) -> Option<Self> {
        Self::of(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Parses the line of `/proc/PID/stat`: fields 22, 50 and 51 (proc(5)). The second field is a name in brackets,
    /// which may contain any characters.
    fn of(stat: &str) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // The first of these is field 3.
        let field = |number: usize| fields.get(number - 3)?.parse().ok();
        Some(Program([field(22)?, field(50)?, field(51)?]))
    }
}

/// The session of a process, or of the next of its ancestors whose environment can be read; `None` if there is none.
fn session_of(pid: u32, environment: Environment) -> Option<Option<u128>> {
    let mut next = pid;
    for _ in 0..ANCESTORS_MAX {
        if let Some(read) = environment(next) {
            return Some(session_in(&read));
        }
        next = parent(&fs::read_to_string(format!("/proc/{next}/stat")).ok()?).filter(|pid| *pid > 1)?;
    }
    None
}

/// The parent in the line of `/proc/PID/stat`: the fourth field, as [`Program::of`].
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn environment(pid: u32) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(format!("/proc/{pid}/environ")).ok()?.take(ENVIRONMENT_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn session_in(environment: &[u8]) -> Option<u128> {
    let mut entries = environment.split(|byte| *byte == 0);
    let value =
        entries.find_map(|entry| entry.strip_prefix(SESSION_VARIABLE.as_bytes())?.strip_prefix(b"="))?;
    let text = std::str::from_utf8(value).ok().filter(|text| text.len() == 32)?;
    u128::from_str_radix(text, 16).ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Reads an environment, and the line of `/proc/PID/stat`, of any bytes, for fuzzing: themselves, and as the value of the variable.
#[cfg(any(test, feature = "fuzzing"))]
pub fn read_any_process(bytes: &[u8]) {
    session_in(bytes);
    let value = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let entry = [b"A=b\0", SESSION_VARIABLE.as_bytes(), b"=", value, b"\0"].concat();
    if let Some(session) = session_in(&entry) {
        let again = format!("{session:032x}");
        assert!(again.as_bytes().eq_ignore_ascii_case(value), "two names of one session");
    }
    let line = String::from_utf8_lossy(bytes);
    for line in [&*line, &format!("7 ({line}) S 42 7 7"), &format!("7 (a) {line}")] {
        let _ = (Program::of(line), parent(line));
    }
    assert_eq!(parent(&format!("7 ({line}) S 42 7 7")), Some(42), "a name says who the parent is");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader_threads::OF_USER_MAX;
    use std::process::{Command, Stdio};
    use std::sync::mpsc::{Receiver, TryRecvError, channel};

    const SESSION: &str = "00112233445566778899aabbccddeeff";

    #[test]
    fn processes_are_bounded_and_found_again_when_there_are_too_many() {
        let mut known = Known::default();
        (0..3 * PROCESSES_MAX as u32).for_each(|pid| {
            remember(&mut known, pid, Program([0; 3]), Some(7));
            assert!(known.len() <= PROCESSES_MAX && known.contains_key(&pid));
        });
    }

    #[test]
    fn a_session_is_found_in_an_environment() {
        let with = |value: &str| session_in(format!("A=b\0{SESSION_VARIABLE}={value}\0C=d\0").as_bytes());
        assert_eq!(with(SESSION), Some(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff));
        assert_eq!(with("+0112233445566778899aabbccddeeff"), None);
        assert_eq!(with("1234"), None);
        assert_eq!(session_in(format!("X{SESSION_VARIABLE}={SESSION}\0").as_bytes()), None);
        assert_eq!(session_in(b""), None);
    }

    #[test]
    fn environments_and_lines_of_any_bytes_are_read_without_a_panic() {
        let (mut seed, bytes) = (1u64, b"0123456789abcdefAF+)( S=\0\xff");
        for len in (0..3000).map(|number| number % 60) {
            let next = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (seed >> 33) as usize
            };
            let any: Vec<u8> =
                std::iter::repeat_with(next).take(len).map(|n| bytes[n % bytes.len()]).collect();
            read_any_process(&any);
        }
        read_any_process(SESSION.as_bytes());
    }

    fn asked(sessions: &ProcessSessions, uid: u32, pid: u32) -> Receiver<Option<u128>> {
        let (tell, told) = channel();
        sessions.find_session(Requester { uid, pid }, Box::new(move |session| _ = tell.send(session)));
        told
    }

    /// Every process is in session 5, but the environment of a process of [`sleeper`] never ends.
    fn blocked(pid: u32) -> Option<Vec<u8>> {
        let line = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        if line == "sleep\n" {
            loop {
                std::thread::park();
            }
        }
        Some(format!("{SESSION_VARIABLE}={:032x}", 5).into_bytes())
    }

    fn sleeper() -> std::process::Child {
        let mut child =
            Command::new("sh").args(["-c", "echo; exec sleep 1000"]).stdout(Stdio::piped()).spawn().unwrap();
        while fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap() != "sleep\n" {
            assert_eq!(child.try_wait().unwrap(), None);
            std::thread::yield_now();
        }
        child
    }

    #[test]
    fn a_process_that_cannot_be_read_holds_up_nobody_else() {
        let sessions = ProcessSessions { environment: blocked, ..ProcessSessions::start().unwrap() };
        let mut child = sleeper();
        let (mine, theirs) = (1, 2);
        let stuck: Vec<_> = (0..10 * OF_USER_MAX).map(|_| asked(&sessions, mine, child.id())).collect();
        for _ in 0..10 {
            assert_eq!(asked(&sessions, theirs, std::process::id()).recv(), Ok(Some(5)));
        }
        assert!(stuck.iter().all(|told| told.try_recv() == Err(TryRecvError::Empty)));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_that_begins_another_program_is_looked_at_again() {
        let sessions = ProcessSessions::start().unwrap();
        // The shell waits for a line, then continues as another program in a session.
        let script = format!("read line; export {SESSION_VARIABLE}={SESSION}; exec cat");
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .env_remove(SESSION_VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let of = |pid| asked(&sessions, 1, pid).recv().unwrap();
        let before = of(child.id());
        assert_eq!(before, None);
        std::io::Write::write_all(&mut input, b"go\necho\n").unwrap();
        // `cat` runs once it replies.
        let mut answer = [0; 5];
        child.stdout.take().unwrap().read_exact(&mut answer).unwrap();
        let expected = u128::from_str_radix(SESSION, 16).ok();
        assert_eq!(of(child.id()), expected);
        assert_eq!(of(child.id()), expected);
        drop(input);
        child.wait().unwrap();
        // Nothing is known of processes that have ended, and of none.
        for ended in [child.id(), 0] {
            assert_eq!(asked(&sessions, 1, ended).recv().ok(), None);
        }
    }

    /// In session 5 is this process alone; the environments of others cannot be read.
    fn own_alone(pid: u32) -> Option<Vec<u8>> {
        (pid == std::process::id()).then(|| format!("{SESSION_VARIABLE}={:032x}", 5).into_bytes())
    }

    #[test]
    fn a_process_that_cannot_be_read_is_in_the_session_of_its_parent() {
        let sessions = ProcessSessions { environment: own_alone, ..ProcessSessions::start().unwrap() };
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        assert_eq!(asked(&sessions, 1, child.id()).recv(), Ok(Some(5)));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(parent("7 (a) b) S 42 7 7"), Some(42));
        let nowhere = ProcessSessions { environment: |_| None, ..ProcessSessions::start().unwrap() };
        assert!(asked(&nowhere, 1, std::process::id()).recv().is_err(), "it is not known");
    }

    #[test]
    fn a_line_of_proc_is_read_whatever_the_programs_name() {
        let fields: Vec<String> = (3..=52).map(|n| (n * 10).to_string()).collect();
        let line = format!("1 (a) b (c) {}", fields.join(" "));
        assert_eq!(Program::of(&line), Some(Program([220, 500, 510])));
        assert_eq!(Program::of("1 (x) 3 4"), None);
    }
}
