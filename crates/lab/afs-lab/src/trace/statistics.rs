//! What a generated trace is like: requests by type, bytes, and the distribution of work over client-minutes (Figure 4).

use super::generate::Trace;
use super::prices::Prices;
use super::shape::Shape;
use crate::model::{Inputs, TraceKind};
use crate::papers::{Cell, PaperError, Sheet};
use std::collections::BTreeSet;

/// Limits of the distribution of work, in seconds of the server's processor.
const LIMITS: [f64; 9] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];

/// Statistics of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// Clients with a request.
    pub clients: u32,
    /// Client-minutes with a request.
    pub client_minutes: u64,
    /// Requests by type, in the shape's order.
    pub requests: Vec<(String, u64)>,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Client-minutes whose work is at most each of the limits of [`figure4`].
    within: [u64; 9],
    /// Whole trace by generated minutes.
    pub factor: f64,
}

impl Statistics {
    /// Those of the first minutes of the trace that a seed gives.
    ///
    /// # Errors
    /// A number is not in the data.
    pub fn of(inputs: Inputs<'_>, kind: TraceKind, seed: u64, minutes: u32) -> Result<Self, PaperError> {
        let shape = Shape::of(inputs, kind)?;
        let prices = Prices::of(inputs, &shape)?;
        let names = shape.busy.operations.iter().map(|operation| (operation.name.clone(), 0));
        let factor = f64::from(shape.minutes) / f64::from(minutes.clamp(1, shape.minutes));
        let mut seen = Self {
            clients: 0,
            client_minutes: 0,
            requests: names.collect(),
            read_bytes: 0,
            written_bytes: 0,
            within: [0; 9],
            factor,
        };
        let mut clients = BTreeSet::new();
        for one in Trace::of(&shape, seed, minutes) {
            clients.insert(one.client);
            seen.client_minutes += 1;
            let mut work = 0.0;
            for request in &one.requests {
                work += prices.seconds(request);
                seen.count(request.operation, request.bytes);
            }
            let counts = LIMITS.iter().zip(&mut seen.within).filter(|(limit, _)| work <= **limit);
            counts.for_each(|(_, count)| *count += 1);
        }
        seen.clients = clients.len() as u32;
        Ok(seen)
    }

    fn count(&mut self, operation: usize, bytes: u32) {
        let Some((name, count)) = self.requests.get_mut(operation) else { return };
        *count += 1;
        match name.as_str() {
            "BlockRead" | "FetchData" => self.read_bytes += u64::from(bytes),
            _ => self.written_bytes += u64::from(bytes),
        }
    }

    /// Requests of all types.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.requests.iter().map(|(_, count)| count).sum()
    }

    /// Percent of the requests that are of a type.
    #[must_use]
    pub fn percent(&self, name: &str) -> Option<f64> {
        let (_, count) = self.requests.iter().find(|(other, _)| other == name)?;
        Some(100.0 * *count as f64 / self.all() as f64)
    }

    /// Percent of the client-minutes whose work is at most a limit.
    fn percent_within(&self, limit: usize) -> f64 {
        100.0 * self.within[limit] as f64 / self.client_minutes as f64
    }
}

/// Table 2 of generated traces, with the share of each request type (Tables 3(a), 4(a)). Counts are those of the whole
/// trace: of a part, times [`Statistics::factor`].
#[must_use]
pub fn table2(nfs: &Statistics, afs: &Statistics) -> Sheet {
    let mut sheet = Sheet::new(&[("what", ""), ("nfs", ""), ("afs", "")]);
    let mut row = |what: &str, of: &dyn Fn(&Statistics) -> Option<f64>| {
        sheet.rows.push(vec![what.into(), of(nfs).into(), of(afs).into()]);
    };
    let tenths = |number: f64| Some((number * 10.0).round() / 10.0);
    row("client machines", &|seen| Some(f64::from(seen.clients)));
    row("requests", &|seen| Some((seen.all() as f64 * seen.factor).round()));
    row("read data, GB", &|seen| tenths(seen.read_bytes as f64 * seen.factor / 1e9));
    row("write data, GB", &|seen| tenths(seen.written_bytes as f64 * seen.factor / 1e9));
    row("client-minutes", &|seen| Some((seen.client_minutes as f64 * seen.factor).round()));
    row("busy client-minutes, %", &|seen| tenths(100.0 - seen.percent_within(4)));
    for (name, _) in nfs.requests.iter().chain(&afs.requests) {
        row(&format!("{name}, % of requests"), &|seen| seen.percent(name).and_then(tenths));
    }
    sheet
}

