//! Header of the index file, read past redb: which of its two commit slots holds, and where pages are.

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

use crate::medium::Blob;
use crate::page::{Shape, array};
use crate::pages::{Geometry, Link, PAGE_LEN, Pages};

/// The trees of one commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Commit {
    /// Tree of the tables; `None` if there is none.
    pub(crate) tables: Option<Link>,
    /// The same for redb's own tables.
    pub(crate) own: Option<Link>,
    number: u64,
}

/// What the beginning of the file says.
pub(crate) struct PageHeader {
    /// The commit that holds; `None` if no slot is whole.
    pub(crate) commit: Option<Commit>,
    /// What is wrong with the header.
    pub(crate) damage: Option<&'static str>,
}

impl PageHeader {
    /// Reads the header, and the pages of its file. `None` in an empty file, and in one whose creation was interrupted.
    pub(crate) fn read(blob: &Arc<dyn Blob>) -> Option<(Self, Pages)> {
        let mut bytes = [0; LEN];
        blob.read_at(0, &mut bytes).ok()?;
        let said = geometry(&bytes)?;
        let flags = bytes[FLAGS_AT];
        let named = usize::from(flags & PRIMARY != 0);
        let slots = [slot(&bytes, named)?, slot(&bytes, 1 - named)?];
        let (pages, of_pages) = pages(blob, said, slots)?;
        let (commit, of_slots) = choose(&pages, flags & TWO_PHASES != 0, slots);
        let of_beginning = (bytes[..MAGIC.len()] != *MAGIC).then_some("does not begin as an index");
        Some((Self { commit, damage: of_beginning.or(of_slots).or(of_pages) }, pages))
    }
}

/// The commit that redb would take: the named one, or the newer one after a commit in one phase. If its slot is damaged, it is all the same this one if its tree
/// is as it says, else the other.
fn choose(
    pages: &Pages,
    two_phases: bool,
    [named, other]: [Slot; 2],
) -> (Option<Commit>, Option<&'static str>) {
    if named.is_whole {
        let is_newer = !two_phases && other.is_whole && other.commit.number > named.commit.number;
        return (Some(if is_newer { other.commit } else { named.commit }), None);
    }
    if other.is_whole && !two_phases {
        return (Some(other.commit), None);
    }
    let leads = |slot: &Slot| slot.commit.tables.is_some_and(|root| pages.is_whole(root, Shape::default()));
    let left = Some(named).filter(leads).or(Some(other).filter(|other| other.is_whole));
    (left.map(|slot| slot.commit), Some("has a damaged last commit"))
}

/// A place for a commit.
#[derive(Clone, Copy)]
struct Slot {
    commit: Commit,
    is_whole: bool,
}

fn slot(bytes: &[u8; LEN], which: usize) -> Option<Slot> {
    let slot = bytes.get(SLOTS_AT + which * SLOT_LEN..)?.get(..SLOT_LEN)?;
    let sum = u128::from_le_bytes(array(slot, SUM_AT)?);
    let root = |flag: usize, at: usize| {
        let number = u64::from_le_bytes(array(slot, at)?);
        let link = Link { number, sum: u128::from_le_bytes(array(slot, at + 8)?) };
        (*slot.get(flag)? != 0).then_some(link)
    };
    let number = u64::from_le_bytes(array(slot, NUMBER_AT)?);
    let commit = Commit { tables: root(1, TABLES_AT), own: root(2, OWN_AT), number };
    Some(Slot { commit, is_whole: xxh3_128(&slot[..SUM_AT]) == sum && slot[0] == VERSION })
}

/// `None` for lengths that no file has.
fn geometry(bytes: &[u8; LEN]) -> Option<Geometry> {
    let word = |at| array(bytes, at).map(u32::from_le_bytes);
    Some(Geometry { header_pages: word(HEADER_PAGES_AT)?, data_pages: word(DATA_PAGES_AT)? })
}

/// The pages by the header's lengths or, where these lead to nothing, by those that every new file has: they have no checksum.
fn pages(blob: &Arc<dyn Blob>, said: Geometry, slots: [Slot; 2]) -> Option<(Pages, Option<&'static str>)> {
    let of = |geometry| Pages::new(blob.clone(), geometry).ok();
    let (by_header, by_default) = (of(said)?, of(NEW)?);
    let leads = |pages: &Pages| {
        let roots = slots.iter().filter_map(|slot| slot.commit.tables);
        roots.into_iter().any(|root| pages.is_whole(root, Shape::default()))
    };
    Some(match said == NEW || leads(&by_header) || !leads(&by_default) {
        true => (by_header, None),
        false => (by_default, Some("has damaged lengths in its header")),
    })
}

/// A page with a header whose only commit names a tree.
#[cfg(feature = "fuzzing")]
pub(crate) fn encode(tables: Link) -> Vec<u8> {
    let mut page = vec![0; PAGE_LEN as usize];
    page[..MAGIC.len()].copy_from_slice(MAGIC);
    page[FLAGS_AT] = TWO_PHASES;
    page[DATA_PAGES_AT..DATA_PAGES_AT + 4].copy_from_slice(&NEW.data_pages.to_le_bytes());
    let slot = &mut page[SLOTS_AT..SLOTS_AT + SLOT_LEN];
    (slot[0], slot[1]) = (VERSION, 1);
    slot[TABLES_AT..TABLES_AT + 8].copy_from_slice(&tables.number.to_le_bytes());
    slot[TABLES_AT + 8..TABLES_AT + 24].copy_from_slice(&tables.sum.to_le_bytes());
    let sum = xxh3_128(&slot[..SUM_AT]);
    slot[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
    page
}

/// First bytes of every redb file.
pub(crate) const MAGIC: &[u8; 9] = b"redb\x1a\x0a\xa9\x0d\x0a";
/// Lengths that a new file has.
const NEW: Geometry = Geometry { header_pages: 0, data_pages: (4 << 30) / PAGE_LEN as u32 };
const LEN: usize = SLOTS_AT + 2 * SLOT_LEN;
const FLAGS_AT: usize = 9;
const PRIMARY: u8 = 1;
const TWO_PHASES: u8 = 4;
const HEADER_PAGES_AT: usize = 16;
const DATA_PAGES_AT: usize = 20;
const SLOTS_AT: usize = 64;
const SLOT_LEN: usize = 128;
const VERSION: u8 = 3;
const TABLES_AT: usize = 8;
const OWN_AT: usize = 40;
const NUMBER_AT: usize = 104;
const SUM_AT: usize = SLOT_LEN - 16;
