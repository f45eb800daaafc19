//! Entry point of a fuzz target: the plan of an operation in a journal, which may be of any bytes.
#![allow(clippy::expect_used, reason = "the panic is the finding")]

use crate::plan::Plan;

/// Reads a plan and shows it; whether it is one.
///
/// # Panics
/// If a plan is not what it encodes to.
pub fn plan(bytes: &[u8]) -> bool {
    let Ok(plan) = serde_json::from_slice::<Plan>(bytes) else { return false };
    let _ = (plan.word(), plan.subject(), plan.step(), plan.says());
    let written = serde_json::to_value(&plan).expect("a plan has a form");
    let again: Plan = serde_json::from_value(written.clone()).expect("it is a plan");
    assert_eq!(serde_json::to_value(&again).ok(), Some(written), "a plan is not what it encodes to");
    true
}
