//! Estimated work of requests at a server with disks: Tables 3 and 4, by type and size.

use super::generate::Request;
use super::shape::{Shape, clock, fixed_cost};
use crate::model::{Inputs, TraceKind, line};
use crate::papers::PaperError;

/// Cost of a request type in thousand cycles.
enum Price {
    Fixed(f64),
    BySize(Vec<(f64, f64)>),
}

/// Costs of all types of a trace.
pub(super) struct Prices {
    prices: Vec<Price>,
    clock: f64,
}

impl Prices {
    pub(super) fn of(inputs: Inputs<'_>, shape: &Shape) -> Result<Self, PaperError> {
        let price = |name: &str| match (shape.kind, name) {
            (TraceKind::Nfs, "BlockRead") => {
                Ok(Price::BySize(inputs.sheet("table3b")?.points("bytes", "read")))
            }
            (TraceKind::Nfs, "BlockWrite") => {
                Ok(Price::BySize(inputs.sheet("table3b")?.points("bytes", "write")))
            }
            (TraceKind::Afs, "FetchData" | "StoreData") => {
                Ok(Price::BySize(inputs.sheet("table4b")?.points("bytes", name)))
            }
            _ => fixed_cost(inputs, shape.kind, name).map(Price::Fixed),
        };
        let prices = shape.busy.operations.iter().map(|operation| price(&operation.name));
        Ok(Self { prices: prices.collect::<Result<_, PaperError>>()?, clock: clock(shape.kind) })
    }

    /// Seconds of the server's processor.
    pub(super) fn seconds(&self, request: &Request) -> f64 {
        let kcycles = match self.prices.get(request.operation) {
            Some(Price::Fixed(cost)) => *cost,
            Some(Price::BySize(points)) => line(points, f64::from(request.bytes)).unwrap_or_default(),
            None => 0.0,
        };
        kcycles * 1e3 / self.clock
    }
}
