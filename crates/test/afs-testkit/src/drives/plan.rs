//! The drives of a volume's data and its organisation, as a seed chooses them or the run of a test program names them.

use afs_drive::DriveId;
use afs_volume::DataRoute;

/// The bucket of a file server, where it has one.
pub const BUCKET: DriveId = DriveId(9);
/// Files of segments on another disk of the file server.
pub(super) const FILES: DriveId = DriveId(8);
/// Segments in memory, which a power failure leaves.
pub(super) const MEMORY: DriveId = DriveId(7);
/// The program of a drive on the file server's machine.
pub(super) const HERE: DriveId = DriveId(4);

/// Names, to a test program, the drives on which the data of its cells are: `KIND`, or `KIND/ORGANISATION`.
const RUN: &str = "ANDREW_DRIVES";

/// The kinds by their names, their numbers being their places: the drives, how many have each chunk, and over how many a file goes round.
const KINDS: [(&str, &[DriveId], u32, u32); 8] = [
    ("remote", &[DriveId(1)], 1, 1),
    ("bucket", &[BUCKET], 1, 1),
    ("host", &[HERE], 1, 1),
    ("files", &[FILES], 1, 1),
    ("memory", &[MEMORY], 1, 1),
    ("copies", &[DriveId(1), DriveId(2)], 2, 1),
    ("round", &[DriveId(1), BUCKET], 1, 2),
    ("own", &[DriveId::OWN], 1, 1),
];

/// Where the data of a volume go by seed: the store's own drive, those of other hosts, a bucket.
const PLACES: [&[DriveId]; 8] = [
    &[DriveId::OWN],
    &[DriveId(1)],
    &[BUCKET],
    &[DriveId(1), DriveId(2)],
    &[DriveId::OWN, DriveId(1)],
    &[DriveId(1), BUCKET],
    &[DriveId(1), DriveId(2), DriveId(3)],
    &[DriveId::OWN, DriveId(1), BUCKET],
];

/// The drives of a volume's data, and its organisation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DrivePlan {
    /// Those that take new data, as the partition numbers them: 1 to 3 are on other hosts.
    pub drives: &'static [DriveId],
    /// On how many of them data are before a store is acknowledged, from 1.
    pub copies: u32,
    /// Over how many of them the mebibytes of a file go round, from 1.
    pub width: u32,
    /// The organisation.
    pub route: DataRoute,
}

impl DrivePlan {
    /// Seeds in a row go through all kinds of drives and all organisations, and 32 through all pairs of them.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        let drives = PLACES[(seed % 8) as usize];
        let one_of = |number: u64| 1 + (number % drives.len() as u64) as u32;
        let route = DataRoute::ALL[((seed + seed / 8) % 4) as usize];
        Self { drives, copies: one_of(seed / 2 + seed / 32), width: one_of(seed / 3 + seed / 16), route }
    }

    /// What the present run of the test program names; none: the file server's own drive, by calls.
    ///
    /// # Panics
    /// If there is no such plan.
    #[must_use]
    pub fn of_run() -> Option<Self> {
        let name = std::env::var(RUN).ok()?;
        Some(Self::named(&name).unwrap_or_else(|| panic!("{RUN}={name}: {}", Self::names())))
    }

    /// The plan `KIND`, with the organisation of new volumes, or `KIND/ORGANISATION`. A kind may be told by its number.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let (kind, route) = name.split_once('/').unwrap_or((name, DataRoute::default().name()));
        let mut kinds = KINDS.iter().enumerate();
        let (_, kind) = kinds.find(|(number, known)| known.0 == kind || number.to_string() == kind)?;
        let route = DataRoute::ALL.into_iter().find(|known| known.name() == route)?;
        let (_, drives, copies, width) = *kind;
        Some(Self { drives, copies, width, route })
    }

    fn names() -> String {
        let (kinds, routes) = (KINDS.map(|kind| kind.0), DataRoute::ALL.map(DataRoute::name));
        format!("one of {}, and after a slash one of {}", kinds.join(", "), routes.join(", "))
    }
}

/// Runs the tests of a module (`module_path!()`) of this program again over each of these plans, without those with one of these words in
/// their names. The run over a plan makes no others, so that the test that calls this may be among them.
///
/// # Panics
/// If a test fails there, or none is run, with what the run wrote.
pub fn run_again_over(plans: &[&str], module: &str, without: &[&str]) {
    if std::env::var_os(RUN).is_some() {
        return;
    }
    let program = std::env::current_exe().expect("a test program has a path");
    for plan in plans {
        let mut again = std::process::Command::new(&program);
        again.arg(within(module));
        without.iter().for_each(|word| _ = again.args(["--skip", word]));
        let again = again.env(RUN, plan).output().expect("it was started before");
        let told = String::from_utf8_lossy(&again.stdout);
        assert!(again.status.success() && !told.contains("running 0 tests"), "{RUN}={plan}: {told}");
    }
}

/// The beginning of the names of a module's tests: its path without the program's name.
fn within(module: &str) -> String {
    format!("{}::", module.split_once("::").map_or(module, |(_, inner)| inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_named_by_its_kind_or_number_and_its_organisation() {
        let remote = DrivePlan { drives: &[DriveId(1)], copies: 1, width: 1, route: DataRoute::Drives };
        assert_eq!(DrivePlan::named("remote/nasd"), Some(remote.clone()));
        assert_eq!(DrivePlan::named("0/nasd"), Some(remote));
        assert_eq!(
            DrivePlan::named("copies").map(|plan| (plan.copies, plan.route)),
            Some((2, DataRoute::Server))
        );
        for wrong in ["", "disk", "remote/", "remote/raid", "8", "/nasd", "remote/nasd/nasd"] {
            assert_eq!(DrivePlan::named(wrong), None, "{wrong}");
        }
    }
}
