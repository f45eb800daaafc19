//! A power failure at every operation: what was kept is there whole, and what is there was kept.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::*;

const NUMBER: u64 = 0x2a;

/// A disk that keeps what was flushed, and of the rest what the seed chooses. Fails from one operation on.
#[derive(Default)]
struct FailingDisk {
    left: RefCell<usize>,
    seed: RefCell<u64>,
    /// The present names and contents, those that are durable, and the changes of names in between. Both names of a renamed file change together, as
    /// file systems with a journal do it.
    state: RefCell<State>,
}

#[derive(Default, Clone)]
struct State {
    now: BTreeMap<String, String>,
    durable: BTreeMap<String, String>,
    changed: Vec<Vec<String>>,
    is_data_flushed: bool,
}

impl FailingDisk {
    fn operation(&self) -> io::Result<()> {
        let mut left = self.left.borrow_mut();
        *left = left.checked_sub(1).ok_or_else(|| io::Error::other("the power failed"))?;
        Ok(())
    }

    fn set(&self, name: &str, to: Option<String>) {
        self.set_together([(name, to)]);
    }

    fn set_together<const N: usize>(&self, names: [(&str, Option<String>); N]) {
        let mut state = self.state.borrow_mut();
        state.changed.push(names.iter().map(|(name, _)| (*name).to_owned()).collect());
        for (name, to) in names {
            match to {
                Some(to) => state.now.insert(name.into(), to),
                None => state.now.remove(name),
            };
        }
    }

    fn chance(&self) -> bool {
        let mut seed = self.seed.borrow_mut();
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *seed >> 40 & 1 == 1
    }

    /// What is there after the power failure: of each name the durable or the present state.
    fn after_failure(&self) -> BTreeMap<String, String> {
        let state = self.state.borrow().clone();
        let mut there = state.durable;
        for names in &state.changed {
            if !self.chance() {
                continue;
            }
            for name in names {
                match state.now.get(name) {
                    Some(now) => there.insert(name.clone(), now.clone()),
                    None => there.remove(name),
                };
            }
        }
        if !state.is_data_flushed
            && let Some(data) = there.get_mut(&data_name(NUMBER))
        {
            *data = "torn".into();
        }
        there
    }

    fn begin(there: BTreeMap<String, String>, left: usize, seed: u64) -> FailingDisk {
        let is_data_flushed = there.contains_key(&data_name(NUMBER));
        let state = State { now: there.clone(), durable: there, changed: vec![], is_data_flushed };
        FailingDisk { left: left.into(), seed: seed.into(), state: state.into() }
    }
}

impl UnsavedDisk for FailingDisk {
    fn flush_data(&self, _: u64) -> io::Result<()> {
        self.operation()?;
        self.state.borrow_mut().is_data_flushed = true;
        Ok(())
    }

    fn name_data(&self, number: u64) -> io::Result<()> {
        self.operation()?;
        self.set(&data_name(number), Some("data".into()));
        Ok(())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        // Of a write that fails a part may be there.
        self.set(name, Some("torn".into()));
        self.operation()?;
        self.set(name, Some(String::from_utf8(bytes.to_vec()).unwrap()));
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.operation()?;
        let contents = self.state.borrow().now.get(from).cloned();
        assert!(contents.is_some(), "{from} is not there");
        self.set_together([(to, contents), (from, None)]);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.operation()?;
        self.set(name, None);
        Ok(())
    }

    fn flush_names(&self) -> io::Result<()> {
        self.operation()?;
        let mut state = self.state.borrow_mut();
        state.durable = state.now.clone();
        state.changed.clear();
        Ok(())
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.state.borrow().now.keys().cloned().collect())
    }
}

/// The record that a start after the failure finds; panics if it finds anything that is not sound.
fn found(there: BTreeMap<String, String>) -> Option<String> {
    let disk = FailingDisk::begin(there, usize::MAX, 1);
    let Found { kept, lone } = sweep(&disk).unwrap();
    assert!(lone.is_empty(), "a crash alone loses no record: {lone:?}");
    let now = disk.state.borrow().now.clone();
    assert_eq!(now.len(), 2 * kept.len(), "nothing else is left: {now:?}");
    let record = now.get(&record_name(*kept.first()?)).unwrap();
    assert_eq!(now.get(&data_name(NUMBER)).unwrap(), "data");
    assert_ne!(record, "torn");
    Some(record.clone())
}

/// The operations of keeping, of keeping again with another record, and of dropping; from which one is to choose.
fn history(disk: &FailingDisk) -> (Vec<Option<&'static str>>, bool) {
    type Step<'a> = (Option<&'static str>, &'a dyn Fn() -> io::Result<()>);
    let steps: [Step<'_>; 3] = [
        (Some("first"), &|| keep(disk, NUMBER, b"first")),
        (Some("second"), &|| keep(disk, NUMBER, b"second")),
        (None, &|| drop_kept(disk, NUMBER)),
    ];
    let mut allowed = vec![None];
    for (after, step) in steps {
        if step().is_err() {
            allowed.push(after);
            return (allowed, false);
        }
        allowed = vec![after];
    }
    (allowed, true)
}

#[test]
fn a_power_failure_at_any_operation_leaves_data_with_its_record_or_neither() {
    let mut failed_at = 0;
    loop {
        for seed in 0..60 {
            let disk = FailingDisk::begin(BTreeMap::new(), failed_at, seed * 7919 + 1);
            let (allowed, is_done) = history(&disk);
            let there = disk.after_failure();
            let found = found(there.clone());
            assert!(allowed.contains(&found.as_deref()), "operation {failed_at}, seed {seed}: {there:?}");
            if is_done {
                assert!(failed_at > 18, "the whole history was tried");
                return;
            }
        }
        failed_at += 1;
    }
}

#[test]
fn data_and_records_of_which_one_is_missing_stay_and_are_named() {
    for lost in [data_name(NUMBER), record_name(NUMBER)] {
        let disk = FailingDisk::begin(BTreeMap::new(), usize::MAX, 1);
        keep(&disk, NUMBER, b"first").unwrap();
        disk.remove(&lost).unwrap();
        for _ in 0..2 {
            let Found { kept, lone } = sweep(&disk).unwrap();
            assert!(kept.is_empty() && lone == [NUMBER], "{lost}");
            assert_eq!(disk.names().unwrap().len(), 1, "{lost}");
        }
    }
}