/// Figure 4 of generated traces: percent of the client-minutes whose work is at most a number of seconds.
#[must_use]
pub fn figure4(nfs: &Statistics, afs: &Statistics) -> Sheet {
    let mut sheet = Sheet::new(&[("seconds", "s"), ("nfs", "%"), ("afs", "%")]);
    for (at, limit) in LIMITS.into_iter().enumerate() {
        let percent = |seen: &Statistics| Cell::from((seen.percent_within(at) * 10.0).round() / 10.0);
        sheet.rows.push(vec![limit.into(), percent(nfs), percent(afs)]);
    }
    sheet
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;
    use crate::papers::papers;

    /// A quarter of a trace.
    fn quarter(inputs: Inputs<'_>, kind: TraceKind, seed: u64) -> Statistics {
        let minutes = Shape::of(inputs, kind).unwrap().minutes / 4;
        Statistics::of(inputs, kind, seed, minutes).unwrap()
    }

    fn near(what: &str, got: f64, want: f64, slack: f64) {
        assert!((got - want).abs() <= slack, "{what}: {got}, published {want}");
    }

    #[test]
    fn the_published_distributions_are_reproduced() {
        let papers = papers().unwrap();
        let inputs = Inputs::of(&papers).unwrap();
        for (kind, table, column) in
            [(TraceKind::Nfs, "table3a", "percent"), (TraceKind::Afs, "table4a", "percent")]
        {
            let seen = quarter(inputs, kind, 1);
            let of2 = |what| inputs.number("table2", what, kind.column()).unwrap();
            near("clients", f64::from(seen.clients), of2("client machines"), 1.0);
            near("requests", seen.all() as f64 * seen.factor / of2("requests"), 1.0, 0.05);
            near("read", seen.read_bytes as f64 * seen.factor / 1e9 / of2("read data, GB"), 1.0, 0.08);
            near("written", seen.written_bytes as f64 * seen.factor / 1e9 / of2("write data, GB"), 1.0, 0.08);
            near("busy", 100.0 - seen.percent_within(4), if kind == TraceKind::Nfs { 2.0 } else { 5.0 }, 0.5);
            for (name, _) in &seen.requests {
                let record = if name == "DirRW" { "DirReadWrite" } else { name };
                let published = inputs.number(table, record, column).unwrap();
                near(name, seen.percent(name).unwrap(), published, 1.0);
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_trace_and_another_another() {
        let papers = papers().unwrap();
        let inputs = Inputs::of(&papers).unwrap();
        let shape = Shape::of(inputs, TraceKind::Afs).unwrap();
        let trace = |seed, minutes| Trace::of(&shape, seed, minutes).collect::<Vec<_>>();
        let (long, short) = (trace(5, 200), trace(5, 100));
        assert_eq!(long[..short.len()], short, "fewer minutes are the beginning");
        assert!(long.len() > short.len() && trace(6, 100) != short);
        for one in &long {
            assert!(!one.requests.is_empty() && one.client < shape.clients);
            assert!(one.requests.is_sorted_by_key(|request| request.millisecond));
        }
        assert!(long.is_sorted_by_key(|one| (one.minute, one.client)));
    }
}
