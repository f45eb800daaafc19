//! The cases of the table: each kind of file is damaged in a copy of the original, and what is started on it does as the table says.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use andrew_tests::live::process::seconds;
use andrew_tests::live::wait::until;

use crate::damaged_files::damage::Damage;
use crate::damaged_files::original::{Moment, Original, contents, may_read, unsaved};
use crate::damaged_files::site::{Site, uid};
use crate::damaged_files::table::{Outcome, Row, matches};

/// Cases that share one start, or one copy.
#[derive(Debug)]
pub enum Group {
    /// A file whose damages are refused one after the other, and put right again.
    Refused(Kind, Vec<Damage>),
    /// Damages of which each is harmless, of files that have nothing to do with one another.
    Harmless(Vec<(Kind, Damage)>),
    /// One damage.
    Single(Kind, Damage, Outcome),
}

/// A file of the original, as the table writes its path.
#[derive(Clone, Debug)]
pub struct Kind {
    path: String,
    moment: Moment,
}

/// The files of the original by the row that has them; files without one.
pub fn kinds(original: &Original, rows: &[Row]) -> (BTreeMap<(usize, String), Kind>, Vec<String>) {
    let (mut found, mut lost) = (BTreeMap::new(), Vec::new());
    for moment in [Moment::Stopped, Moment::Crashed] {
        let mut paths = files(&original.at(moment));
        // The largest of several, but for the cache file that is the unsaved data, too.
        paths.sort_by_key(|(_, len)| (*len > 1_000_000, std::cmp::Reverse(*len)));
        for path in paths.into_iter().map(|(path, _)| shown(&path)) {
            let row = rows.iter().enumerate().find_map(|(number, row)| {
                let pattern = row.patterns.iter().find(|pattern| matches(pattern, &path))?;
                Some((number, pattern.clone()))
            });
            match row {
                None => lost.push(path),
                Some((number, pattern)) => {
                    let is_log = path.ends_with("/log.a") || path.ends_with("/log.b");
                    let kind = Kind { path, moment };
                    if is_log == (moment == Moment::Crashed) {
                        found.entry((number, pattern)).or_insert(kind);
                    }
                }
            }
        }
    }
    (found, lost)
}

/// Plain files below a folder, with their lengths.
fn files(folder: &Path) -> Vec<(String, u64)> {
    fn walk(top: &Path, folder: &Path, out: &mut Vec<(String, u64)>) {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (path, meta) = (entry.path(), entry.metadata().unwrap());
            if meta.is_dir() {
                walk(top, &path, out);
            } else if meta.is_file() {
                out.push((path.strip_prefix(top).unwrap().display().to_string(), meta.len()));
            }
        }
    }
    let mut out = Vec::new();
    walk(folder, folder, &mut out);
    out
}

/// Directories by their names in the table; the first that fits.
const PLACES: [(&str, &str); 4] =
    [("state/cache/", "CACHE/"), ("state/vicepa/", "PARTITION/"), ("state/", "STATE/"), ("drive/", "DRIVE/")];

fn shown(path: &str) -> String {
    let place = PLACES.iter().find_map(|(real, shown)| Some((shown, path.strip_prefix(real)?)));
    place.map_or_else(|| path.to_owned(), |(shown, rest)| format!("{shown}{rest}"))
}

impl Kind {
    fn real(&self) -> String {
        let place = PLACES.iter().find_map(|(real, shown)| Some((real, self.path.strip_prefix(shown)?)));
        place.map(|(real, rest)| format!("{real}{rest}")).expect("a place")
    }

    fn at(&self, site: &Site) -> PathBuf {
        site.path().join(self.real())
    }

    /// Damages the file at a site.
    fn harm(&self, original: &Original, site: &Site, damage: Damage) {
        let older = original.at(Moment::Older).join(self.real());
        damage.apply(&self.at(site), older.is_file().then_some(older.as_path()));
    }

    /// Puts the file back.
    fn put_back(&self, original: &Original, site: &Site) {
        let (path, good) = (self.at(site), original.at(self.moment).join(self.real()));
        let removed = if path.is_dir() { fs::remove_dir(&path) } else { fs::remove_file(&path) };
        removed.or_else(|error| if path.exists() { Err(error) } else { Ok(()) }).unwrap();
        fs::copy(good, path).unwrap();
    }

    fn is_unsaved(&self) -> bool {
        self.path.starts_with("CACHE/files/unsaved/")
    }

    /// Whether it is one of the files by which a mount knows what it has: damages of several would hide one another.
    fn is_of_cache(&self) -> bool {
        self.path.starts_with("CACHE/files/")
    }
}

/// The part of the audit log to which nothing is written before a change was made.
const CHANGES: &str = "STATE/audit.log";

