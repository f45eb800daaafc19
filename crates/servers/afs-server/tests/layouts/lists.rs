//! Lists of chunks, of which each read shows its place.

use super::*;

/// The chunk of a part.
pub fn chunk(part: &ListedPart) -> ChunkRef {
    let id = ChunkId::from_bytes(part.copies[0].id.to_be_bytes());
    ChunkRef { id, len: part.chunk.length, crc: part.chunk.crc }
}

/// What the chunk of a part is by its list, for a client that reads it.
fn shown(list: &FileLayout, at: usize) -> (ChunkRef, Listed) {
    let there: Vec<_> = list.parts.parts().iter().filter(|part| !part.copies.is_empty()).collect();
    let element = |part: &&ListedPart| {
        let start = part.chunk.offset;
        ListedChunk { chunk: chunk(part), start, end: start + part.length }
    };
    let tree = ChunkList::new(&there.iter().map(element).collect::<Vec<_>>()).unwrap();
    let ListedChunk { chunk, start, end } = element(&there[at]);
    let binding = ListBinding::from_bytes(&list.lists[0].0).unwrap();
    let (place, count) = (at as u32, tree.count());
    (chunk, Listed { start, end, place, count, path: tree.path(place), binding })
}

impl Scene {
    /// Reads a part of a list that has one drive, by its number among those that are there.
    pub fn read_listed(&self, list: &FileLayout, at: usize) -> Result<Vec<u8>, Error> {
        let (chunk, listed) = shown(list, at);
        let drive = &list.drives[0];
        let address = SocketAddr::from((drive.address, drive.port));
        let capability = Capability::from_bytes(&drive.capability.arguments).unwrap();
        let secret = Secret::new(drive.capability.secret.0);
        let env = self.carol.world.env(self.carol.node);
        let work = async move {
            let stream = env.connect(address).await.map_err(|error| Error::Lost(error.into()))?;
            let session = Session::open(env.clone(), stream, Security::Clear, Patience::default()).await?;
            let handle = session.present(&capability, &secret)?;
            let range = listed.start..listed.end;
            session.read_listed(&handle, (chunk, listed), range).await
        };
        self.carol.world.block_on(self.carol.node, PATIENCE, work).unwrap().map(|bytes| bytes.to_vec())
    }
}

#[test]
fn the_chunks_of_a_list_are_read_at_the_drive_each_at_its_place() {
    let scene = Scene::new(12);
    let fid = scene.file("f");
    let list = scene.ask(fid, 0, ALL).unwrap();
    assert_eq!((list.end, list.drives.len(), list.lists.len()), (5 * SLOT_LEN + 3, 1, 1));
    let told = list.parts.parts().iter().map(|part| (part.start, part.length, part.copies.len()));
    let slot = SLOT_LEN as u32;
    let parts = [(0, slot, 1), (SLOT_LEN, slot, 1), (5 * SLOT_LEN, 3, 0)];
    assert_eq!(told.collect::<Vec<_>>(), parts);
    let slot = SLOT_LEN as usize;
    for at in 0..2 {
        assert_eq!(scene.read_listed(&list, at).unwrap(), content()[at * slot..(at + 1) * slot]);
    }
    // Where each transfer is commanded.
    scene.set_route(DataRoute::Commanded);
    assert_eq!(scene.ask(fid, 0, ALL).unwrap().lists[0], fs::LIST_COMMANDED);
}

/// As a client asks that reads all of it: for the first mebibytes, and for the rest in windows that grow.
#[test]
fn what_the_file_server_sends_for_ten_to_the_ninth_bytes_is_less_than_ten_thousand() {
    const MIB: u64 = 1 << 20;
    let scene = Scene::new(13);
    let fid = scene.owner.create(scene.dir, "long").unwrap().fid;
    // A chunk in each mebibyte. A whole one takes fewer bytes in a list: there are no holes between.
    let slots = 1_000_000_000_u64.div_ceil(SLOT_LEN);
    let length = (slots - 1) * SLOT_LEN + 17_000;
    let table = (0..slots).flat_map(|slot| [slot * SLOT_LEN, 17_000]).flat_map(u64::to_be_bytes);
    let mut bytes: Vec<u8> = table.collect();
    bytes.resize(bytes.len() + slots as usize * 17_000, 7);
    let (status, expected, ranges) = (fs::SetStatus::default(), scene.cell.version(fid), slots as u32);
    let store = fs::StoreRanges { fid, status, expected, file_length: length, grown_to: length, ranges };
    scene.owner.store_as(store, &bytes).unwrap();
    let first = scene.ask(fid, 0, 8 * MIB).unwrap();
    let mut sent = first.to_bytes().len();
    let (mut at, mut parts, mut calls) = (first.end, first.parts.parts().len(), 1);
    for end in [64 * MIB, 512 * MIB, 1024 * MIB] {
        let list = scene.ask(fid, at, end).unwrap();
        sent += list.to_bytes().len();
        assert!(scene.read_listed(&list, 0).is_ok(), "from {at}");
        let there = list.parts.parts().len();
        assert!(scene.read_listed(&list, there - 1).is_ok(), "from {at}");
        (at, parts, calls) = (list.end, parts + there, calls + 1);
    }
    assert_eq!((at, parts as u64, calls), (length, slots, 4));
    assert!(sent < 10_000, "{sent}");
    assert_eq!(scene.served.counts().refused, [0; 8]);
}
