//! `andrew drive add`: joins a drive on another host, or takes a bucket as a drive.

use super::unexpected;
use crate::commands::login::passphrase::{self, Kind};
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_cell::drives::{BucketPlace, DriveAnswer, DriveRequest, JoinKey};
use serde::Serialize;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Options of `andrew drive add`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
A drive on another host: the join key proves both ends to each other: it has the fingerprint of the drive's key and a secret, and is
void afterwards. It is typed at the terminal, or in a file that only you can read: other users of the machine see the words of a command.

A bucket: any store with the S3 protocol that honours If-None-Match: * on PUT. Give each file server a prefix of its own, and
credentials that reach nothing else; whoever has them can read every file there. The file of credentials has the lines
aws_access_key_id = ID and aws_secret_access_key = KEY; it is read for every request, so that it may be replaced at any time.

If the command was interrupted, run it again.

Examples:
  andrew drive add big --address 192.0.2.9
  andrew drive add big --address 192.0.2.9 --join-key /root/join-key
  andrew drive add cold --bucket s3://andrew/example.org --endpoint https://s3.example.org --credentials /root/s3")]
pub struct Args {
    /// Name of the drive on this host
    #[arg(value_name = "NAME")]
    name: String,
    /// Where the drive on another host listens; the port is 7010 unless it is named
    #[arg(
        long,
        value_name = "IP[:PORT]",
        value_parser = super::address,
        required_unless_present = "bucket",
        conflicts_with = "bucket"
    )]
    address: Option<SocketAddr>,
    /// File with the join key that `andrew drive serve` printed, which only you can read [default: asks at the terminal]
    #[arg(long, value_name = "FILE", requires = "address")]
    join_key: Option<PathBuf>,
    /// A bucket, and the prefix of all objects of this drive
    #[arg(long, value_name = "s3://BUCKET/PREFIX", requires = "endpoint", requires = "credentials")]
    bucket: Option<String>,
    #[command(flatten)]
    store: StoreArgs,
}

/// How the store of a bucket is reached.
#[derive(clap::Args, Debug)]
struct StoreArgs {
    /// The object store with the bucket
    #[arg(long, value_name = "https://HOST[:PORT]", requires = "bucket")]
    endpoint: Option<String>,
    /// File with the credentials, which only you can read
    #[arg(long, value_name = "FILE", requires = "bucket")]
    credentials: Option<PathBuf>,
    /// Region of the bucket
    #[arg(long, value_name = "REGION", requires = "bucket", default_value = "us-east-1")]
    region: String,
    /// Certificates of the authorities that the store's certificate is verified by [default: those of the system]
    #[arg(long, value_name = "PEM", requires = "bucket")]
    authority: Option<PathBuf>,
    /// Permit http to another machine: what is stored goes over the network in clear
    #[arg(long, requires = "bucket")]
    allow_clear: bool,
}

#[derive(Serialize)]
struct Added {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bucket: Option<String>,
}

impl Args {
    pub(super) fn run(
        self,
        ask: &impl Fn(DriveRequest) -> CommandResult<DriveAnswer>,
        json: bool,
    ) -> CommandResult {
        let added = Added { name: self.name.clone(), address: self.address, bucket: self.bucket.clone() };
        match ask(self.request()?)? {
            DriveAnswer::Done => output::show(json, &added),
            _ => return Err(unexpected()),
        }
        Ok(())
    }

    fn request(self) -> CommandResult<DriveRequest> {
        let Self { name, address, join_key, bucket, store } = self;
        match (address, join_key, bucket) {
            (Some(address), key, None) => {
                Ok(DriveRequest::Add { name, address, join_key: text(key.as_deref())? })
            }
            (None, None, Some(bucket)) => Ok(DriveRequest::AddBucket { name, place: store.place(bucket)? }),
            _ => Err(CommandError::usage("drive: give --address or --bucket".to_owned())),
        }
    }
}

impl StoreArgs {
    fn place(self, bucket: String) -> CommandResult<BucketPlace> {
        let Self { endpoint, credentials, region, authority, allow_clear } = self;
        let (Some(endpoint), Some(credentials)) = (endpoint, credentials) else {
            return Err(CommandError::usage("drive: a bucket needs --endpoint and --credentials".to_owned()));
        };
        let credentials = absolute(&credentials)?;
        let authority = authority.as_deref().map(absolute).transpose()?;
        Ok(BucketPlace { bucket, endpoint, region, credentials, authority, allow_clear })
    }
}

/// The path as the file server has to name it, which runs in another directory.
fn absolute(path: &Path) -> CommandResult<PathBuf> {
    std::path::absolute(path)
        .map_err(|error| CommandError::failed(format!("drive: {}: {error}", path.display())))
}

/// The join key, from its file or from the terminal.
fn text(file: Option<&Path>) -> CommandResult<String> {
    const KEY: Kind = Kind { name: "join key", option: "--join-key FILE" };
    let shown = file.map(|file| file.to_string_lossy()).unwrap_or_default();
    if JoinKey::parse(&shown).is_ok() {
        return Err(CommandError::usage(
            "drive: every user of this machine can see a join key in the words of a command; leave --join-key away and type the key when it is asked for, or put it into a file that only you can read",
        ));
    }
    let key = match file {
        Some(file) => passphrase::from_file(KEY, file)?,
        None => passphrase::ask(KEY, "Join key of the drive")?,
    };
    let text = String::from_utf8(key.expose().to_vec()).ok().filter(|text| JoinKey::parse(text).is_ok());
    text.ok_or_else(|| CommandError::usage("drive: that is no join key; `andrew drive serve` prints it"))
}

impl fmt::Display for Added {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, address, bucket } = self;
        if let Some(address) = address {
            writeln!(f, "drive {name} at {address} belongs to this file server; its join key is void")?;
        }
        if let Some(bucket) = bucket {
            writeln!(f, "drive {name} in {bucket} belongs to this file server")?;
        }
        writeln!(f, "new data go there after: andrew drive use {name}")
    }
}
