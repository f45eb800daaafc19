//! Simulated user who makes files as git makes objects (under another name, with a second one, without the first) in subdirectories, and removes
//! subdirectories with all that is in them. Each object has a name of its own, so that nothing replaces one that is lost.

use std::sync::Arc;
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_sim::SimRng;
use afs_venus::{Entry, ErrorKind, NodeId, OpenFlags, VenusError};
use parking_lot::Mutex;

use super::saver::{BETWEEN_SAVES, Habit};
use super::user::User;
use crate::model::register::Content;

type Outcome<T> = Result<T, VenusError>;

/// Subdirectories that are there and in which no user works.
#[derive(Clone, Default)]
pub struct Trees(Arc<Mutex<Vec<String>>>);

impl Trees {
    /// Takes one of a directory, if there is one.
    fn take(&self, dir: &str, rng: &mut SimRng) -> Option<String> {
        let mut all = self.0.lock();
        let of_dir = |tree: &String| tree.rsplit_once('/').is_some_and(|(of, _)| of == dir);
        let places: Vec<usize> =
            all.iter().enumerate().filter(|(_, tree)| of_dir(tree)).map(|at| at.0).collect();
        rng.pick(&places).map(|place| all.swap_remove(*place))
    }

    fn give_back(&self, tree: String) {
        self.0.lock().push(tree);
    }
}

impl User {
    /// Makes objects in a subdirectory: a new one, or one that is there. After an error nobody uses it again.
    pub(super) async fn make_objects(&self, dir: &str, habit: &Habit, rng: &mut SimRng) -> Outcome<()> {
        let known = if rng.chance(500_000) { habit.trees.take(dir, rng) } else { None };
        let (entry, tree) = match known {
            Some(tree) => (self.venus.walk(tree.as_bytes(), true).await?, tree),
            None => self.make_tree(dir).await?,
        };
        let made = self.objects_in(entry.node, &tree, habit, rng).await;
        self.venus.forget(entry.node, 1);
        made?;
        habit.trees.give_back(tree);
        Ok(())
    }

    async fn make_tree(&self, dir: &str) -> Outcome<(Entry, String)> {
        let (above, name) =
            (self.venus.walk(dir.as_bytes(), true).await?, format!("t{}", self.history.new_content()));
        let made = self.venus.mkdir(above.node, name.as_bytes(), 0o755).await;
        self.venus.forget(above.node, 1);
        Ok((made?, format!("{dir}/{name}")))
    }

    async fn objects_in(&self, at: NodeId, tree: &str, habit: &Habit, rng: &mut SimRng) -> Outcome<()> {
        let mut made = Vec::new();
        for _ in 0..rng.between(1, OBJECTS_MAX) {
            self.env.sleep(rng.duration(Duration::ZERO, BETWEEN_SAVES)).await;
            if habit.stops() {
                return Ok(());
            }
            let content = self.history.new_content();
            self.make_object(at, tree, content).await?;
            made.push(content);
        }
        if rng.chance(200_000) {
            self.venus.fsync_directory(at).await?;
            self.history.synced(self.number, &made);
        }
        Ok(())
    }

    async fn make_object(&self, at: NodeId, tree: &str, content: Content) -> Outcome<()> {
        let (tmp, name) = (format!("tmp{content}"), format!("o{content}"));
        self.write_new(at, &tmp, content).await?;
        let file = self.venus.lookup(at, tmp.as_bytes()).await?;
        let path = format!("{tree}/{name}");
        self.history.making(self.number, &path, content);
        let linked = self.venus.link(file.node, at, name.as_bytes()).await;
        self.venus.forget(file.node, 1);
        self.venus.forget(linked?.node, 1);
        self.history.stored(&path, content);
        self.venus.unlink(at, tmp.as_bytes()).await
    }

    /// Removes a subdirectory of a directory with all that is in it, if there is one.
    pub(super) async fn remove_tree(&self, dir: &str, habit: &Habit, rng: &mut SimRng) -> Outcome<()> {
        let Some(tree) = habit.trees.take(dir, rng) else { return Ok(()) };
        let entry = self.venus.walk(tree.as_bytes(), true).await?;
        let emptied = self.remove_all_in(entry.node, &tree).await;
        self.venus.forget(entry.node, 1);
        emptied?;
        let above = self.venus.walk(dir.as_bytes(), true).await?;
        let name = tree.strip_prefix(dir).unwrap_or_default().trim_start_matches('/');
        let removed = self.venus.rmdir(above.node, name.as_bytes()).await;
        self.venus.forget(above.node, 1);
        removed
    }

    async fn remove_all_in(&self, at: NodeId, tree: &str) -> Outcome<()> {
        for listed in self.venus.readdir(at, 0, usize::MAX).await? {
            if matches!(&listed.name[..], b"." | b"..") {
                continue;
            }
            let path = format!("{tree}/{}", String::from_utf8_lossy(&listed.name));
            let removal = self.history.removing(self.number, &path);
            self.venus.unlink(at, &listed.name).await?;
            if let Some(content) = removal {
                self.history.stored(&path, content);
            }
        }
        Ok(())
    }

    /// Reads some of these objects, which may be there or not.
    ///
    /// # Errors
    /// Those of the cell.
    pub async fn read_objects(&self, objects: &[String], most: usize, rng: &mut SimRng) -> Outcome<()> {
        for _ in 0..most.min(objects.len()) {
            self.read_object(&objects[rng.index(objects.len())]).await?;
        }
        Ok(())
    }

    /// Reads an object, which may be there or not. Returns its contents if it is there.
    ///
    /// # Errors
    /// Those of the cell.
    pub async fn read_object(&self, path: &str) -> Outcome<Option<Content>> {
        let begin = self.history.now();
        let entry = match self.venus.walk(path.as_bytes(), true).await {
            Err(error) if error.kind == ErrorKind::NotFound => {
                self.history.absent(self.number, path, begin);
                return Ok(None);
            }
            Err(error) if error.kind == ErrorKind::Stale => return Ok(None),
            found => found?,
        };
        let read = self.read_found(entry.node).await;
        self.venus.forget(entry.node, 1);
        match read {
            // Removed since it was looked up.
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Stale) => Ok(None),
            Err(error) => Err(error),
            Ok(data) => {
                let found = self.history.identify(&data);
                self.history.read(self.number, path, found.clone(), begin);
                Ok(found.ok())
            }
        }
    }

    async fn read_found(&self, node: NodeId) -> Outcome<Vec<u8>> {
        let handle = self.venus.open(node, OpenFlags::READ).await?.handle;
        let data = self.read_whole(handle).await;
        self.venus.release(handle).await.and(data)
    }
}

/// Most objects that are made in a row, and one.
const OBJECTS_MAX: u64 = 13;
