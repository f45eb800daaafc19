//! Dependencies among the files of a crate: every `use` and every path, followed to the file that defines the item.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A module as its path in the crate; empty for the crate itself.
pub type Module = Vec<String>;

/// Longest chain of `pub use` that is followed.
const FOLLOWED_MAX: usize = 10;

/// The files of a crate, without comments and unit tests.
pub struct Sources(BTreeMap<Module, File>);

#[derive(Default)]
struct File {
    /// Paths that the file uses.
    uses: Vec<Module>,
    /// Paths that it re-exports, by name.
    hands_on: BTreeMap<String, Module>,
}

impl Sources {
    pub fn new<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Sources(files.into_iter().map(|(module, text)| (path(module), File::of(text))).collect())
    }

    /// Reads all files below a directory, except those of tests and test kits.
    pub fn read(root: &Path) -> Self {
        let mut files = BTreeMap::new();
        read(root, &mut Vec::new(), &mut files);
        Sources(files)
    }

    /// For each file, the files that it uses.
    pub fn uses(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let of = |(module, file): (&Module, &File)| {
            let used = file.uses.iter().filter_map(|path| self.defined(module, path, 0));
            (module.clone(), used.filter(|used| used != module).collect())
        };
        self.0.iter().map(of).collect()
    }

    /// The circles: sets of files that each use all others of the set, directly or by way of others.
    pub fn circles(&self) -> BTreeSet<BTreeSet<Module>> {
        let uses = self.uses();
        let reached: BTreeMap<&Module, BTreeSet<&Module>> =
            uses.keys().map(|file| (file, reached(&uses, file))).collect();
        let circle = |file: &Module| {
            let back = reached[file].iter().filter(|other| reached[**other].contains(file));
            back.map(|other| (*other).clone()).collect()
        };
        uses.keys().filter(|file| reached[file].contains(file)).map(circle).collect()
    }

    /// The file that defines the item of a path in a module; `None` if that is in another crate.
    fn defined(&self, from: &Module, path: &[String], followed: usize) -> Option<Module> {
        let child = |at: &Module, name: &String| [at.as_slice(), std::slice::from_ref(name)].concat();
        let (mut at, mut rest) = match path.first()?.as_str() {
            "crate" => (Vec::new(), &path[1..]),
            "self" => (from.clone(), &path[1..]),
            "super" => (from[..from.len().checked_sub(1)?].to_vec(), &path[1..]),
            _ if self.0.contains_key(&child(from, &path[0])) => (from.clone(), path),
            _ => return None,
        };
        while let Some((name, after)) = rest.split_first() {
            let below = child(&at, name);
            if name == "super" {
                at.pop()?;
            } else if self.0.contains_key(&below) {
                at = below;
            } else {
                let handed_on = self.0.get(&at)?.hands_on.get(name).filter(|_| followed < FOLLOWED_MAX);
                let Some(path) = handed_on else { return Some(at) };
                return self.defined(&at, &[path, after].concat(), followed + 1);
            }
            rest = after;
        }
        Some(at)
    }
}

/// The files that a file uses, directly or by way of others.
fn reached<'a>(uses: &'a BTreeMap<Module, BTreeSet<Module>>, from: &Module) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&Module> = uses.get(from).into_iter().flatten().collect();
    while let Some(module) = next.pop() {
        if reached.insert(module) {
            next.extend(uses.get(module).into_iter().flatten());
        }
    }
    reached
}

impl File {
    fn of(text: &str) -> File {
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let mut lines = text.lines().map(|line| line.split("//").next().unwrap_or_default().trim());
        let mut file = File::default();
        while let Some(line) = lines.next() {
            let Some((is_handed_on, first)) = after_use(line) else {
                file.uses.extend(paths(line));
                continue;
            };
            let tree = statement(first, &mut lines);
            for (name, path) in names(&tree, &[]) {
                match is_handed_on {
                    true => drop(file.hands_on.insert(name, path)),
                    false => file.uses.push(path),
                }
            }
        }
        file
    }
}

/// The rest of a line after `use`, and whether it is a re-export.
fn after_use(line: &str) -> Option<(bool, &str)> {
    let own = line.strip_prefix("use ").map(|rest| (false, rest));
    own.or_else(|| line.strip_prefix("pub").and_then(|_| Some((true, line.split_once(" use ")?.1))))
}

/// The lines of a statement up to its end.
fn statement<'a>(first: &str, mut more: impl Iterator<Item = &'a str>) -> String {
    let mut text = first.to_owned();
    while !text.contains(';') {
        let Some(line) = more.next() else { break };
        text.push_str(line);
    }
    text.split(';').next().unwrap_or_default().to_owned()
}

/// The names that a tree of a `use` imports, each with its path.
fn names(tree: &str, before: &[String]) -> Vec<(String, Module)> {
    let Some((head, body)) = tree.split_once('{') else {
        let (item, name) = tree.split_once(" as ").unwrap_or((tree, ""));
        let mut path = [before, &path(item)].concat();
        path.pop_if(|last| *last == "self" && !before.is_empty());
        let name = if name.is_empty() { path.last().cloned() } else { Some(name.trim().to_owned()) };
        return name.into_iter().map(|name| (name, path.clone())).collect();
    };
    let before = [before, &path(head)].concat();
    let body = body.rsplit_once('}').map_or(body, |(body, _)| body);
    branches(body).into_iter().flat_map(|branch| names(branch, &before)).collect()
}

/// The parts between commas that are in no inner braces.
fn branches(body: &str) -> Vec<&str> {
    let mut depth = 0;
    let at_top = |c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    };
    body.split(at_top).filter(|branch| !branch.trim().is_empty()).collect()
}

/// Paths into the crate in a line of code.
fn paths(line: &str) -> Vec<Module> {
    let starts = ["crate::", "super::"].into_iter().flat_map(|root| line.match_indices(root));
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let first = |at: &usize| !line[..*at].ends_with(is_name);
    let starts = starts.map(|(at, _)| at).filter(first);
    starts.map(|at| path(line[at..].split(|c| !is_name(c)).next().unwrap_or_default())).collect()
}

fn read(dir: &Path, module: &mut Module, files: &mut BTreeMap<Module, File>) {
    for path in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if stem.ends_with("tests") || stem == "test_kit" {
            continue;
        }
        if path.is_dir() {
            module.push(stem);
            read(&path, module, files);
            module.pop();
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let below = (!matches!(stem.as_str(), "mod" | "lib" | "main")).then_some(stem);
            files.insert(module.iter().cloned().chain(below).collect(), File::of(&text));
        }
    }
}

fn path(text: &str) -> Module {
    text.split("::").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
