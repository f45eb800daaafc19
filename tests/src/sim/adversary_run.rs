//! Runs of a simulated cell with an adversary: users at work, faults, and the checks at the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use afs_datapath::session::Counts;
use afs_rpc::{Level, Limits};
use afs_sim::SimRng;
use afs_venus::VenusError;

use super::adversary::{Account, Adversary, Move};
use super::cell::Cell;
use super::content::ContentForm;
use super::fault_class::FaultClass;
use super::faults::{self, AtWork};
use super::history::History;
use super::identities::name_of;
use super::invariants::{Invariants, Secrecy};
use super::settings::CellSettings;
use super::user::{Habits, User};

/// What happens in a world besides the work of its users.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The adversary's moves, in turn.
    pub moves: Vec<Move>,
    /// The security levels of the users, in turn; `None`: unauthenticated.
    pub proofs: Vec<Option<Level>>,
    /// The faults.
    pub faults: FaultClass,
    /// Whether the server is restarted repeatedly.
    pub restarts: bool,
    /// Number of files.
    pub files: usize,
    /// Whether all machines access all files all the time.
    pub crowd: bool,
    /// Whether bytes of files travel by the data path.
    pub data_path: bool,
}

/// Outcome of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Equal for equal runs.
    pub fingerprint: u64,
    /// The first violation, if any.
    pub verdict: Result<(), String>,
    /// The total duration of the slowest user's operations, and the longest operation of any.
    pub took: (Duration, Duration),
    /// What each move has reached, and what the adversary has spent.
    pub account: Account,
    /// Most connections that the server has held at a time.
    pub connections: usize,
    /// Most memory held in addition to that at the beginning, in bytes.
    pub held: isize,
    /// What the server's drive has done since its last start, if it has a data path.
    pub drive: Option<Counts>,
    /// The last events.
    pub log: String,
}

impl Plan {
    /// A plan for these moves.
    #[must_use]
    pub fn of(moves: &[Move], rng: &mut SimRng) -> Self {
        let has = |one| moves.contains(&one);
        let levels: &[Level] = match has(Move::Replay) || has(Move::ReplayEvicted) || has(Move::Overtake) {
            // A level without integrity guarantees something only against adversaries that cannot forge a source
            // address.
            true => &[Level::Crypt, Level::Auth],
            false => &[Level::Crypt, Level::Auth, Level::Clear],
        };
        let mut proofs: Vec<_> = (0..2).map(|_| Some(levels[rng.index(levels.len())])).collect();
        if has(Move::Divert) {
            proofs[1] = None;
        }
        if has(Move::Suspend) {
            // A user with a token requests its rights again every second, and is then notified of what it missed.
            proofs = vec![proofs[0], None, None];
        }
        let crowd = has(Move::Crowd) || has(Move::CrowdCutOff);
        if crowd {
            // Ciphers would take most of the run.
            proofs.fill(Some(Level::Clear));
        }
        let faults = match rng.chance(300_000) {
            _ if has(Move::LogRecords) => FaultClass::PowerFailures,
            _ if has(Move::CrowdCutOff) => FaultClass::Partitions,
            _ if has(Move::Crowd) => FaultClass::LossyNetwork,
            true if !has(Move::Suspend) && !has(Move::IgnoreBreaks) => FaultClass::LossyNetwork,
            _ => FaultClass::None,
        };
        let files = if crowd { 130 } else { 3 };
        let data_path = rng.chance(500_000) || Move::OF_STREAMS.into_iter().any(has);
        Self { moves: moves.to_vec(), proofs, faults, restarts: has(Move::Replay), files, crowd, data_path }
    }

    fn has(&self, one: Move) -> bool {
        self.moves.contains(&one)
    }

    /// Whether the server loses its memory during the run.
    fn forgets(&self) -> bool {
        self.restarts || self.faults == FaultClass::PowerFailures
    }

    /// Whether every operation must succeed within its time limit.
    fn is_calm(&self) -> bool {
        !self.forgets() && self.faults.is_without_failures() && !self.has(Move::Suspend)
    }

    /// Limits of one operation, and of all operations of a user together. A client waits half a minute for a drive that
    /// takes no bytes, and more where they are many; then it leaves the path alone for a minute, and for two. A change
    /// waits for the break of a promise of a client that is gone, and there are many of those where names are diverted, at many addresses:
    /// twice at most, as docs/security.md says of clients that ignore breaks.
    fn time_max(&self) -> (Duration, Duration) {
        let drive = if self.has(Move::CutStreams) { Duration::from_secs(45) } else { Duration::ZERO };
        let gone = if self.has(Move::Divert) && self.is_patient() { 2 * BREAK_REPLY } else { Duration::ZERO };
        (OPERATION_MAX + drive + gone, WORK_MAX + 2 * (drive + gone))
    }

