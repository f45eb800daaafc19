//! A database with a rollback journal, as SQLite's, under leases: what a commit costs, that the locks exclude other machines, and what a crash
//! leaves.

use afs_venus::{HandleId, LockKind, LockRange, OpenFlags};
use bytes::Bytes;

use super::costs::number_of;
use super::*;

const DATABASE: &str = "dir/database";
const JOURNAL: &str = "dir/database-journal";
const PAGE: u64 = 4096;
/// Pages of the database, and those that a commit changes.
const PAGES: u64 = 4;
const CHANGED: u64 = 3;
/// Bytes of the journal before the pages.
const HEADER: u64 = 512;

/// The bytes that SQLite locks.
const PENDING: LockRange = LockRange { first: 0x4000_0000, last: 0x4000_0000 };
const RESERVED: LockRange = LockRange { first: 0x4000_0001, last: 0x4000_0001 };
const SHARED: LockRange = LockRange { first: 0x4000_0002, last: 0x4000_01ff };

fn page(value: u64) -> Vec<u8> {
    value.to_be_bytes().repeat(PAGE as usize / 8)
}

/// A process that has the database open.
struct Connection {
    client: Client,
    file: HandleId,
    owner: u64,
    /// Each page is synced by itself, as of a transaction that memory has no room for.
    spills: bool,
}

impl Connection {
    async fn open(client: &Client, owner: u64) -> Connection {
        let file = client.open(DATABASE, OpenFlags::READ_WRITE).await.unwrap();
        Connection { client: client.clone(), file, owner, spills: false }
    }

    async fn lock(&self, range: LockRange, kind: LockKind) -> Result<()> {
        self.client.venus.lock(self.file, self.owner, 1, range, kind, false).await
    }

    async fn unlock(&self, range: LockRange) -> Result<()> {
        self.client.venus.unlock(self.file, self.owner, range).await
    }

    /// The SHARED lock.
    async fn lock_to_read(&self) -> Result<()> {
        self.lock(PENDING, LockKind::Read).await?;
        let shared = self.lock(SHARED, LockKind::Read).await;
        let freed = self.unlock(PENDING).await;
        shared.and(freed)
    }

    async fn lock_alone(&self) -> Result<()> {
        self.lock(PENDING, LockKind::Write).await?;
        self.lock(SHARED, LockKind::Write).await
    }

    async fn write(&self, first: u64, values: &[u64]) -> Result<()> {
        for (at, value) in values.iter().enumerate() {
            let (position, data) = ((first + at as u64) * PAGE, Bytes::from(page(*value)));
            self.client.venus.write(self.file, position, data).await?;
            if self.spills {
                self.client.venus.fsync(self.file).await?;
            }
        }
        self.client.venus.fsync(self.file).await
    }

    async fn read(&self, at: u64) -> Result<u64> {
        let read = self.client.venus.read(self.file, at * PAGE, PAGE as usize).await?;
        let value = u64::from_be_bytes(read[..8].try_into().unwrap());
        assert_eq!(read[..], page(value)[..], "a page is written as a whole");
        Ok(value)
    }

    /// Adds one to each page that a commit changes. Returns the new value.
    async fn commit(&self) -> Result<u64> {
        // Boxed, as others: a test's thread has little stack.
        let done = Box::pin(self.try_commit()).await;
        let freed = self.unlock(LockRange::WHOLE).await;
        done.and_then(|value| freed.map(|()| value))
    }

    async fn try_commit(&self) -> Result<u64> {
        self.lock_to_read().await?;
        Box::pin(self.roll_back()).await?;
        self.lock(RESERVED, LockKind::Write).await?;
        let before = self.read(0).await?;
        let venus = &self.client.venus;
        let (dir, name) = self.client.split(JOURNAL).await?;
        let flags = OpenFlags { truncate: true, ..OpenFlags::READ_WRITE };
        let journal = venus.create(dir, name, 0o644, flags).await?.1.handle;
        let pages = [vec![0; HEADER as usize], page(before).repeat(CHANGED as usize)].concat();
        venus.write(journal, 0, Bytes::from(pages)).await?;
        venus.fsync(journal).await?;
        venus.fsync_directory(dir).await?;
        venus.write(journal, 0, Bytes::copy_from_slice(&CHANGED.to_be_bytes())).await?;
        venus.fsync(journal).await?;
        self.lock_alone().await?;
        self.write(0, &[before + 1; CHANGED as usize]).await?;
        venus.flush(journal, self.owner).await?;
        venus.release(journal).await?;
        venus.unlink(dir, name).await?;
        self.lock(SHARED, LockKind::Read).await?;
        self.unlock(LockRange { first: PENDING.first, last: RESERVED.last }).await?;
        Ok(before + 1)
    }

