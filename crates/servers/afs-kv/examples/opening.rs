//! Time that a store takes to open, with all pages of its index looked at: `cargo run --release -p afs-kv --example opening -- DIR MILLIONS`.
//!
//! Makes a store of so many million rows in DIR, unless there is one, and opens it three times. Each time also the share of the look
//! at the pages, as `andrew store check` does it, without the log.

#![allow(clippy::disallowed_methods, reason = "it measures the disk of this machine")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use afs_env::Parts;
use afs_kv::{Config, FileMedium, Kv};

const TABLE: &str = "rows";
/// Bytes of a value: those of a vnode's record.
const VALUE_LEN: usize = 100;
const ROWS_PER_BATCH: u64 = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, millions] = &arguments[..] else { return Err("usage: opening DIR MILLIONS".into()) };
    let directory = Path::new(directory);
    if !directory.join("index").exists() {
        fill(&open(directory)?, millions.parse::<u64>()? * 1_000_000)?;
    }
    let len = std::fs::metadata(directory.join("index"))?.len();
    println!("index of {} MB", len / 1_000_000);
    for _ in 0..3 {
        let start = Instant::now();
        drop(open(directory)?);
        let opened = start.elapsed();
        let start = Instant::now();
        afs_kv::check(&FileMedium::read_only(directory)?, &mut ())?;
        println!("opened in {opened:.2?}; a check takes {:.2?}", start.elapsed());
    }
    Ok(())
}

fn open(directory: &Path) -> Result<Kv, Box<dyn Error>> {
    let medium = Arc::new(FileMedium::open(directory)?);
    Ok(Kv::open(medium, &[TABLE], Parts::inline(), Config::default())?)
}

fn fill(kv: &Kv, rows: u64) -> Result<(), Box<dyn Error>> {
    for first in (0..rows).step_by(ROWS_PER_BATCH as usize) {
        let put = move |txn: &mut afs_kv::Txn<'_>| {
            (first..first + ROWS_PER_BATCH)
                .for_each(|n| txn.put(TABLE, &n.to_be_bytes(), vec![n as u8; VALUE_LEN]));
            Ok(())
        };
        kv.submit(Box::new(put), Box::new(drop));
    }
    Ok(kv.checkpoint()?)
}