/// The groups of all cells of the table.
pub fn groups(rows: &[Row], kinds: &BTreeMap<(usize, String), Kind>) -> Vec<Group> {
    let (mut out, mut harmless) = (Vec::new(), BTreeMap::<_, Vec<_>>::new());
    for ((number, _), kind) in kinds {
        let mut refused = Vec::new();
        for (damage, outcome) in &rows[*number].outcomes {
            match outcome {
                Outcome::Refused => refused.push(*damage),
                Outcome::Anew if !kind.is_of_cache() => {
                    let batch = harmless.entry((kind.moment, *damage)).or_default();
                    batch.push((kind.clone(), *damage));
                }
                other => out.push(Group::Single(kind.clone(), *damage, *other)),
            }
        }
        if !refused.is_empty() {
            out.push(Group::Refused(kind.clone(), refused));
        }
    }
    out.extend(harmless.into_values().map(Group::Harmless));
    out
}

impl Group {
    /// Tries the cases of the group.
    ///
    /// # Panics
    /// If one is not as the table says.
    pub fn try_at(&self, original: &Original, site: &mut Site) {
        match self {
            Self::Refused(kind, damages) => refused(original, site, kind, damages),
            Self::Harmless(cases) => {
                prepare(original, site, cases[0].0.moment, false);
                cases.iter().for_each(|(kind, damage)| kind.harm(original, site, *damage));
                come_up(site, self);
                look(site, cases[0].0.moment, Outcome::Anew, None);
            }
            Self::Single(kind, damage, outcome) => {
                prepare(original, site, kind.moment, kind.is_of_cache());
                kind.harm(original, site, *damage);
                come_up(site, self);
                look(site, kind.moment, *outcome, kind.is_of_cache().then_some(kind));
                if *outcome == Outcome::Lost {
                    if kind.path == CHANGES {
                        fs::write(site.file("a change"), "that is made").unwrap();
                    }
                    named(site, &kind.at(site), self);
                }
            }
        }
        site.kill();
    }
}

/// A copy; without the cache if what the servers have is to be looked at.
fn prepare(original: &Original, site: &Site, moment: Moment, with_cache: bool) {
    original.restore(site, moment);
    if !with_cache {
        fs::remove_dir_all(site.state().join("cache/files")).unwrap();
    }
}

fn come_up(site: &mut Site, group: &Group) {
    site.start().unwrap_or_else(|said| panic!("{group:?} does not start:\n{said}"));
}

/// Each damage is refused by name, and nothing but the file has to be put back.
fn refused(original: &Original, site: &mut Site, kind: &Kind, damages: &[Damage]) {
    prepare(original, site, kind.moment, true);
    for damage in damages {
        kind.harm(original, site, *damage);
        let Err(said) = site.start() else {
            panic!("{} {damage:?} is not refused:\n{}", kind.path, site.said())
        };
        let shown = kind.at(site).display().to_string();
        assert!(
            said.contains(&shown),
            "{} {damage:?}: the refusal does not name {shown}:\n{said}",
            kind.path
        );
        kind.put_back(original, site);
    }
    site.start().unwrap_or_else(|said| panic!("{} is back, and nothing starts:\n{said}", kind.path));
    look(site, kind.moment, Outcome::Anew, Some(kind));
}

/// The log names the file.
fn named(site: &Site, path: &Path, group: &Group) {
    let shown = path.display().to_string();
    until(&format!("{group:?}: {shown} in the log"), seconds(20), || {
        let said = site.said();
        said.contains(&shown).then_some(())
    });
}

/// What users see: their data, or an error where they are lost, and never others.
fn look(site: &Site, moment: Moment, outcome: Outcome, cached: Option<&Kind>) {
    let may_lack = |name: &str| match outcome {
        Outcome::Lost => cached.is_none(),
        // The last changes before a crash.
        Outcome::Unnoticed => moment == Moment::Crashed && ["last", "after"].contains(&name),
        Outcome::Anew | Outcome::Refused => false,
    };
    for (name, wanted) in contents(moment) {
        match fs::read(site.file(name)) {
            Ok(found) if found == wanted => {}
            Ok(found) => assert!(
                may_lack(name) && found.is_empty() && outcome == Outcome::Unnoticed,
                "{name} is another: {}",
                site.said()
            ),
            Err(error) => assert!(may_lack(name), "{name}: {error}: {}", site.said()),
        }
    }
    if let Some(kind) = cached {
        let (path, wanted) = (site.top("tight").join("unsaved"), unsaved());
        let found = || fs::read(&path).unwrap_or_default();
        match kind.is_unsaved() {
            true => {
                let found = found();
                assert!(found.is_empty() || found == wanted, "other unsaved data: {}", site.said());
            }
            // The mount takes it up beside its start.
            false => until("the unsaved data", seconds(20), || (found() == wanted).then_some(())),
        }
    }
    if !may_read(site, uid()) {
        // A mount that has become another client has no tokens.
        site.log_in();
        assert!(may_read(site, uid()), "the user's own file: {}", site.said());
    }
    assert!(!may_read(site, uid() + 1), "another user reads the file");
}