    /// Whether the server waits long for the replies to breaks: packets are lost, and all clients are to be told.
    fn is_patient(&self) -> bool {
        self.faults != FaultClass::None
    }

    /// Whether the bytes sent to false sources are checked.
    fn weighs(&self) -> bool {
        self.has(Move::Amplify) || self.has(Move::Questions)
    }

    fn secrecy(&self) -> Secrecy {
        if self.proofs.contains(&None) {
            return Secrecy::Nothing;
        }
        let sealed = self.proofs.iter().all(|proof| *proof == Some(Level::Crypt));
        if sealed { Secrecy::FromListeners } else { Secrecy::FromStrangers }
    }

    /// Limit of the memory that all machines of the world hold together, beyond what the cell holds before it is
    /// started, the hosts of the adversary and what it has heard included. An ordinary run takes half of it.
    fn held_max(&self) -> isize {
        if self.crowd { 64 << 20 } else { 24 << 20 }
    }

    fn settings(&self) -> CellSettings {
        let mut settings = CellSettings::guarded(self.proofs.clone(), !self.proofs.contains(&None));
        if self.is_patient() {
            settings.files.timeouts.break_reply = BREAK_REPLY;
        }
        if self.has(Move::SequenceGaps) {
            // As many calls as a server accepts by default, since the memory of each is what counts here.
            settings.rx.incoming_calls_max = afs_rx::Config::default().incoming_calls_max;
            settings.calls = Limits::default();
        }
        if self.has(Move::UnknownHosts) || self.has(Move::Divert) {
            settings.files.hosts = 64;
        }
        settings.data_path = self.data_path;
        settings.venus.statuses_max = 100;
        if self.crowd {
            // Promises that are no longer needed are given back repeatedly in the course of a run.
            settings.venus.maintenance = Duration::from_millis(200);
        }
        settings
    }

    fn habits(&self, user: usize) -> Habits {
        let think = match self.has(Move::Suspend) {
            true => Duration::from_secs(300),
            false if self.crowd => Duration::from_millis(200),
            false => Duration::from_millis(2500),
        };
        Habits {
            steps: if self.crowd { STEPS / 2 } else { STEPS },
            calls_first: self.forgets(),
            think,
            reads_only: self.proofs[user % self.proofs.len()].is_none(),
        }
    }
}

/// Runs a world to its end.
#[must_use]
pub fn run(seed: u64, plan: &Plan) -> Outcome {
    let cell = Cell::with(seed, plan.settings());
    let history = History::new(cell.sim.world());
    let invariants = Invariants::new(&cell, plan.secrecy(), plan.weighs(), plan.held_max());
    let mut users = Vec::new();
    let mut account = Account::default();
    let lived = live(&cell, &history, &invariants, seed, plan, (&mut users, &mut account));
    // The most serious violation first.
    let verdict = invariants
        .verdict()
        .and_then(|()| match plan.forgets() {
            true => only_while_it_was_asked_for(&cell, &history),
            false => only_what_was_asked_for(&cell, &users),
        })
        .and_then(|()| history.check())
        .and(lived)
        .and_then(|()| in_time(&history, plan))
        .and_then(|()| reached(&cell, &history, &account, plan));
    Outcome {
        fingerprint: cell.sim.fingerprint(),
        verdict,
        took: history.slowest(),
        account,
        connections: invariants.most_connections(),
        held: invariants.most_held(),
        drive: cell.machine.drive_counts(),
        log: format!("{}\n{}", cell.sim.notes_tail(80), cell.sim.log_tail(60)),
    }
}

