//! Test kit for whole cells: in one process, simulated, and with real peers.
//!
//! `live` starts what a test with real mounts needs, in namespaces, folders and address ranges of its own, and removes
//! it again. `sim` is a cell in a simulated world from one seed, and `model` has the models with which its histories
//! are compared. `hostile` has hostile conditions for a live cell, and `real_input` a program that is built in one.

#![allow(clippy::unwrap_used, reason = "tests may fail")]

pub mod hostile;
pub mod live;
pub mod model;
pub mod real_input;
pub mod sim;
pub mod sources;
