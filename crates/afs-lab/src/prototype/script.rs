//! The Andrew benchmark's script on the prototype: what its programs ask of the file system, and no more.
//!
//! `cp` reads the status of source and target, `make` that of each source and object, the compiler opens a source and its
//! header, the linker all objects. Programs themselves, temporary files and the search of paths for them are local.

use super::cell::Cell;
use super::server::{Refusal, ServerNumber};
use super::venus::Venus;
use crate::andrew::Phase;
use crate::measure::{FILES, MODULES};

/// The client's work in a run: a source tree in the file system, and a target beside it.
pub(super) struct Script<'a> {
    pub(super) cell: &'a mut Cell,
    pub(super) venus: &'a mut Venus,
    pub(super) target: &'a str,
}

/// The source tree, in what the second server has.
const SOURCE: &str = "usr/source";

/// Makes the source tree; its calls are not of the benchmark.
pub(super) fn make_source(cell: &mut Cell, venus: &mut Venus) -> Result<(), Refusal> {
    cell.place("usr", ServerNumber(1))?;
    venus.make_dir(cell, SOURCE)?;
    for module in modules() {
        venus.make_dir(cell, &format!("{SOURCE}/{module}"))?;
        for file in files() {
            venus.store(cell, &format!("{SOURCE}/{module}/{file}"))?;
        }
    }
    cell.take_work();
    Ok(())
}

fn modules() -> impl Iterator<Item = String> {
    (0..MODULES).map(|module| format!("module{module}"))
}

fn parts() -> impl Iterator<Item = String> {
    (0..FILES).map(|file| format!("part{file}"))
}

fn files() -> impl Iterator<Item = String> {
    parts().map(|part| format!("{part}.c")).chain(["module.h".to_owned()])
}

impl Script<'_> {
    pub(super) fn phase(&mut self, phase: Phase) -> Result<(), Refusal> {
        match phase {
            Phase::MakeDir => self.make_dir(),
            Phase::Copy => self.copy(),
            Phase::ScanDir => self.scan_dir(),
            Phase::ReadAll => self.read_all(),
            Phase::Make => self.make(),
        }
    }

    fn make_dir(&mut self) -> Result<(), Refusal> {
        self.venus.make_dir(self.cell, self.target)?;
        for module in modules() {
            self.venus.status(self.cell, &format!("{SOURCE}/{module}"))?;
            self.venus.make_dir(self.cell, &format!("{}/{module}", self.target))?;
        }
        Ok(())
    }

    fn copy(&mut self) -> Result<(), Refusal> {
        for module in modules() {
            for file in files() {
                let (from, to) = (format!("{SOURCE}/{module}/{file}"), self.path(&module, &file));
                self.venus.status(self.cell, &from)?;
                self.is_there(&to)?;
                self.venus.open(self.cell, &from)?;
                self.venus.store(self.cell, &to)?;
            }
        }
        Ok(())
    }

    fn scan_dir(&mut self) -> Result<(), Refusal> {
        for module in self.venus.list(self.cell, self.target)? {
            let directory = format!("{}/{module}", self.target);
            self.venus.status(self.cell, &directory)?;
            for name in self.venus.list(self.cell, &directory)? {
                self.venus.status(self.cell, &format!("{directory}/{name}"))?;
            }
        }
        Ok(())
    }

    fn read_all(&mut self) -> Result<(), Refusal> {
        for module in modules() {
            for file in files() {
                self.venus.open(self.cell, &self.path(&module, &file))?;
            }
        }
        Ok(())
    }

    fn make(&mut self) -> Result<(), Refusal> {
        for module in modules() {
            for part in parts() {
                self.compile(&module, &part)?;
            }
        }
        for module in modules() {
            for part in parts() {
                let object = self.path(&module, &format!("{part}.o"));
                self.venus.status(self.cell, &object)?;
                self.venus.open(self.cell, &object)?;
            }
        }
        let program = format!("{}/program", self.target);
        self.venus.store(self.cell, &program)?;
        self.venus.set_status(self.cell, &program)
    }

    fn compile(&mut self, module: &str, part: &str) -> Result<(), Refusal> {
        let (source, object) =
            (self.path(module, &format!("{part}.c")), self.path(module, &format!("{part}.o")));
        let header = self.path(module, "module.h");
        self.is_there(&object)?;
        for read in [&source, &header] {
            self.venus.status(self.cell, read)?;
            self.venus.open(self.cell, read)?;
        }
        self.venus.store(self.cell, &object)
    }

    /// Asks for a status that may be absent.
    fn is_there(&mut self, path: &str) -> Result<bool, Refusal> {
        match self.venus.status(self.cell, path) {
            Ok(()) => Ok(true),
            Err(Refusal::Absent) => Ok(false),
            Err(other) => Err(other),
        }
    }

    fn path(&self, module: &str, file: &str) -> String {
        format!("{}/{module}/{file}", self.target)
    }
}