    /// Undoes what another process has begun and not committed, if there is such a thing.
    async fn roll_back(&self) -> Result<()> {
        let journal = match self.client.get(JOURNAL).await {
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(()),
            journal => journal?,
        };
        self.lock_alone().await?;
        let count = journal.get(..8).map_or(0, |count| u64::from_be_bytes(count.try_into().unwrap()));
        if count > 0 {
            let pages = &journal[HEADER as usize..];
            assert_eq!(pages.len() as u64, CHANGED * PAGE, "a journal that counts has its pages");
            let values = pages.chunks(PAGE as usize);
            let values: Vec<u64> =
                values.map(|page| u64::from_be_bytes(page[..8].try_into().unwrap())).collect();
            self.write(0, &values).await?;
        }
        let (dir, name) = self.client.split(JOURNAL).await?;
        self.client.venus.unlink(dir, name).await?;
        self.lock(SHARED, LockKind::Read).await
    }

    /// The value of all pages that commits change, after a recovery.
    async fn check(&self) -> Result<u64> {
        let checked = Box::pin(self.try_check()).await;
        self.unlock(LockRange::WHOLE).await?;
        checked
    }

    async fn try_check(&self) -> Result<u64> {
        self.lock_to_read().await?;
        Box::pin(self.roll_back()).await?;
        let value = self.read(0).await?;
        for at in 1..CHANGED {
            assert_eq!(self.read(at).await?, value, "half of a commit");
        }
        Ok(value)
    }

    /// The result of a try, unless another machine's lock was in the way: then a pause.
    async fn unless_locked<T>(&self, tried: Result<T>) -> Option<T> {
        match tried {
            Ok(done) => return Some(done),
            Err(error) => assert_eq!(error.kind, ErrorKind::WouldBlock, "{error}"),
        }
        self.client.env.sleep(Duration::from_millis(700)).await;
        None
    }

    async fn commit_at_last(&self) -> u64 {
        loop {
            let tried = self.commit().await;
            if let Some(value) = self.unless_locked(tried).await {
                return value;
            }
        }
    }

    async fn check_at_last(&self) -> u64 {
        loop {
            let tried = self.check().await;
            if let Some(value) = self.unless_locked(tried).await {
                return value;
            }
        }
    }

    async fn close(self) {
        self.client.venus.flush(self.file, self.owner).await.unwrap();
        self.client.venus.release(self.file).await.unwrap();
    }
}

/// A directory with an empty database, which this machine has leased.
fn with_database(cell: &Cell, client: &Client, made_by: &Client) {
    let other = made_by.clone();
    cell.on(made_by, async move {
        other.mkdir("dir").await.unwrap();
        other.put(DATABASE, &page(0).repeat(PAGES as usize)).await.unwrap();
        other.env.sleep(Duration::from_secs(2)).await;
    });
    let client = client.clone();
    cell.on(&client.clone(), async move { lease_again(&client, "other").await });
}

/// Changes the directory until the machine has its lease, and so often that the next one is not long in coming.
async fn lease_again(client: &Client, name: &str) {
    for n in 0..100 {
        client.put(&format!("dir/{name}{n}"), b"x").await.unwrap();
    }
    assert_eq!(client.venus.activity().leases.held, 1);
}

/// Calls of eight commits, after two.
fn calls_of_eight(cell: &Cell, a: &Client) -> Vec<String> {
    let client = a.clone();
    cell.on(a, async move {
        let database = Connection::open(&client, 1).await;
        for n in 1..=2 {
            assert_eq!(database.commit().await.unwrap(), n);
        }
        let before = client.venus.counters();
        for n in 3..=10 {
            assert_eq!(database.commit().await.unwrap(), n);
        }
        let calls = client.calls_since(&before);
        database.close().await;
        calls
    })
}

#[test]
fn a_commit_under_a_lease_costs_three_calls() {
    for is_new in [true, false] {
        let cell = cell(301);
        let (a, b) = (cell.client(1), cell.client(2));
        with_database(&cell, &a, if is_new { &a } else { &b });
        let mut calls = calls_of_eight(&cell, &a);
        // One for the journals of many commits.
        calls.retain(|call| !call.starts_with("LendMore"));
        assert!(number_of(&calls) <= 24, "{calls:?}");
        let other = b.clone();
        cell.on(&b, async move { assert_eq!(Connection::open(&other, 2).await.check().await.unwrap(), 10) });
    }
}

