//! Counts of what conversations have reached, by name: a test that reaches nothing finds nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
pub struct Reached(Arc<Mutex<BTreeMap<&'static str, u64>>>);

impl Reached {
    pub fn note(&self, what: &'static str) {
        self.add(what, 1);
    }

    pub fn add(&self, what: &'static str, count: u64) {
        *self.0.lock().unwrap().entry(what).or_default() += count;
    }

    /// # Panics
    /// If something was not reached once.
    #[allow(dead_code, reason = "the fuzz targets reach what they find")]
    #[track_caller]
    pub fn assert_all(&self, wanted: &[&str]) {
        let counts = self.0.lock().unwrap();
        let missing: Vec<_> = wanted.iter().filter(|name| !counts.contains_key(*name)).collect();
        assert!(missing.is_empty(), "never reached: {missing:?}, of {counts:#?}");
    }
}
