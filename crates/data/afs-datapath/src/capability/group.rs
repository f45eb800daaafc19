//! Groups of objects that one capability covers.

use std::fmt;

use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};
use afs_wire::xdr::{Decode, DecodeError, Encode, Reader};

use super::{GroupTag, StagingTag, StoreNumber, StreamName};

/// The objects that a capability covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// One file.
    File(Fid),
    /// The files whose parent is this directory. AFS decides rights by directory.
    Directory(Fid),
    /// All files of a volume; for servers among each other.
    Volume(VolumeId),
    /// One stream of a volume, which is no file.
    Stream(StreamName),
    /// All chunks of a store; for the file server whose store it is.
    Chunks(StoreNumber),
    /// Objects at a drive that has no files: the chunks that are bound to this tag.
    Tagged(GroupTag),
    /// The chunks of a store that a client stages under this tag.
    Staged(StoreNumber, StagingTag),
}

impl Group {
    /// The volume in which the objects are; chunks are in none, and a tag does not tell.
    #[must_use]
    pub const fn volume(self) -> Option<VolumeId> {
        match self {
            Self::File(fid) | Self::Directory(fid) => Some(fid.volume),
            Self::Volume(volume) => Some(volume),
            Self::Stream(stream) => Some(stream.volume),
            Self::Chunks(_) | Self::Tagged(_) | Self::Staged(..) => None,
        }
    }

    /// Whether a file may be in the group, as far as its fid tells. For a directory the drive must also compare the file's parent
    /// with [`Group::parent`].
    #[must_use]
    pub fn may_cover(self, fid: Fid) -> bool {
        match self {
            Self::File(file) => file == fid,
            Self::Directory(directory) => directory.volume == fid.volume && !fid.is_directory(),
            Self::Volume(volume) => volume == fid.volume,
            Self::Stream(stream) => stream.fid() == fid,
            Self::Chunks(_) | Self::Tagged(_) | Self::Staged(..) => false,
        }
    }

    /// The directory in which a file must be to be in the group, for a group of that kind.
    #[must_use]
    pub const fn parent(self) -> Option<Fid> {
        match self {
            Self::Directory(directory) => Some(directory),
            Self::File(_) | Self::Volume(_) | Self::Stream(_) => None,
            Self::Chunks(_) | Self::Tagged(_) | Self::Staged(..) => None,
        }
    }

    /// The stream, for a group that is one.
    #[must_use]
    pub const fn stream(self) -> Option<StreamName> {
        match self {
            Self::Stream(stream) => Some(stream),
            Self::File(_) | Self::Directory(_) | Self::Volume(_) => None,
            Self::Chunks(_) | Self::Tagged(_) | Self::Staged(..) => None,
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(fid) => write!(f, "file {fid}"),
            Self::Directory(fid) => write!(f, "files of directory {fid}"),
            Self::Volume(volume) => write!(f, "files of volume {volume}"),
            Self::Stream(stream) => write!(f, "stream {stream}"),
            Self::Chunks(store) => write!(f, "chunks of store {store}"),
            Self::Tagged(tag) => write!(f, "chunks that are bound to {tag}"),
            Self::Staged(store, tag) => write!(f, "chunks of store {store} that are staged under {tag}"),
        }
    }
}

const FILE: u32 = 1;
const DIRECTORY: u32 = 2;
const VOLUME: u32 = 3;
const STREAM: u32 = 4;
const CHUNKS: u32 = 5;
const TAGGED: u32 = 6;
const STAGED: u32 = 7;

/// The number of a store takes the place of a volume's.
fn of_store(store: StoreNumber) -> Fid {
    Fid::new(VolumeId(store.0), VnodeId(0), Uniquifier(0))
}

impl Encode for Group {
    fn encode(&self, out: &mut Vec<u8>) {
        let (kind, fid) = match *self {
            Self::File(fid) => (FILE, fid),
            Self::Directory(fid) => (DIRECTORY, fid),
            Self::Volume(volume) => (VOLUME, Fid::whole_volume(volume)),
            Self::Stream(stream) => (STREAM, stream.fid()),
            Self::Chunks(store) => (CHUNKS, of_store(store)),
            Self::Tagged(tag) => {
                TAGGED.encode(out);
                return tag.encode(out);
            }
            Self::Staged(store, tag) => {
                STAGED.encode(out);
                store.encode(out);
                return tag.encode(out);
            }
        };
        kind.encode(out);
        fid.encode(out);
    }
}

impl Decode for Group {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (kind, fid) = (r.u32()?, Fid::decode(r)?);
        match kind {
            FILE => Ok(Self::File(fid)),
            DIRECTORY => Ok(Self::Directory(fid)),
            VOLUME if fid == Fid::whole_volume(fid.volume) => Ok(Self::Volume(fid.volume)),
            STREAM => Ok(Self::Stream(StreamName::of(fid))),
            CHUNKS if fid == of_store(StoreNumber(fid.volume.0)) => {
                Ok(Self::Chunks(StoreNumber(fid.volume.0)))
            }
            TAGGED => Ok(Self::Tagged(GroupTag::of_fid(fid))),
            STAGED => {
                let bytes = GroupTag::of_fid(fid).0;
                let mut words = Reader::new(&bytes);
                Ok(Self::Staged(StoreNumber::decode(&mut words)?, StagingTag::decode(&mut words)?))
            }
            value => Err(DecodeError::BadValue { what: "group of objects", value }),
        }
    }
}
