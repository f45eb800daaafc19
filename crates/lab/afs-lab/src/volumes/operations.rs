//! The operations of section 6, measured one after the other, each as a row.

use super::cell::{OwnCell, Server};
use super::filling::{FILE_BYTES, create, fill};
use super::writer::beside;
use crate::error::LabError;
use crate::load::put;
use crate::sheet::{Cell, Sheet};
use crate::spread::Spread;
use afs_wire::ids::{Fid, VolumeId};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Megabytes of the volumes, in files of one megabyte.
const SIZES: [u32; 3] = [1, 16, 256];
const QUICK_SIZES: [u32; 2] = [1, 8];
/// Repetitions of what is short.
const RUNS: u32 = 5;
const QUICK_RUNS: u32 = 2;
/// Dates of volumes have seconds, and the tools allow two for clocks that differ.
const MARGIN: Duration = Duration::from_secs(3);
/// A quota in KiB that the smallest volume exceeds.
const QUOTA: &str = "500";

/// Measures all operations.
///
/// # Errors
/// A command or a call fails, or `stop` became true.
pub fn measure(cell: &OwnCell, quick: bool, stop: &AtomicBool) -> Result<Sheet, LabError> {
    let (sizes, runs) = if quick { (&QUICK_SIZES[..], QUICK_RUNS) } else { (&SIZES[..], RUNS) };
    let mut table = Table { cell, runs, stop, sheet: sheet() };
    let mut volumes = Vec::new();
    for size in sizes {
        volumes.push(Volume::make(cell, *size)?);
    }
    for volume in &volumes {
        table.clones(volume)?;
    }
    for volume in &volumes {
        table.releases(volume)?;
    }
    for volume in &volumes {
        table.dumps(volume)?;
    }
    for volume in &volumes {
        table.moves(volume)?;
    }
    if let Some(smallest) = volumes.first() {
        table.quota(smallest)?;
    }
    Ok(table.sheet)
}

fn sheet() -> Sheet {
    let mut sheet = Sheet::new(&[("operation", ""), ("volume", "MB")]);
    sheet.add_spread("elapsed", "s");
    for (name, unit) in [("travelled", "MB"), ("written", "MB"), ("result", "")] {
        sheet.add(name, unit);
    }
    sheet
}

/// A volume with files of [`FILE_BYTES`].
struct Volume {
    name: String,
    id: VolumeId,
    megabytes: u32,
    files: Vec<Fid>,
    /// An empty file, for a writer.
    own: Fid,
}

impl Volume {
    fn make(cell: &OwnCell, megabytes: u32) -> Result<Self, LabError> {
        let name = format!("of{megabytes}");
        let id = cell.new_volume(&name)?;
        let target = cell.target(Server::First, id)?;
        let files = cell.block_on(fill(&target, megabytes)).map_err(LabError::Calls)?;
        let own = cell.block_on(create(&target, "writer")).map_err(LabError::Calls)?;
        Ok(Self { name, id, megabytes, files, own })
    }
}

/// Time of an operation, bytes that both servers wrote, and those of volumes that travelled.
struct Taken {
    elapsed: Duration,
    written: u64,
    travelled: u64,
}

struct Table<'a> {
    cell: &'a OwnCell,
    runs: u32,
    stop: &'a AtomicBool,
    sheet: Sheet,
}

