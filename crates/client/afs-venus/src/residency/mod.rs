//! What stays in the cache of each file and directory: one value, and the rules that give it. Makes no calls.
//!
//! The status cache has the value of each object, as the rules gave it at the last open, request or change of the pins. The eviction
//! of statuses, names and files asks that value, and so do fetch, passthrough and the keeping of closed files.

mod objects;
mod pins;
mod rules;
mod value;

pub(crate) use objects::{Held, PinBounds};
pub(crate) use pins::{Due, Pins};
pub(crate) use rules::{File, Verdict, judge};
pub(crate) use value::Residency;
