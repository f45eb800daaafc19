//! Whole cells: in one process, simulated, and against real peers.
//!
//! `live` brings up what a test with real mounts needs, in namespaces, folders and address ranges of its own, and takes it
//! all down again. `sim` is a cell in a world made from a seed, and `model` is what its histories are held against.
//! `hostile` is what a live cell must bear, and `real_input` a program that is built in one.

#![allow(clippy::unwrap_used, reason = "tests may fail")]

pub mod hostile;
pub mod live;
pub mod model;
pub mod real_input;
pub mod sim;
