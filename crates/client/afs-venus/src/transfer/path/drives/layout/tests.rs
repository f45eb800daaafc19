use std::net::Ipv4Addr;

use afs_datapath::capability::{
    Access, ByteRange, Capability, ChunkList, DriveId, DriveKey, Generation, Group, GroupTag, HolderId,
    KeyEpoch, ListTerms, ListedChunk, StoreNumber,
};
use afs_drive::MAX_CHUNK_LEN;
use afs_wire::fs::{
    self, CapabilityArguments, CapabilitySecret, DriveCapability, LIST_ADDRESSED, LIST_COMMANDED, ListedCopy,
    ListedParts,
};
use afs_wire::xdr::{BoundedVec, Encode, Fixed};

use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};

use super::super::sites::Sites;
use super::*;
use crate::identity::TokenId;

const TAG: GroupTag = GroupTag([1; 12]);
const CHUNK: u32 = 200_000;

fn key() -> DriveKey {
    DriveKey::new(DriveId(9), KeyEpoch(1), [7; 32])
}

fn drive(address: [u8; 4], of: u128) -> LayoutDrive {
    let capability = Capability {
        drive: DriveId(9),
        epoch: KeyEpoch(1),
        group: Group::Tagged(TAG),
        access: Access::READ,
        range: ByteRange::ALL,
        expires: 60,
        generation: Generation(1),
        holder: HolderId(1),
    };
    let arguments = CapabilityArguments::new(capability.to_bytes()).unwrap();
    LayoutDrive {
        address: Ipv4Addr::from(address),
        port: 7010,
        clear: false,
        drive: Fixed(of.to_be_bytes()),
        fingerprint: Fixed([3; 32]),
        capability: DriveCapability { arguments, secret: CapabilitySecret([0; 32]), seconds: 60 },
    }
}

/// By what the chunks of a drive are read.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Binding,
    Command,
    Address,
}

/// A copy of a part in a tests' reply.
#[derive(Clone, Copy)]
struct Copied {
    drive: u32,
    chunk: u32,
    offset: u32,
    by: By,
}

/// A chunk's copy that is bound.
fn copy(drive: u32, chunk: u32, offset: u32) -> Copied {
    Copied { drive, chunk, offset, by: By::Binding }
}

fn addressed(drive: u32, chunk: u32, offset: u32) -> Copied {
    Copied { by: By::Address, ..copy(drive, chunk, offset) }
}

/// A part, and by what each of its copies is read.
type Part = (ListedPart, Vec<By>);

fn part(start: u64, length: u32, copies: Vec<Copied>) -> Part {
    let chunk = copies.first().map_or(fs::ListedChunk::default(), |copy| fs::ListedChunk {
        length: copy.chunk,
        crc: 5,
        offset: copy.offset,
    });
    let listed = copies.iter().map(|copy| ListedCopy { drive: copy.drive, id: start.into() }).collect();
    (ListedPart { start, length, chunk, copies: listed }, copies.iter().map(|copy| copy.by).collect())
}

/// What a file server replies; `None` for parts that no reply can have.
fn reply(drives: Vec<LayoutDrive>, parts: Vec<Part>, end: u64) -> Option<FileLayout> {
    let by = |drive: u32| {
        let copies = parts.iter().flat_map(|(part, by)| part.copies.iter().zip(by));
        let mut of_drive = copies.filter(|(copy, _)| copy.drive == drive);
        of_drive.next().map_or(By::Command, |(_, by)| *by)
    };
    let listed: Vec<_> = parts.iter().map(|(part, _)| part.clone()).collect();
    let lists = (0..drives.len() as u32).map(|drive| match by(drive) {
        By::Binding => binding(&listed, drive),
        By::Command => LIST_COMMANDED,
        By::Address => LIST_ADDRESSED,
    });
    let (drives, lists) = (BoundedVec::try_from(drives).unwrap(), BoundedVec::first_of(lists));
    Some(FileLayout { drives, lists, parts: ListedParts::new(listed)?, end })
}

fn checked(reply: &Option<FileLayout>) -> Option<Layout> {
    checked_with(reply.as_ref()?, true)
}

fn checked_with(reply: &FileLayout, buckets: bool) -> Option<Layout> {
    let asked = Asked { start: 0, called: IpAddr::from([10, 0, 0, 1]), at: Instant::ZERO, buckets };
    let fid = Fid::new(VolumeId(7), VnodeId(2), Uniquifier(1));
    let mut sites = Sites::default();
    Layout::new(reply, &asked, &DataPathConfig::default(), |offer, given| {
        sites.given((TokenId(1), fid), offer, given)
    })
}