impl Table<'_> {
    /// Times an operation.
    fn timed<T>(&self, work: impl FnOnce() -> Result<T, LabError>) -> Result<(T, Taken), LabError> {
        if self.stop.load(Ordering::Acquire) {
            return Err(LabError::Stopped);
        }
        let before = self.cell.settled()?;
        let begun = Instant::now();
        let done = work()?;
        let elapsed = begun.elapsed();
        let after = self.cell.settled()?;
        let (written, travelled) = (after.written - before.written, after.travelled - before.travelled);
        Ok((done, Taken { elapsed, written, travelled }))
    }

    /// A command, as often as short ones are repeated.
    fn repeated(&self, words: &[&str]) -> Result<Vec<Taken>, LabError> {
        (0..self.runs).map(|_| self.timed(|| self.cell.vos(words)).map(|timed| timed.1)).collect()
    }

    fn add(&mut self, operation: &str, volume: &Volume, taken: &[Taken], result: String) {
        let elapsed = Spread::of(taken.iter().map(|one| one.elapsed));
        let megabytes = |of: fn(&Taken) -> u64| {
            let spread = Spread::of_values(taken.iter().map(|one| of(one) as f64 / 1e6));
            spread.map_or(Cell::NotAtHand, |spread| Cell::rounded(spread.median, 1e4))
        };
        let mut row = vec![operation.into(), f64::from(volume.megabytes).into()];
        row.extend(Cell::of_spread(elapsed, 1e4));
        row.extend([megabytes(|one| one.travelled), megabytes(|one| one.written), Cell::Text(result)]);
        self.sheet.rows.push(row);
    }

    /// Stores one of the files anew, at the first server.
    fn change_one(&self, volume: &Volume) -> Result<(), LabError> {
        let Some(fid) = volume.files.first() else { return Ok(()) };
        let target = self.cell.target(Server::First, volume.id)?;
        self.cell.block_on(put(&target, *fid, FILE_BYTES)).map_err(LabError::Calls).map(drop)
    }

    fn clones(&mut self, volume: &Volume) -> Result<(), LabError> {
        let taken = self.repeated(&["backup", &volume.name])?;
        self.add("clone (vos backup)", volume, &taken, String::new());
        Ok(())
    }

    fn releases(&mut self, volume: &Volume) -> Result<(), LabError> {
        let name = &*volume.name;
        // What changed shortly before the last change that a site has is sent to it again.
        std::thread::sleep(MARGIN);
        self.change_one(volume)?;
        self.cell.vos(&["addsite", &Server::Second.address(), "a", name])?;
        let (_, first) = self.timed(|| self.cell.vos(&["release", name]))?;
        self.add("release, to a new site", volume, &[first], String::new());
        self.change_one(volume)?;
        let (_, changed) = self.timed(|| self.cell.vos(&["release", name]))?;
        self.add("release, 1 MB changed", volume, &[changed], String::new());
        // By dates of seconds a release cannot tell a change in its own second from none since, and the next one sends it again.
        std::thread::sleep(MARGIN);
        self.cell.vos(&["release", name])?;
        let unchanged = self.repeated(&["release", name])?;
        self.add("release, nothing changed", volume, &unchanged, String::new());
        self.cell.vos(&["remove", &Server::Second.address(), "a", &format!("{name}.readonly")]).map(drop)
    }

    fn dumps(&mut self, volume: &Volume) -> Result<(), LabError> {
        let [whole, changes] =
            ["whole", "changes"].map(|part| self.cell.file(&format!("{}.{part}", volume.name)));
        let bytes = |said: &Value| format!("{} bytes", said["dump_bytes"]);
        let backup = format!("{}.backup", volume.name);
        let (said, taken) = self.timed(|| self.cell.vos(&["dump", &backup, "--file", &whole]))?;
        self.add("dump of the backup volume", volume, &[taken], bytes(&said));
        // Dates of dumps have seconds: the change is in a later one than all before it.
        let since = next_second()?;
        self.change_one(volume)?;
        let words = ["dump", &volume.name, "--clone", "--time", &since.to_string(), "--file", &changes];
        let (said, taken) = self.timed(|| self.cell.vos(&words))?;
        self.add("dump of what 1 MB of changes made", volume, &[taken], bytes(&said));
        let restored = format!("{}.again", volume.name);
        let words = ["restore", &Server::Second.address(), "a", &restored, "--file", &whole];
        let (_, taken) = self.timed(|| self.cell.vos(&words))?;
        self.add("restore at the other server", volume, &[taken], String::new());
        self.cell.vos(&["remove", "--id", &restored])?;
        [whole, changes].iter().for_each(|file| _ = std::fs::remove_file(file));
        Ok(())
    }

    fn moves(&mut self, volume: &Volume) -> Result<(), LabError> {
        let words = ["move", &volume.name, &Server::Second.address(), "a"];
        let ((said, written), taken) =
            self.timed(|| beside(self.cell, volume.id, volume.own, || self.cell.vos(&words)))?;
        let passes = said["increments"].as_u64().unwrap_or_default() + 1;
        let result = format!(
            "{passes} passes; the volume was held for {} ms; a writer made {} stores of 16 KiB meanwhile, the longest took {} ms",
            said["busy_ms"],
            written.stores,
            written.longest.as_millis()
        );
        self.add("move, while a writer works", volume, &[taken], result);
        Ok(())
    }

    /// At the second server, to which the volume was moved.
    fn quota(&mut self, volume: &Volume) -> Result<(), LabError> {
        let taken = self.repeated(&["setfields", &volume.name, "--maxquota", QUOTA])?;
        let Some(fid) = volume.files.first() else { return Ok(()) };
        let target = self.cell.target(Server::Second, volume.id)?;
        let over = self.cell.block_on(put(&target, *fid, 2 * FILE_BYTES));
        self.cell.vos(&["setfields", &volume.name, "--maxquota", "0"])?;
        let without = self.cell.block_on(put(&target, *fid, 2 * FILE_BYTES));
        let told = |stored: bool| if stored { "taken" } else { "refused" };
        let result = format!(
            "a store of 2 MB beyond it is {}, without a quota {}",
            told(over.is_ok()),
            told(without.is_ok())
        );
        self.add("change of the quota", volume, &taken, result);
        Ok(())
    }
}

/// Waits for the next second of the clock, and returns it.
fn next_second() -> Result<u64, LabError> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_err(|_| LabError::Lost)?;
    std::thread::sleep(Duration::from_secs(1) - Duration::from_nanos(now.subsec_nanos().into()));
    Ok(now.as_secs() + 1)
}
