//! Random draw of busy client-minutes, merged by time stamp, with opens among their requests.

use crate::model::{Inputs, TraceKind};
use crate::papers::PaperError;
use crate::split_mix::SplitMix;
use crate::trace::{Shape, Trace};

/// What a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A request of the trace: its position in the shape's operations.
    Request(usize),
    /// The first use of a file on a day, which asks for a capability.
    Open,
}

/// A request with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) millisecond: u32,
    pub(super) kind: Kind,
    pub(super) bytes: u32,
}

/// The draws of a trace.
pub(super) struct Draws {
    shape: Shape,
    /// Opens for each request (Table 7).
    opens: f64,
}

impl Draws {
    pub(super) fn of(inputs: Inputs<'_>, kind: TraceKind) -> Result<Self, PaperError> {
        let count = |name| inputs.number(kind.table7(), name, "count_k");
        let (opens, mut requests) = (count("Open")?, 0.0);
        for name in inputs.operations(kind.table7())? {
            requests += if name == "Open" { 0.0 } else { count(name)? };
        }
        Ok(Self { shape: Shape::of(inputs, kind)?, opens: opens / requests })
    }

    /// The requests of `minutes` busy client-minutes, in order of time. The same seed gives the same draw.
    pub(super) fn draw(&self, minutes: u32, seed: u64) -> Vec<Sent> {
        // Opens have numbers of their own, so that the requests are the same without them.
        let mut random = SplitMix::of(!seed);
        let mut all = Vec::new();
        for request in Trace::busy(&self.shape, seed, minutes).flatten() {
            let millisecond = request.millisecond;
            if random.unit() < self.opens {
                all.push(Sent { millisecond, kind: Kind::Open, bytes: 0 });
            }
            all.push(Sent { millisecond, kind: Kind::Request(request.operation), bytes: request.bytes });
        }
        all.sort_by_key(|sent| sent.millisecond);
        all
    }
}