fn of(parts: Vec<Part>, end: u64) -> Option<Layout> {
    checked(&reply(vec![drive([10, 0, 0, 9], 9)], parts, end))
}

/// What is read from a position, up to another: a letter and a length for each.
fn segments(layout: &Layout, mut range: Range<u64>) -> Vec<(char, u64)> {
    let mut segments = Vec::new();
    while let Some(segment) = layout.segment(&range) {
        let (kind, length) = match segment {
            Segment::Hole(length) => ('h', length),
            Segment::Server(length) => ('s', length),
            Segment::Drives { length, .. } => ('d', length),
        };
        segments.push((kind, length));
        range.start += length;
    }
    segments
}

#[test]
fn what_is_between_parts_is_zeros_and_what_has_no_copies_is_at_the_server() {
    let parts = vec![
        part(0, 100, vec![copy(0, CHUNK, 0)]),
        part(150, 10, vec![]),
        part(170, 90, vec![copy(0, CHUNK, 7)]),
    ];
    let layout = of(parts, 300).unwrap();
    assert_eq!(
        segments(&layout, 0..300),
        [('d', 100), ('h', 50), ('s', 10), ('h', 10), ('d', 90), ('h', 40)]
    );
    assert_eq!(segments(&layout, 40..155), [('d', 60), ('h', 50), ('s', 5)]);
    assert_eq!(segments(&layout, 299..900), [('h', 1)], "nothing is told of what is behind the end");
    assert!(layout.has_copies(&(0..10)) && !layout.has_copies(&(100..170)));
    let Some(Segment::Drives { part, at, length }) = layout.segment(&(180..190)) else { panic!("no part") };
    assert_eq!(part.copies[0].range(at, length), Some(17..27));
}

#[test]
fn long_runs_are_read_in_steps() {
    let layout = of(vec![part(0, 3 << 20, vec![copy(0, 4 << 20, 0)])], 8 << 20).unwrap();
    let all = segments(&layout, 0..8 << 20);
    assert_eq!((all.len(), all.iter().all(|(_, length)| *length == STEP)), (8, true));
}

#[test]
fn a_layout_that_contradicts_itself_is_none() {
    let good = || vec![copy(0, CHUNK, 0)];
    assert!(of(vec![part(0, 9, good())], 9).is_some());
    let hostile = [
        ("overlapping parts", vec![part(0, 9, good()), part(8, 9, good())], 30),
        ("parts in another order", vec![part(20, 9, good()), part(0, 9, good())], 30),
        ("a drive that is not there", vec![part(0, 9, vec![copy(1, CHUNK, 0)])], 9),
        ("no drive by its number", vec![part(0, 9, vec![copy(u32::MAX, CHUNK, 0)])], 9),
        ("an empty part", vec![part(0, 0, good())], 9),
        ("a part longer than its chunk", vec![part(0, CHUNK + 1, good())], 9),
        ("an offset beyond the chunk", vec![part(0, 9, vec![copy(0, CHUNK, CHUNK - 8)])], 9),
        ("an offset that overflows", vec![part(0, 9, vec![copy(0, CHUNK, u32::MAX - 3)])], 9),
        ("a chunk larger than chunks are", vec![part(0, 9, vec![copy(0, u32::MAX, 0)])], 9),
        ("a place that overflows", vec![part(u64::MAX - 3, 9, good())], 9),
        ("a place behind all files", vec![part(i64::MAX as u64, 9, good())], 9),
        ("no bytes", vec![part(0, 9, good())], 0),
        ("more bytes than files have", vec![part(0, 9, good())], u64::MAX),
    ];
    for (what, parts, end) in hostile {
        assert!(of(parts, end).is_none(), "{what}");
    }
    assert!(checked(&reply(vec![], vec![], 9)).is_none(), "no drive at all");
}

#[test]
fn a_drive_that_cannot_be_used_from_here_gives_nothing() {
    let parts = || vec![part(0, 9, vec![copy(0, CHUNK, 0), copy(1, CHUNK, 0)])];
    let good = || drive([10, 0, 0, 9], 9);
    let copies = |first: LayoutDrive| {
        let layout = checked(&reply(vec![first, good()], parts(), 9)).unwrap();
        layout.parts[0].copies.len()
    };
    assert_eq!(copies(good()), 2);
    for nobodys in [[0, 0, 0, 0], [224, 0, 0, 1], [255; 4], [127, 0, 0, 1]] {
        assert_eq!(copies(drive(nobodys, 9)), 1, "{nobodys:?}");
    }
    assert_eq!(copies(drive([10, 0, 0, 9], 8)), 1, "a capability for another drive");
    assert_eq!(copies(LayoutDrive { port: 0, ..good() }), 1);
    assert_eq!(copies(LayoutDrive { clear: true, ..good() }), 1, "TLS is demanded here");
    let mut expired = good();
    expired.capability.seconds = 0;
    assert_eq!(copies(expired), 1);
    // The part is read at the server then.
    let layout =
        checked(&reply(vec![drive([127, 0, 0, 1], 9), good()], vec![part(0, 9, vec![copy(0, CHUNK, 0)])], 9));
    assert_eq!(segments(&layout.unwrap(), 0..9), [('s', 9)]);
}

