//! Reader of a damaged index: the single values and the rows that are still there, past redb, without writing.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;

use crate::damage::Damage;
use crate::error::KvError;
use crate::medium::Blob;
use crate::page::{Shape, array};
use crate::page_header::PageHeader;
use crate::pages::{Link, LostPage, PageVisitor, Pages};

/// What an index says of itself.
#[derive(Default)]
pub(crate) struct IndexWalk {
    /// `None` where no page can be found.
    pages: Option<Pages>,
    /// What is damaged of all but the rows.
    pub(crate) damage: Vec<String>,
    /// Rows of the table `meta`.
    pub(crate) meta: BTreeMap<String, u64>,
    /// Names and numbers of the tables.
    pub(crate) tables: Vec<(String, u8)>,
    /// The tree of the rows. `None` if there is none.
    rows: Option<Link>,
}

/// All rows of a small tree.
#[derive(Default)]
struct All {
    rows: Vec<(Bytes, Bytes)>,
    /// Of damaged pages.
    doubtful: Vec<(Bytes, Bytes)>,
    damage: Vec<String>,
}

/// The first damaged page of a tree.
#[derive(Default)]
struct FirstLost(Option<LostPage>);

/// A table of redb.
struct Definition {
    root: Option<Link>,
    shape: Shape,
}

impl IndexWalk {
    /// Reads everything but the rows. Damage is no error.
    pub(crate) fn open(blob: &Arc<dyn Blob>) -> Self {
        let mut index = Self::default();
        let Some((header, pages)) = PageHeader::read(blob) else {
            index.damage.push("is empty or cut".into());
            return index;
        };
        index.damage.extend(header.damage.map(str::to_owned));
        match header.commit {
            None => index.damage.push("has no commit that can be read".into()),
            Some(commit) => {
                index.read_tables(&pages, commit.tables);
                index.read_own(&pages, commit.own);
            }
        }
        index.pages = Some(pages);
        index
    }

    /// Reads the rows that are there, in the order of their keys.
    pub(crate) fn rows<V: PageVisitor>(&self, visit: &mut V) -> Result<(), V::Error> {
        match (&self.pages, self.rows) {
            (Some(pages), Some(root)) => pages.walk(root, Shape::default(), visit),
            _ => Ok(()),
        }
    }

    /// Reads all rows, in the memory of one page a level, unless something is damaged.
    ///
    /// # Errors
    /// `Corrupt`: what is damaged first.
    pub(crate) fn whole(&self) -> Result<(), KvError> {
        let lost_row = || {
            let mut first = FirstLost::default();
            let _ = self.rows(&mut first);
            first.0.map(|page| page.of_rows())
        };
        match self.damage.first().cloned().or_else(lost_row) {
            Some(what) => Err((&Damage::of("index", what)).into()),
            None => Ok(()),
        }
    }

    /// Whether the tree of the rows is known.
    pub(crate) fn has_rows(&self) -> bool {
        self.rows.is_some()
    }

    fn read_tables(&mut self, pages: &Pages, root: Option<Link>) {
        for (name, table) in self.definitions(pages, root) {
            match name.as_str() {
                "rows" => self.rows = table.root,
                "meta" => self.meta = self.numbers(pages, &table).into_iter().collect(),
                "tables" => {
                    let numbers = self.numbers(pages, &table);
                    let known = |(name, number)| Some((name, u8::try_from(number).ok()?));
                    self.tables = numbers.into_iter().filter_map(known).collect();
                }
                _ => {}
            }
        }
    }

    /// redb's own tables, of which only the damage matters: redb would end the program with it.
    fn read_own(&mut self, pages: &Pages, root: Option<Link>) {
        for (_, table) in self.definitions(pages, root) {
            self.all(pages, table.root, table.shape);
        }
    }

    fn definitions(&mut self, pages: &Pages, root: Option<Link>) -> Vec<(String, Definition)> {
        let all = self.all(pages, root, Shape::default());
        let decode = |(name, row): (Bytes, Bytes)| Some((text(&name)?, Definition::decode(&row)?));
        // A table whose tree is as a damaged page says it is was not harmed there.
        let leads = |(_, table): &(String, Definition)| {
            table.root.is_some_and(|root| pages.is_whole(root, table.shape))
        };
        let doubtful = all.doubtful.into_iter().filter_map(decode).filter(leads);
        let mut found: Vec<(String, Definition)> = all.rows.into_iter().filter_map(decode).collect();
        for (name, table) in doubtful {
            // The first reading of a damaged page is the likeliest.
            if found.iter().all(|(known, _)| *known != name) {
                found.push((name, table));
            }
        }
        found
    }

    /// The rows of a table of names and numbers.
    fn numbers(&mut self, pages: &Pages, table: &Definition) -> Vec<(String, u64)> {
        let decode = |(name, row): (Bytes, Bytes)| Some((text(&name)?, u64::from_le_bytes(array(&row, 0)?)));
        self.all(pages, table.root, table.shape).rows.into_iter().filter_map(decode).collect()
    }

    fn all(&mut self, pages: &Pages, root: Option<Link>, shape: Shape) -> All {
        let mut all = All::default();
        let Ok(()) = root.map_or(Ok(()), |root| pages.walk(root, shape, &mut all));
        self.damage.append(&mut all.damage);
        all
    }
}

impl PageVisitor for All {
    type Error = Infallible;

    fn rows(&mut self, rows: Vec<(Bytes, Bytes)>) -> Result<(), Infallible> {
        self.rows.extend(rows);
        Ok(())
    }

    fn doubtful(&mut self, rows: &mut dyn Iterator<Item = (Bytes, Bytes)>) {
        self.doubtful.extend(rows);
    }

    fn lost(&mut self, page: LostPage) {
        self.damage.push(page.what());
    }
}

impl PageVisitor for FirstLost {
    /// Nothing more is to be read.
    type Error = ();

    fn rows(&mut self, _: Vec<(Bytes, Bytes)>) -> Result<(), ()> {
        if self.0.is_some() { Err(()) } else { Ok(()) }
    }

    fn lost(&mut self, page: LostPage) {
        self.0.get_or_insert(page);
    }
}

impl Definition {
    /// `None` for tables of other kinds, and for damage.
    fn decode(row: &[u8]) -> Option<Self> {
        let number = u64::from_le_bytes(array(row, 10)?);
        let link = Link { number, sum: u128::from_le_bytes(array(row, 18)?) };
        let root = (*row.get(9)? != 0).then_some(link);
        let len = |flag: usize| {
            let len = u32::from_le_bytes(array(row, flag + 1)?);
            Some((*row.get(flag)? != 0).then_some(len as usize))
        };
        let shape = Shape { key: len(42)?, value: len(47)? };
        (*row.first()? == NORMAL).then_some(Self { root, shape })
    }
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

const NORMAL: u8 = 3;