fn live(
    cell: &Cell,
    history: &History,
    invariants: &Invariants,
    seed: u64,
    plan: &Plan,
    (users, account): (&mut Vec<User>, &mut Account),
) -> Result<(), String> {
    let mut rng = SimRng::new(seed);
    cell.start();
    for number in 0..3 {
        users.push(cell.user(number, history)?);
    }
    let files: Vec<String> = (0..plan.files).map(|n| format!("file{n}")).collect();
    let (first, names) = (users[0].clone(), files.clone());
    let prepared = cell.sim.block_on(first.node, RUN, async move { first.prepare(&names).await });
    prepared.map_err(|hang| hang.to_string())?.map_err(|error| error.to_string())?;

    cell.sim.set_link(plan.faults.link(&mut rng));
    history.look_away(!plan.faults.is_seen_by_all());
    if plan.has(Move::LogRecords) {
        history.form(ContentForm::LogRecords);
    }
    let working: AtWork = Arc::new(AtomicUsize::new(users.len()));
    for user in &*users {
        set_to_work(user, &files, plan, &working, rng.fork());
    }
    spawn_faults(cell, users, &files, plan, &working, &mut rng);
    *account =
        Adversary::spawn(cell, plan.moves.clone(), users, invariants.clone(), working.clone(), rng.fork());
    if plan.is_calm() && !plan.crowd {
        users.push(newcomer(cell, history, &files, plan, &working, &mut rng)?);
    }
    let done = || working.load(Ordering::Relaxed) == 0 && cell.sim.is_up(cell.server);
    cell.sim.run_until(RUN, done).map_err(|hang| hang.to_string())?;
    if plan.is_calm()
        && let Some(failure) = history.first_failure()
    {
        return Err(format!("an operation failed though the server was up: {failure}"));
    }
    finish(cell, history, users, &files, plan)
}

fn set_to_work(user: &User, files: &[String], plan: &Plan, working: &AtWork, mut rng: SimRng) {
    let working = working.clone();
    if plan.crowd {
        user.env.spawn(Box::pin(user.clone().look_around(files.to_vec(), working.clone(), rng.fork())));
    }
    let work = user.clone().work(files.to_vec(), plan.habits(user.number), rng);
    user.env.spawn(Box::pin(async move {
        work.await;
        working.fetch_sub(1, Ordering::Relaxed);
    }));
}

fn spawn_faults(
    cell: &Cell,
    users: &[User],
    files: &[String],
    plan: &Plan,
    working: &AtWork,
    rng: &mut SimRng,
) {
    match plan.faults {
        FaultClass::PowerFailures => {
            faults::spawn_power_cuts(cell, working.clone(), rng.fork());
        }
        FaultClass::Partitions => faults::spawn_cuts(cell, users.to_vec(), working.clone(), rng.fork()),
        FaultClass::None | FaultClass::LossyNetwork if plan.restarts => {
            faults::spawn_restarts(cell, working.clone(), rng.fork());
        }
        FaultClass::None | FaultClass::LossyNetwork => {}
    }
    if plan.has(Move::Suspend) {
        faults::spawn_sleeps(cell, users.to_vec(), files.to_vec(), working.clone(), rng.fork());
    }
}

/// A client machine that the server does not know begins to work during the adversary's moves.
fn newcomer(
    cell: &Cell,
    history: &History,
    files: &[String],
    plan: &Plan,
    working: &AtWork,
    rng: &mut SimRng,
) -> Result<User, String> {
    cell.sim.run_for(Duration::from_secs(20));
    let begin = cell.sim.now();
    let user = cell.user(4, history)?;
    let took = cell.sim.now() - begin;
    if took > plan.time_max().0 {
        return Err(format!("a new client took {took:?} to begin"));
    }
    working.fetch_add(1, Ordering::Relaxed);
    set_to_work(&user, files, plan, working, rng.fork());
    Ok(user)
}

/// After the adversary has ended, all users read everything, and so does a client without a cache.
fn finish(
    cell: &Cell,
    history: &History,
    users: &[User],
    files: &[String],
    plan: &Plan,
) -> Result<(), String> {
    for user in users {
        cell.sim.mend(user.node, cell.server);
        cell.sim.mend(cell.server, user.node);
        cell.sim.resume(user.node);
    }
    history.look_away(false);
    let newcomer = nothing_cached(cell, history, plan)?;
    if plan.restarts {
        // The last restart is after the work has ended; a call at that moment fails.
        cell.sim.run_for(faults::RESTARTS_MAX);
        cell.sim.run_until(RUN, || cell.sim.is_up(cell.server)).map_err(|hang| hang.to_string())?;
    }
    if files.len() > 100 {
        change_everything(cell, &users[0], files)?;
    }
    for user in users.iter().cloned().chain([newcomer]) {
        let (number, node) = (user.number, user.node);
        let looked = cell.sim.block_on(node, RUN, look_at_everything(user, files.to_vec()));
        looked
            .map_err(|hang| hang.to_string())?
            .map_err(|error| format!("user {number} in the end: {error}"))?;
    }
    cell.sim.run_for(Duration::from_secs(1));
    Ok(())
}