/// A bucket in the place of a drive, as file servers say it.
fn bucket() -> LayoutDrive {
    let arguments = CapabilityArguments::default();
    LayoutDrive {
        address: Ipv4Addr::UNSPECIFIED,
        port: 0,
        clear: false,
        drive: Fixed(2u128.to_be_bytes()),
        fingerprint: Fixed([0; 32]),
        capability: DriveCapability { arguments, secret: CapabilitySecret([0; 32]), seconds: 60 },
    }
}

#[test]
fn a_whole_chunk_in_a_bucket_is_read_there_unless_little_of_it_is_wanted() {
    let told = reply(vec![bucket()], vec![part(0, CHUNK, vec![addressed(0, CHUNK, 0)])], CHUNK.into());
    let layout = checked(&told).unwrap();
    assert_eq!(layout.ends, Some(Instant::ZERO + Duration::from_secs(60)));
    let (all, half) = (u64::from(CHUNK), u64::from(CHUNK) / 2);
    assert_eq!(segments(&layout, 0..all), [('d', all)]);
    assert_eq!(segments(&layout, 10..10 + half), [('d', half)]);
    assert_eq!(segments(&layout, 10..9 + half), [('s', half - 1)]);
    assert!(layout.has_copies(&(0..all)) && !layout.has_copies(&(0..100)));
    assert!(matches!(layout.parts[0].copies[0].place, Place::Bucket(DriveId(2))));
    let long =
        LayoutDrive { capability: DriveCapability { seconds: u32::MAX, ..bucket().capability }, ..bucket() };
    let layout = checked(&reply(vec![long], vec![], 9)).unwrap();
    assert_eq!(layout.ends, Some(Instant::ZERO + LAYOUT_LIFE_MAX));
    assert!(layout.is_over(Instant::ZERO + LAYOUT_LIFE_MAX));
}

#[test]
fn what_is_said_of_a_bucket_and_contradicts_itself_is_none() {
    let of = |copy: Copied, length| checked(&reply(vec![bucket()], vec![part(0, length, vec![copy])], 9));
    assert!(of(addressed(0, CHUNK, 0), CHUNK).is_some());
    assert!(of(addressed(0, CHUNK, 0), CHUNK - 1).is_none(), "a part of a chunk");
    assert!(of(addressed(0, CHUNK, 1), CHUNK - 1).is_none(), "the end of a chunk");
    assert!(of(addressed(0, u32::MAX, 0), u32::MAX).is_none(), "a chunk larger than chunks are");
    assert!(of(copy(0, CHUNK, 0), CHUNK).is_none(), "a binding");
    assert!(of(Copied { by: By::Command, ..copy(0, CHUNK, 0) }, CHUNK).is_none(), "a command");
    let at_a_drive = vec![part(0, 9, vec![addressed(0, CHUNK, 0)])];
    assert!(checked(&reply(vec![drive([10, 0, 0, 9], 9)], at_a_drive, 9)).is_none(), "an address at a drive");
}

/// What clients do that know no buckets: `Offer::of_layout` is all that they ask of a place in the list.
#[test]
fn a_bucket_is_no_drive_to_a_client_that_reads_none() {
    let configs =
        [DataPathConfig::default(), DataPathConfig { allow_clear: true, ..DataPathConfig::default() }];
    for config in configs {
        assert!(Offer::of_layout(&bucket(), [10, 0, 0, 1].into(), &config).is_none());
    }
    let parts = || vec![part(0, CHUNK, vec![addressed(0, CHUNK, 0), copy(1, CHUNK, 0)])];
    let layout = |drives| checked_with(&reply(drives, parts(), 9).unwrap(), false);
    let both = layout(vec![bucket(), drive([10, 0, 0, 9], 9)]).unwrap();
    assert!(matches!(both.parts[0].copies[..], [PartCopy { place: Place::Drive(..), .. }]));
    assert!(layout(vec![bucket(), bucket()]).is_none(), "no drive that it can use");
}

