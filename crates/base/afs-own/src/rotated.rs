//! File that is written at its end and set aside when it is full: `NAME`, then `NAME.1` and so on, of which the oldest is removed.

use crate::Opening;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The file, and those that were set aside. All together take at most `bytes_max * (kept + 1)` bytes, as long as no single write is larger
/// than `bytes_max`. Another process may write to the current file, too: what it wrote counts at the next write of this one.
#[derive(Debug)]
pub struct Rotated {
    path: PathBuf,
    bytes_max: u64,
    kept: u32,
    open: Option<File>,
    opened: fn(&File) -> io::Result<()>,
}

impl Rotated {
    /// A file of at most `bytes_max` bytes, with `kept` older ones, at least 1. No file is made before the first write.
    #[must_use]
    pub fn new(path: PathBuf, bytes_max: u64, kept: u32) -> Self {
        Self { path, bytes_max, kept, open: None, opened: |_| Ok(()) }
    }

    /// The same, which calls `opened` with each file that it has opened, before it writes to it.
    #[must_use]
    pub fn with_opened(mut self, opened: fn(&File) -> io::Result<()>) -> Self {
        self.opened = opened;
        self
    }

    /// Writes at the end of the file; before that, sets it aside if it has no room for all of `bytes`.
    ///
    /// # Errors
    /// The system refuses. How much was written is unknown then; the file is opened again for the next write.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.current(bytes.len() as u64)?;
        file.write_all(bytes)?;
        self.open = Some(file);
        Ok(())
    }

    /// The file, for another process to write to: set aside before that if it is full.
    ///
    /// # Errors
    /// The system refuses.
    pub fn to_give(&mut self) -> io::Result<File> {
        self.current(1)
    }

    /// The file, with room for `more` bytes, or empty; it is no longer held open here.
    fn current(&mut self, more: u64) -> io::Result<File> {
        if let Some(file) = self.open.take()
            && self.has_room(&file, more)?
        {
            return Ok(file);
        }
        let mut file = self.open()?;
        if !self.has_room(&file, more)? {
            self.set_aside()?;
            file = self.open()?;
        }
        (self.opened)(&file)?;
        Ok(file)
    }

    fn has_room(&self, file: &File, more: u64) -> io::Result<bool> {
        let bytes = file.metadata()?.len();
        Ok(bytes == 0 || bytes.saturating_add(more) <= self.bytes_max)
    }

    fn open(&self) -> io::Result<File> {
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", self.path.display()));
        Opening::append().or_make().open(&self.path).map_err(named)
    }

    fn set_aside(&self) -> io::Result<()> {
        for n in (0..self.kept).rev() {
            match fs::rename(numbered(&self.path, n), numbered(&self.path, n + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The name of the file that was set aside `n` times.
fn numbered(path: &Path, n: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    if n > 0 {
        name.push(format!(".{n}"));
    }
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn text(path: &Path) -> String {
        fs::read_to_string(path).unwrap()
    }

    #[test]
    fn writes_are_appended_and_the_oldest_file_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = Rotated::new(path.clone(), 12, 3);
        log.append(b"one\n").unwrap();
        assert_eq!(text(&path), "one\n");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        (10..40).for_each(|n| log.append(format!("no {n}\n").as_bytes()).unwrap());
        let all = [path.clone(), numbered(&path, 1), numbered(&path, 2), numbered(&path, 3)];
        assert_eq!(
            all.map(|path| text(&path)),
            ["no 39\n", "no 37\nno 38\n", "no 35\nno 36\n", "no 33\nno 34\n"]
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 4);
    }

    #[test]
    fn a_file_that_an_earlier_process_filled_is_set_aside_and_a_large_write_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs::write(&path, "of before\n").unwrap();
        Rotated::new(path.clone(), 12, 1).append(b"more\n").unwrap();
        assert_eq!((text(&path), text(&numbered(&path, 1))), ("more\n".into(), "of before\n".into()));
        Rotated::new(path.clone(), 4, 1).append(b"longer than a file\n").unwrap();
        assert_eq!(
            (text(&path), text(&numbered(&path, 1))),
            ("longer than a file\n".into(), "more\n".into())
        );
        let mut given = Rotated::new(path.clone(), 4, 1).to_give().unwrap();
        given.write_all(b"of another process\n").unwrap();
        assert_eq!(text(&path), "of another process\n");
    }

    #[test]
    fn a_file_that_cannot_be_set_aside_takes_no_more_and_does_later() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = Rotated::new(path.clone(), 4, 1);
        log.append(b"one\n").unwrap();
        fs::create_dir(numbered(&path, 1)).unwrap();
        assert!((0..3).all(|_| log.append(b"two\n").is_err()));
        assert_eq!(text(&path), "one\n");
        fs::remove_dir(numbered(&path, 1)).unwrap();
        log.append(b"six\n").unwrap();
        assert_eq!((text(&path), text(&numbered(&path, 1))), ("six\n".into(), "one\n".into()));
    }
}