/// A client without a cache.
///
/// A restarted server has forgotten the calls it has received, and does not reply to pings about them
/// (docs/protocol/rx.md "4. Call life cycle"): a client that starts at such a moment gets an error after the dead time,
/// and starts again.
fn nothing_cached(cell: &Cell, history: &History, plan: &Plan) -> Result<User, String> {
    let tries = if plan.forgets() { 20 } else { 1 };
    let mut begun = Err(String::new());
    for number in NEWCOMERS..NEWCOMERS + tries {
        begun = cell.user(number, history);
        if begun.is_ok() {
            break;
        }
    }
    begun
}

/// Every file gets new contents, so that a client whose promise was lost is found.
fn change_everything(cell: &Cell, user: &User, files: &[String]) -> Result<(), String> {
    let (user, node, files) = (user.clone(), user.node, files.to_vec());
    let changed = cell.sim.block_on(node, RUN, async move {
        for file in &files {
            user.store(file).await?;
        }
        Ok::<(), VenusError>(())
    });
    changed.map_err(|hang| hang.to_string())?.map_err(|error| format!("the last stores: {error}"))
}

async fn look_at_everything(user: User, files: Vec<String>) -> Result<(), VenusError> {
    user.hear_of_server(files.first().map_or("", String::as_str)).await?;
    for file in &files {
        user.read(file).await?;
    }
    user.list().await
}

/// Checks that the server made no change for a user that the user's machine did not request.
fn only_what_was_asked_for(cell: &Cell, users: &[User]) -> Result<(), String> {
    for user in users {
        let counters = user.venus.counters();
        for (call, done) in cell.machine.ledger.changes_of(&name_of(user.number)) {
            let by_itself = counters.calls.get(call).copied().unwrap_or(0);
            let asked = by_itself + counters.changes_listed.get(call).copied().unwrap_or(0);
            if done > asked {
                let number = user.number;
                return Err(format!(
                    "user {number} asked {asked} times for {call}, which was done {done} times"
                ));
            }
        }
    }
    Ok(())
}

/// The same for a server that may carry out a call twice, since it was restarted before it could reply: no name was
/// created or removed while no request for it was in progress.
fn only_while_it_was_asked_for(cell: &Cell, history: &History) -> Result<(), String> {
    let start = cell.sim.wall_start();
    for entry in cell.machine.ledger.entries() {
        let since = Duration::new(entry.at.secs, entry.at.nanos).saturating_sub(start);
        let at = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        if !history.names(|names| names.may_happen(&entry.name, entry.made, at)) {
            return Err(format!("nobody asked for it: {entry:?}"));
        }
    }
    Ok(())
}

fn in_time(history: &History, plan: &Plan) -> Result<(), String> {
    let (total, longest) = history.slowest();
    let (longest_max, total_max) = plan.time_max();
    if plan.is_calm() && (longest > longest_max || total > total_max) {
        return Err(format!("the slowest user worked for {total:?}, the longest operation took {longest:?}"));
    }
    Ok(())
}

/// Checks that the one move of a run has reached its target, since otherwise the run shows nothing, and that the budget was kept. Of
/// several moves one may find nothing to do in one run.
fn reached(cell: &Cell, history: &History, account: &Account, plan: &Plan) -> Result<(), String> {
    let has = |one: Move| match one {
        Move::LogRecords | Move::Crowd | Move::CrowdCutOff => {
            history.stores().0 > 0 && history.count() > plan.files
        }
        Move::Suspend => cell.sim.notes_tail(usize::MAX).contains("falls asleep"),
        one => account.reached(one) > 0,
    };
    if let [one] = plan.moves[..]
        && !has(one)
    {
        return Err(format!("nothing of {one:?} has reached its target"));
    }
    if !account.is_kept() {
        return Err(format!("the adversary has spent more than it has: {:?}", account.spent()));
    }
    Ok(())
}

/// Number of the first client that starts when the others have done their work.
const NEWCOMERS: usize = 9;
const STEPS: u32 = 24;
/// How long a patient server waits for the reply to a break; 4 s is the default.
const BREAK_REPLY: Duration = Duration::from_secs(30);
/// Limit of virtual time for a whole run.
const RUN: Duration = Duration::from_secs(400_000);
/// Limit of one operation while the server is up, during any attack.
const OPERATION_MAX: Duration = Duration::from_secs(15);
/// Limit of all operations of a user together.
const WORK_MAX: Duration = Duration::from_secs(40);