/// A part that is a chunk of a list, with a copy at each of some drives.
fn listed(start: u64, drives: &[u32]) -> ListedPart {
    let chunk = fs::ListedChunk { length: CHUNK, crc: 5, offset: 0 };
    let copies = drives.iter().map(|drive| ListedCopy { drive: *drive, id: start.into() });
    ListedPart { start, length: CHUNK, chunk, copies: copies.collect() }
}

/// The binding of those parts at a drive.
fn binding(parts: &[ListedPart], drive: u32) -> Fixed<40> {
    let at_drive = parts.iter().filter(|part| part.copies.iter().any(|copy| copy.drive == drive));
    let chunks: Vec<_> = at_drive
        .map(|part| ListedChunk {
            chunk: lists::chunk(part, part.start.into()),
            start: part.chunk.offset,
            end: part.chunk.offset.saturating_add(part.length),
        })
        .collect();
    let terms = ListTerms { store: StoreNumber(0), file: TAG, generation: Generation(3) };
    let bound = key().bind_list(TAG, &ChunkList::new(&chunks).unwrap(), terms);
    Fixed(bound.to_bytes().try_into().unwrap())
}

fn of_lists(drives: Vec<LayoutDrive>, lists: Vec<Fixed<40>>, parts: Vec<ListedPart>) -> Option<Layout> {
    let end = parts.last().map_or(100, |part| part.start + u64::from(part.length));
    let (drives, lists) = (BoundedVec::try_from(drives).unwrap(), BoundedVec::try_from(lists).unwrap());
    checked_with(&FileLayout { drives, lists, parts: ListedParts::new(parts)?, end }, true)
}

/// What is shown for each copy of a layout is what its drive follows to what was bound.
#[test]
fn elements_of_lists_are_at_their_places_whatever_drives_can_be_used() {
    let places: [&[u32]; 5] = [&[0], &[1, 0], &[1], &[], &[0, 1]];
    let parts: Vec<_> = (0..).zip(places).map(|(n, drives)| listed(n << 20, drives)).collect();
    let mut parts = parts;
    parts[3].chunk = fs::ListedChunk::default();
    let lists: Vec<_> = (0..2).map(|drive| binding(&parts, drive)).collect();
    // The second of them is this machine itself, which is no drive that can be used.
    for second in [[10, 0, 0, 8], [127, 0, 0, 1]] {
        let layout =
            of_lists(vec![drive([10, 0, 0, 9], 9), drive(second, 9)], lists.clone(), parts.clone()).unwrap();
        let mut shown = 0;
        for copy in layout.parts.iter().flat_map(|part| &part.copies) {
            let Place::Drive(_, Permission::Listed(element)) = &copy.place else { panic!("in no list") };
            let listed = element.shown();
            assert_eq!(key().check_listed(TAG, copy.chunk, &listed, &(0..CHUNK)), Ok(()));
            shown += 1;
        }
        assert_eq!(shown, if second[0] == 10 { 6 } else { 3 });
        assert_eq!(layout.sites()[0].1, Generation(3));
    }
}

#[test]
fn lists_that_contradict_themselves_are_refused() {
    let parts = vec![listed(0, &[0]), listed(1 << 20, &[0])];
    let (bound, drives) = (binding(&parts, 0), || vec![drive([10, 0, 0, 9], 9)]);
    assert!(of_lists(drives(), vec![bound], parts.clone()).is_some());
    assert!(of_lists(drives(), vec![LIST_COMMANDED], parts.clone()).is_some());
    assert!(of_lists(drives(), vec![LIST_ADDRESSED], parts.clone()).is_none(), "a drive is no bucket");
    assert!(of_lists(drives(), vec![], parts.clone()).is_none(), "no list");
    assert!(of_lists(drives(), vec![bound; 2], parts.clone()).is_none(), "a list of no drive");
    assert!(of_lists(drives(), vec![bound], vec![]).is_none(), "a list of no chunks");
    let changed = |change: &dyn Fn(&mut ListedPart)| {
        let mut parts = parts.clone();
        change(&mut parts[1]);
        of_lists(drives(), vec![bound], parts)
    };
    assert!(changed(&|part| part.copies[0].drive = 1).is_none(), "a drive that is not there");
    assert!(changed(&|part| part.chunk.length = CHUNK - 1).is_none(), "less of the chunk than of the part");
    assert!(changed(&|part| part.chunk.length = MAX_CHUNK_LEN as u32 + 1).is_none(), "too long a chunk");
    assert!(changed(&|part| part.chunk.offset = u32::MAX).is_none(), "beyond all chunks");
    assert!(changed(&|part| part.length = 0).is_none(), "no bytes");
    assert!(changed(&|part| part.start = i64::MAX as u64).is_none(), "beyond all files");
}
