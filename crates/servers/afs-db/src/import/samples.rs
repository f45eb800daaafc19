//! Small databases in OpenAFS's format, for tests and as a starting point for fuzzing.

/// Builds a database by address.
pub(crate) struct File(Vec<u8>);

impl File {
    fn new(len: u32) -> Self {
        let mut file = File(vec![0; 64 + len as usize]);
        file.0[..16].copy_from_slice(&[0, 0x35, 0x45, 0x45, 0, 0, 0, 64, 0x65, 0, 0, 0, 0, 0, 0, 9]);
        file
    }

    pub(crate) fn put(&mut self, address: u32, bytes: &[u8]) {
        let at = 64 + address as usize;
        self.0.resize(self.0.len().max(at + bytes.len()), 0);
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    pub(crate) fn word(&mut self, address: u32, word: u32) {
        self.put(address, &word.to_be_bytes());
    }

    pub(crate) fn words(&mut self, address: u32, words: &[u32]) {
        for (n, word) in words.iter().enumerate() {
            self.word(address + 4 * n as u32, *word);
        }
    }

    pub(crate) fn get(&self, address: u32) -> u32 {
        let at = 64 + address as usize;
        u32::from_be_bytes(self.0[at..at + 4].try_into().unwrap_or_default())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    #[cfg(test)]
    pub(crate) fn cut(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// Inserts the entry at `address` at the head of a hash chain.
    fn chain(&mut self, head: u32, address: u32, next: u32) {
        let old = self.get(head);
        self.word(address + next, old);
        self.word(head, address);
    }
}

/// A location database.
pub(crate) struct LocationFile {
    pub(crate) file: File,
    version: u32,
    end: u32,
}

/// Address of its first entry: after the extension block.
pub(crate) const FIRST_ENTRY: u32 = 132_120 + 8192;
/// UUID of its server number 1, which is in the extension block.
pub(crate) const SAMPLE_UUID: [u8; 16] = [7; 16];

impl LocationFile {
    /// Server 0 is 10.0.0.1, server 1 is registered with 10.0.0.2 and 10.1.0.2 (in version 4).
    pub(crate) fn new(version: u32) -> Self {
        let mut file = File::new(FIRST_ENTRY);
        file.words(0, &[version, 132_120, 0, FIRST_ENTRY, 0, 0, 0x2000_0100]);
        file.words(40, &[0x0a00_0001, if version == 4 { 0xff00_0001 } else { 0x0a00_0002 }]);
        let block = 132_120;
        file.word(block + 12, 8);
        if version == 4 {
            file.word(132_116, block);
            file.words(block, &[1, 0, 0, 8, block]);
            file.put(block + 128, &SAMPLE_UUID);
            file.words(block + 128 + 16, &[5, 0x0a00_0002, 0x0a01_0002]);
        }
        LocationFile { file, version, end: FIRST_ENTRY }
    }

    /// Adds an entry with sites (server number, partition, flags), and returns its address.
    pub(crate) fn entry(&mut self, name: &str, ids: [u32; 3], sites: &[[u8; 3]]) -> u32 {
        let at = self.end;
        let (next, name_at, sites_at, count) =
            if self.version == 2 { (32, 56, 122, 8) } else { (28, 44, 109, 13) };
        self.file.put(at, &[0; 148]);
        self.file.words(at, &ids);
        self.file.word(at + 12, 0x1000);
        self.file.put(at + name_at, name.as_bytes());
        self.file.put(at + sites_at, &vec![255; 3 * count as usize]);
        for (n, site) in sites.iter().enumerate() {
            for (field, byte) in site.iter().enumerate() {
                self.file.put(at + sites_at + field as u32 * count + n as u32, &[*byte]);
            }
        }
        let bucket = super::location::name_bucket(name.as_bytes()) as u32;
        self.file.chain(1060 + 4 * bucket, at, next + 12);
        for (kind, id) in ids.iter().enumerate().filter(|(_, id)| **id != 0) {
            let kind = kind as u32;
            self.file.chain(33_824 + kind * 32_764 + 4 * (id % 8191), at, next + 4 * kind);
        }
        self.end += 148;
        self.file.word(12, self.end);
        at
    }
}

/// A protection database.
pub(crate) struct ProtectionFile {
    pub(crate) file: File,
    end: u32,
}

impl ProtectionFile {
    /// A database with the entries that every cell has.
    pub(crate) fn new() -> Self {
        let mut file = File::new(65_600);
        file.words(0, &[0, 65_600, 0, 65_600, (-300i32) as u32, 400]);
        let mut made = ProtectionFile { file, end: 65_600 };
        for id in [-204, -205, -101, -102, -203, 32_766] {
            let name = afs_wire::ids::ViceId(id).well_known_name().unwrap_or_default();
            made.entry(name, id, -204, &[]);
        }
        made
    }

    /// Adds a user or group, and returns its address. `members` are those of a group, or the groups of a
    /// user.
    pub(crate) fn entry(&mut self, name: &str, id: i32, owner: i32, members: &[i32]) -> u32 {
        let at = self.slot();
        self.file.words(at, &[if id < 0 { 2 } else { 0 }, id as u32]);
        self.file.words(at + 84, &[owner as u32, owner as u32, 20, 20, members.len() as u32]);
        self.file.put(at + 128, name.as_bytes());
        let (first, more) = members.split_at(members.len().min(10));
        self.list(at + 36, first);
        let mut from = at;
        for piece in more.chunks(39) {
            let next = self.slot();
            self.file.words(next, &[4, id as u32]);
            self.list(next + 36, piece);
            self.file.word(from + 12, next);
            from = next;
        }
        self.file.chain(32_836 + 4 * (id.unsigned_abs() % 8191), at, 76);
        let bucket = super::protection::name_bucket(name.as_bytes()) as u32;
        self.file.chain(72 + 4 * bucket, at, 80);
        at
    }

    fn slot(&mut self) -> u32 {
        let at = self.end;
        self.file.put(at, &[0; 192]);
        self.end += 192;
        self.file.word(12, self.end);
        at
    }

    fn list(&mut self, at: u32, ids: &[i32]) {
        for (n, id) in ids.iter().enumerate() {
            self.file.word(at + 4 * n as u32, *id as u32);
        }
    }
}

/// A redo log: a write, and a commit record if `committed`.
#[cfg(test)]
pub(crate) fn log(address: u32, bytes: &[u8], committed: bool) -> Vec<u8> {
    let mut log = vec![0; 64];
    let mut words = |words: &[u32]| words.iter().for_each(|word| log.extend(word.to_be_bytes()));
    words(&[100, 103, 0, address, bytes.len() as u32]);
    log.extend(bytes);
    if committed {
        [101u32, 0x6500_0000, 10].iter().for_each(|word| log.extend(word.to_be_bytes()));
    }
    log
}
