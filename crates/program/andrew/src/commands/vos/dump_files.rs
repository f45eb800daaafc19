//! Sink and source of dumps: a file, a pipe, standard output or input.

use super::dump::cannot;
use crate::error::{CommandError, CommandResult};
use afs_admin::{DumpSink, DumpSource};
use afs_own::Opening;
use afs_rpc::BoxFuture;
use bytes::Bytes;
use std::fs::File;
use std::future::ready;
use std::io::{self, IsTerminal, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// A file that gets its name when it is complete, or standard output.
pub(super) enum Sink {
    /// Standard output.
    Output(io::Stdout),
    /// A pipe or a device, which is written directly.
    Special(File, PathBuf),
    /// A file under a temporary name.
    File {
        /// Open for writing.
        file: File,
        /// The temporary name.
        part: PathBuf,
        /// The final name.
        name: PathBuf,
    },
}

impl Sink {
    /// Opens a file, or standard output, which must not be a terminal.
    pub(super) fn open(name: Option<&Path>) -> CommandResult<Self> {
        let Some(name) = name else {
            if io::stdout().is_terminal() {
                return Err(CommandError::usage(
                    "vos: a dump is not for a terminal; give a file with -file, or send it to a program",
                ));
            }
            return Ok(Self::Output(io::stdout()));
        };
        if std::fs::metadata(name).is_ok_and(|there| !there.is_file()) {
            let file = File::options().write(true).open(name).map_err(|e| cannot("write", name, &e))?;
            return Ok(Self::Special(file, name.to_owned()));
        }
        let mut part = name.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let file = Opening::write().or_make().open_emptied(&part).map_err(|e| cannot("write", &part, &e))?;
        Ok(Self::File { file, part, name: name.to_owned() })
    }

    /// Completes the dump: flushes it, and renames the file.
    pub(super) fn finish(self) -> CommandResult {
        match self {
            Self::Output(mut out) => {
                out.flush().map_err(|e| CommandError::failed(format!("vos: cannot write the dump: {e}")))
            }
            Self::Special(mut file, name) => file.flush().map_err(|e| cannot("write", &name, &e)),
            Self::File { file, part, name } => {
                file.sync_all().map_err(|e| cannot("write", &part, &e))?;
                std::fs::rename(&part, &name).map_err(|e| cannot("write", &name, &e))
            }
        }
    }
}

impl DumpSink for Sink {
    fn write(&mut self, piece: Bytes) -> BoxFuture<'_, Result<(), String>> {
        let written = match self {
            Self::Output(out) => out.write_all(&piece).map_err(|e| format!("standard output: {e}")),
            Self::Special(file, name) => {
                file.write_all(&piece).map_err(|e| format!("{}: {e}", name.display()))
            }
            Self::File { file, part, .. } => {
                file.write_all(&piece).map_err(|e| format!("{}: {e}", part.display()))
            }
        };
        Box::pin(ready(written))
    }
}

/// A file, or standard input.
pub(super) struct Source {
    from: Box<dyn Read + Send>,
    name: String,
    size: Option<u64>,
    /// A regular file, which can be read again.
    file: Option<File>,
}

/// Bytes read at a time.
const PIECE: usize = 64 << 10;
/// First bytes of a dump: a tag and a number (docs/protocol/dump.md).
const MAGIC: [u8; 5] = [1, 0xb3, 0xa1, 0x13, 0x22];

impl Source {
    /// Opens a file, or standard input, and checks that it begins as a dump.
    pub(super) fn open(name: Option<&Path>) -> CommandResult<Self> {
        let (mut from, shown, size, file): (Box<dyn Read + Send>, _, _, _) = match name {
            None => (Box::new(io::stdin()), "standard input".to_owned(), None, None),
            Some(name) => {
                let file = File::open(name).map_err(|e| cannot("read", name, &e))?;
                let size = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|m| m.len());
                let again = size.and_then(|_| file.try_clone().ok());
                (Box::new(file), name.display().to_string(), size, again)
            }
        };
        let mut head = [0; MAGIC.len()];
        let read = from.read_exact(&mut head);
        if read.is_err() || head != MAGIC {
            return Err(CommandError::usage(format!("vos: {shown} is not a dump of a volume")));
        }
        Ok(Self { from: Box::new(io::Cursor::new(head).chain(from)), name: shown, size, file })
    }
}

impl DumpSource for Source {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, String>> {
        let mut piece = vec![0; PIECE];
        let read = loop {
            match self.from.read(&mut piece) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        let read = read.map_err(|e| format!("{}: {e}", self.name)).map(|n| {
            piece.truncate(n);
            (n > 0).then(|| Bytes::from(piece))
        });
        Box::pin(ready(read))
    }

    fn size(&self) -> Option<u64> {
        self.size
    }

    fn rewind(&mut self) -> BoxFuture<'_, Result<bool, String>> {
        let Some(file) = &mut self.file else { return Box::pin(ready(Ok(false))) };
        let rewound = file.rewind().and_then(|()| file.try_clone());
        let rewound = rewound.map_err(|e| format!("{}: {e}", self.name));
        Box::pin(ready(rewound.map(|file| {
            self.from = Box::new(file);
            true
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_again_from_its_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("dump");
        std::fs::write(&name, [&MAGIC[..], &[7; 100_000]].concat()).unwrap();
        let mut source = Source::open(Some(&name)).unwrap();
        let first = now(source.next()).unwrap().unwrap();
        assert_eq!(now(source.rewind()), Ok(true));
        let mut all = Vec::new();
        while let Some(piece) = now(source.next()).unwrap() {
            all.extend_from_slice(&piece);
        }
        assert!(all.starts_with(&first) && all == std::fs::read(&name).unwrap());
    }

    fn now<T>(mut future: BoxFuture<'_, T>) -> T {
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        match future.as_mut().poll(&mut cx) {
            std::task::Poll::Ready(value) => value,
            std::task::Poll::Pending => panic!("it waits"),
        }
    }

    #[test]
    fn a_device_stays_a_device() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("null");
        std::os::unix::fs::symlink("/dev/null", &link).unwrap();
        let sink = Sink::open(Some(&link)).unwrap();
        sink.finish().unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
