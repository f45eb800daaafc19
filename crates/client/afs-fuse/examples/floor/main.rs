//! A file system in memory behind the kernel's FUSE, which does nothing else: what the kernel's requests alone cost any
//! mount, the floor below which no cache manager of ours can come.
//!
//! `cargo run --release -p afs-fuse --example floor -- DIR` mounts it on DIR until it is unmounted. The kernel may keep
//! names, attributes and data, as with `andrew mount`. For measurements: a tree of a user's, no rights are checked.

mod requests;
mod tree;

use std::error::Error;
use std::path::PathBuf;

use fuser::{Config, MountOption, SessionACL};

fn main() -> Result<(), Box<dyn Error>> {
    let Some(directory) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return Err("usage: floor DIR".into());
    };
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("floor".into()),
        MountOption::NoSuid,
        MountOption::NoDev,
        MountOption::NoAtime,
    ];
    config.acl = SessionACL::All;
    config.n_threads = Some(1);
    Ok(fuser::mount(requests::Floor::default(), &directory, &config)?)
}
