//! The five phases of the benchmark on one copy: loops over the listed tree, or walks of the copy.

use crate::andrew::tree::{SourceFile, SourceTree};
use crate::error::{Context, LabError};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

/// Bytes read and written at a time; a file is never held whole.
const BLOCK_LEN: usize = 128 * 1024;

/// Makes the directories of `tree` under `copy`, which must not exist before.
pub(crate) fn make_dir(tree: &SourceTree, copy: &Path, step: &dyn Fn()) -> Result<(), LabError> {
    fs::create_dir(copy).during("make the directory", copy)?;
    for directory in &tree.directories {
        let path = copy.join(directory);
        fs::create_dir(&path).during("make the directory", &path)?;
        step();
    }
    Ok(())
}

/// Copies every file and link.
pub(crate) fn copy(tree: &SourceTree, copy: &Path, step: &dyn Fn()) -> Result<(), LabError> {
    let mut block = vec![0; BLOCK_LEN];
    for file in &tree.files {
        copy_file(&tree.root, file, copy, &mut block)?;
        step();
    }
    for link in &tree.links {
        let path = copy.join(&link.path);
        symlink(&link.target, &path).during("make the link", &path)?;
        step();
    }
    Ok(())
}

fn copy_file(root: &Path, file: &SourceFile, copy: &Path, block: &mut [u8]) -> Result<(), LabError> {
    let (from, to) = (root.join(&file.path), copy.join(&file.path));
    let mut source = File::open(&from).during("open", &from)?;
    let mut target =
        OpenOptions::new().write(true).create_new(true).mode(file.mode).open(&to).during("create", &to)?;
    loop {
        let length = source.read(block).during("read", &from)?;
        if length == 0 {
            break;
        }
        target.write_all(&block[..length]).during("write", &to)?;
    }
    close(target).during("close", &to)
}

/// Closes a file and returns the system's error: a file system that stores on close reports a full disk or an
/// exceeded quota there, and dropping a `File` would lose it.
fn close(file: File) -> std::io::Result<()> {
    use std::os::fd::IntoRawFd;
    crate::close::close(file.into_raw_fd())
}

/// Walks the copy and reads the status of every entry; returns the number of files and links.
pub(crate) fn scan_dir(copy: &Path, step: &dyn Fn()) -> Result<u64, LabError> {
    let mut seen = 0;
    walk(copy, &mut |_| {
        seen += 1;
        step();
        Ok(())
    })?;
    Ok(seen)
}

/// Reads every byte of every file of the copy and compares lengths with the source.
pub(crate) fn read_all(tree: &SourceTree, copy: &Path, step: &dyn Fn()) -> Result<(), LabError> {
    let mut block = vec![0; BLOCK_LEN];
    for file in &tree.files {
        let path = copy.join(&file.path);
        let mut open = File::open(&path).during("open", &path)?;
        let mut got = 0;
        loop {
            let length = open.read(&mut block).during("read", &path)?;
            if length == 0 {
                break;
            }
            got += length as u64;
        }
        if got != file.length {
            return Err(LabError::WrongLength { path, got, want: file.length });
        }
        step();
    }
    Ok(())
}

/// Calls `each` for every file and link under `root`, after its status was read.
fn walk(root: &Path, each: &mut dyn FnMut(&Path) -> Result<(), LabError>) -> Result<(), LabError> {
    let mut pending: Vec<PathBuf> = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).during("read the directory", &directory)? {
            let path = entry.during("read the directory", &directory)?.path();
            let status = fs::symlink_metadata(&path).during("get the status of", &path)?;
            if status.is_dir() {
                pending.push(path);
            } else {
                each(&path)?;
            }
        }
    }
    Ok(())
}
