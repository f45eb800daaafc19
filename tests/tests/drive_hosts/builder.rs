//! A thread that builds a program again and again.

use crate::drive_hosts::program::Program;
use crate::drive_hosts::reader::Rounds;

/// The thread.
pub struct Builder(Rounds);

impl Builder {
    pub fn start(program: &Program) -> Self {
        let program = program.clone();
        Self(Rounds::start(move || {
            program.build();
            Ok(())
        }))
    }

    /// Waits until a build that begins now has ended well.
    pub fn wait_for_round(&self) {
        self.0.wait_for_whole();
    }

    pub fn finish(self) {
        self.0.finish();
    }
}
