//! What asynchronous code needs that no runtime has to give: values handed from task to task, locks that wait,
//! futures joined to futures, and a [`Runner`] for work that blocks.
//!
//! The stores and the calls share it, so that both run on a pool of threads in the product and from one seed in the simulator.

pub mod future;
mod runner;
pub mod sync;

pub use runner::{Inline, Job, Runner};
