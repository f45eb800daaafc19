//! Time that each request takes at the file manager of each system, by the rules of Table 6.

use super::draw::{Kind, Sent};
use super::measured::{MeasuredCosts, at};
use super::systems::System;
use crate::model::{Inputs, TraceKind, cost};
use crate::papers::PaperError;

/// Clock of the file manager in the paper's replay, in cycles a second.
const CLOCK: f64 = 150e6;

/// Why there is no replay.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A number is not in the papers' data.
    #[error(transparent)]
    Paper(#[from] PaperError),
    /// The measured costs do not have an operation.
    #[error("the measured costs have no {0}")]
    NotMeasured(String),
}

/// Seconds by bytes: one point is a fixed cost.
pub(super) type Points = Vec<(f64, f64)>;

/// Costs of the operations of a trace, in the shape's order, with that of an open at the end; for each system its own, `None` if
/// nothing reaches the file manager.
pub(super) struct Charges(Vec<Vec<Option<Points>>>);

impl Charges {
    pub(super) fn of(
        inputs: Inputs<'_>,
        kind: TraceKind,
        systems: &[System],
        measured: Option<&MeasuredCosts>,
    ) -> Result<Self, ReplayError> {
        let mut names = inputs.operations(kind.table7())?;
        names.retain(|name| *name != "Open");
        names.push("Open");
        let of =
            |name: &str| systems.iter().map(|system| system.points(inputs, kind, name, measured)).collect();
        Ok(Self(names.into_iter().map(of).collect::<Result<_, _>>()?))
    }

    /// Seconds of a request in a system, given by its position; `None` if it does not reach the file manager.
    pub(super) fn seconds(&self, system: usize, sent: &Sent) -> Option<f64> {
        let operation = match sent.kind {
            Kind::Request(operation) => self.0.get(operation)?,
            Kind::Open => self.0.last()?,
        };
        at(operation.get(system)?.as_ref()?, f64::from(sent.bytes))
    }
}

pub(super) fn printed(inputs: Inputs<'_>, rule: &str) -> Result<Points, PaperError> {
    let mut points = match rule {
        "read" | "write" => inputs.sheet("table3b")?.points("bytes", rule),
        "FetchData" | "StoreData" => inputs.sheet("table4b")?.points("bytes", rule),
        _ => vec![(0.0, cost(inputs, rule, 0.0)?)],
    };
    points.iter_mut().for_each(|(_, kcycles)| *kcycles *= 1e3 / CLOCK);
    Ok(points)
}