#[test]
fn a_lock_that_is_kept_goes_to_another_machine_at_once_and_one_that_is_held_does_not() {
    let cell = cell(302);
    let (a, b) = (cell.client(1), cell.client(2));
    with_database(&cell, &a, &b);
    let (one, two) = (a.clone(), b.clone());
    cell.on(&a, async move {
        let (here, there) = (Connection::open(&one, 1).await, Connection::open(&two, 2).await);
        // The other machine has the file open: from here on it asks for nothing in the directory.
        lease_again(&one, "more").await;
        for value in [1, 2] {
            assert_eq!(here.commit().await.unwrap(), value);
        }
        assert_eq!(one.venus.activity().leases.held, 1);
        let recalled = one.venus.counters().leases_recalled;
        there.lock_to_read().await.unwrap();
        assert_eq!(one.venus.counters().leases_recalled, recalled + 1);
        assert_eq!(there.read(0).await.unwrap(), 2);
        // A lock to read that was taken where one to write was kept is in the way of no reader.
        there.unlock(LockRange::WHOLE).await.unwrap();
        lease_again(&one, "again").await;
        assert_eq!(here.commit().await.unwrap(), 3);
        let calls = one.venus.counters();
        here.lock_to_read().await.unwrap();
        assert_eq!(one.calls_since(&calls), [""; 0], "the lock was kept");
        there.lock_to_read().await.unwrap();
        assert_eq!(there.lock(RESERVED, LockKind::Write).await.unwrap_err().kind, ErrorKind::WouldBlock);
        here.unlock(LockRange::WHOLE).await.unwrap();
        there.lock(RESERVED, LockKind::Write).await.unwrap();
        assert_eq!(here.lock_to_read().await.unwrap_err().kind, ErrorKind::WouldBlock);
        there.unlock(LockRange::WHOLE).await.unwrap();
    });
}

#[test]
fn a_query_for_a_lock_that_another_machine_keeps_finds_none() {
    let cell = cell(303);
    let (a, b) = (cell.client(1), cell.client(2));
    with_database(&cell, &a, &b);
    let (one, two) = (a.clone(), b.clone());
    cell.on(&a, async move {
        let (here, there) = (Connection::open(&one, 1).await, Connection::open(&two, 2).await);
        lease_again(&one, "more").await;
        here.commit().await.unwrap();
        let ask = |of: &Connection| {
            let (venus, file, owner) = (of.client.venus.clone(), of.file, of.owner);
            async move { venus.test_lock(file, owner, RESERVED, LockKind::Write).await.unwrap() }
        };
        assert_eq!((ask(&here).await, ask(&there).await), (None, None));
        here.lock(RESERVED, LockKind::Write).await.unwrap();
        assert_eq!(ask(&there).await.map(|holder| holder.kind), Some(LockKind::Write));
    });
}

#[test]
fn a_kept_lock_ends_with_the_close_of_its_file() {
    let cell = cell(304);
    let (a, b) = (cell.client(1), cell.client(2));
    with_database(&cell, &a, &b);
    let client = a.clone();
    cell.on(&a, async move {
        let database = Connection::open(&client, 1).await;
        for _ in 0..3 {
            database.commit().await.unwrap();
        }
        let released = client.calls("ReleaseLock");
        database.close().await;
        assert_eq!(client.calls("ReleaseLock"), released + 1);
        assert_eq!(client.venus.activity().leases.held, 1);
    });
    cell.sim.crash(a.node);
    let other = b.clone();
    cell.on(&b, async move {
        let (database, begun) = (Connection::open(&other, 2).await, other.env.now());
        assert!(matches!(database.check().await.unwrap(), 2 | 3));
        assert!(other.env.now().saturating_since(begun) < Duration::from_secs(10));
    });
}

/// The rights of a user are checked by the server, also where another user's lock is kept.
#[test]
fn a_lock_that_was_taken_for_one_user_is_not_given_to_another_without_the_server() {
    let cell = cell(305);
    let (a, b) = (cell.client(1), cell.client(2));
    with_database(&cell, &a, &b);
    let client = a.clone();
    cell.on(&a, async move {
        let other = client.user(1000);
        other.log_in(1000, "anna").await;
        let [mine, theirs] = [Connection::open(&client, 1).await, Connection::open(&other, 2).await];
        for _ in 0..3 {
            mine.commit().await.unwrap();
        }
        for (connection, calls) in [(&mine, 0), (&theirs, 1), (&theirs, 0), (&mine, 1)] {
            let before = client.venus.counters();
            connection.lock(RESERVED, LockKind::Write).await.unwrap();
            connection.unlock(LockRange::WHOLE).await.unwrap();
            let made = client.calls_since(&before);
            let asked = made.iter().filter(|call| call.contains("Lock ")).count();
            assert_eq!(asked, calls, "{made:?}");
        }
    });
}

