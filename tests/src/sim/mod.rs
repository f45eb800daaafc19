//! Simulation of a whole cell in one process, from one seed.

pub mod adversary;
pub mod adversary_run;
pub mod cell;
pub mod content;
pub mod editor;
pub mod fault_class;
pub mod faults;
pub mod history;
pub mod identities;
pub mod invariants;
pub mod kernel;
pub mod ledger;
pub mod machine;
pub mod objects;
pub mod outages;
pub mod saver;
pub mod settings;
pub mod user;