#[test]
fn a_machine_that_was_cut_off_relies_on_no_lock_that_it_kept() {
    let cell = cell(306);
    let (a, b) = (cell.client(1), cell.client(2));
    with_database(&cell, &a, &b);
    let (one, two) = (a.clone(), b.clone());
    let (here, there) = cell.on(&a, async move {
        let (here, there) = (Connection::open(&one, 1).await, Connection::open(&two, 2).await);
        lease_again(&one, "more").await;
        for _ in 0..6 {
            here.commit_at_last().await;
        }
        (here, there)
    });
    let world = cell.sim.world();
    world.cut(a.node, cell.server);
    world.cut(cell.server, a.node);
    let (there, value) = cell.on(&b, async move {
        let value = there.commit_at_last().await;
        (there, value)
    });
    assert!(matches!(value, 6 | 7), "the last removal of the journal may not have been sent: {value}");
    let here = cell.on(&a, async move {
        assert!(here.lock(RESERVED, LockKind::Write).await.is_err(), "another machine has had it");
        here
    });
    world.mend(a.node, cell.server);
    world.mend(cell.server, a.node);
    cell.on(&a, async move {
        here.client.env.sleep(Duration::from_secs(10)).await;
        there.lock_to_read().await.unwrap();
        there.lock(RESERVED, LockKind::Write).await.unwrap();
        assert_eq!(here.lock(RESERVED, LockKind::Write).await.unwrap_err().kind, ErrorKind::WouldBlock);
        there.unlock(LockRange::WHOLE).await.unwrap();
        let next = here.commit_at_last().await;
        assert_eq!(next, value + 1);
        assert_eq!(there.check_at_last().await, next);
    });
}

/// Commits twelve times, with pauses.
async fn works(client: Client, owner: u64, seed: u64) -> Connection {
    let database = Connection::open(&client, owner).await;
    for n in 0..12 {
        database.commit_at_last().await;
        if n % 4 == seed % 4 {
            client.env.sleep(Duration::from_millis(300 * owner + 40 * seed)).await;
        }
    }
    database
}

/// One machine after the other adds to the database.
#[test]
fn machines_that_commit_by_turns_lose_nothing() {
    for seed in 0..6 {
        let cell = cell(310 + seed);
        let (a, b) = (cell.client(1), cell.client(2));
        with_database(&cell, &a, &b);
        let (one, two) = (a.clone(), b.clone());
        cell.on(&a, async move {
            let (here, there) =
                afs_rpc::future::join(Box::pin(works(one.clone(), 1, seed)), Box::pin(works(two, 2, seed)))
                    .await;
            assert_eq!(there.check_at_last().await, 24, "seed {seed}");
            assert_eq!(here.check_at_last().await, 24, "seed {seed}");
            assert_eq!(one.venus.counters().leases_lost, 0);
        });
    }
}

/// The machine dies at any moment of its commits, and in every second world the server loses its power too: what was committed is there,
/// except the last commit, whose end is the removal of the journal, which may not have been sent.
#[test]
fn a_crash_at_any_moment_leaves_a_database_that_its_journal_mends() {
    for seed in 0..16 {
        let cell = cell(330 + seed);
        let (a, b) = (cell.client(1), cell.client(2));
        with_database(&cell, &a, &b);
        let done = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
        let (client, noted) = (a.clone(), done.clone());
        cell.on(&a, async move {
            let database = Connection { spills: true, ..Connection::open(&client, 1).await };
            let commits = async {
                loop {
                    let value = database.commit().await.unwrap();
                    noted.store(value, std::sync::atomic::Ordering::SeqCst);
                }
            };
            client.env.timeout(Duration::from_millis(41 * seed + 11), commits).await.ok();
        });
        cell.sim.crash(a.node);
        if seed % 2 == 1 {
            cell.restart_server();
        }
        let committed = done.load(std::sync::atomic::Ordering::SeqCst);
        let other = b.clone();
        cell.on(&b, async move {
            let database = loop {
                match other.open(DATABASE, OpenFlags::READ_WRITE).await {
                    Ok(file) => break Connection { client: other.clone(), file, owner: 2, spills: true },
                    Err(error) => assert_eq!(error.kind, ErrorKind::ServerUnreachable, "{error}"),
                }
                other.env.sleep(Duration::from_secs(1)).await;
            };
            let value = database.check_at_last().await;
            assert!((committed.saturating_sub(1)..=committed + 1).contains(&value), "{value}, {committed}");
        });
    }
}
