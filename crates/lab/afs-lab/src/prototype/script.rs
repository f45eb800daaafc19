//! The Andrew benchmark's script on the prototype: what its programs ask of the file system, and no more.
//!
//! `cp` reads the status of source and target, `make` that of each source and object, the compiler opens a source and its
//! header, the linker all objects. Programs themselves, temporary files and the search of paths for them are local.

use super::call::{Failure, Refusal};
use super::cell::Connections;
use super::venus::Venus;
use crate::andrew::Phase;
use crate::error::{Context, LabError};
use crate::measure::{FILES, MODULES, Program};
use std::fs::File;
use std::io::{self, Read};
use std::time::Duration;

/// The client's work in a run: a source tree in the file system, and a target beside it.
pub(super) struct Script<'a, C> {
    pub(super) venus: &'a mut Venus<C>,
    pub(super) target: &'a str,
    /// Waiting in the place of compiling a tree.
    pub(super) think: Duration,
}

/// The source tree.
const SOURCE: &str = "usr/source";

/// Stores the source tree; its calls are not of the benchmark.
pub(super) fn make_source(venus: &mut Venus<impl Connections>, program: &Program) -> Result<(), LabError> {
    venus.make_dir(SOURCE)?;
    for module in modules() {
        venus.make_dir(&format!("{SOURCE}/{module}"))?;
        for file in files() {
            let path = program.root().join(&module).join(&file);
            let mut data = File::open(&path).during("open", &path)?;
            venus.store(&format!("{SOURCE}/{module}/{file}"), &mut data)?;
        }
    }
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

impl<C: Connections> Script<'_, C> {
    pub(super) fn phase(&mut self, phase: Phase) -> Result<(), Failure> {
        match phase {
            Phase::MakeDir => self.make_dir(),
            Phase::Copy => self.copy(),
            Phase::ScanDir => self.scan_dir(),
            Phase::ReadAll => self.read_all(),
            Phase::Make => self.make(),
        }
    }

    fn make_dir(&mut self) -> Result<(), Failure> {
        self.venus.make_dir(self.target)?;
        for module in modules() {
            self.venus.status(&format!("{SOURCE}/{module}"))?;
            self.venus.make_dir(&format!("{}/{module}", self.target))?;
        }
        Ok(())
    }

    fn copy(&mut self) -> Result<(), Failure> {
        for module in modules() {
            for file in files() {
                let (from, to) = (format!("{SOURCE}/{module}/{file}"), self.path(&module, &file));
                self.venus.status(&from)?;
                self.is_there(&to)?;
                let mut data = self.venus.open(&from)?;
                self.venus.store(&to, &mut data)?;
            }
        }
        Ok(())
    }

    fn scan_dir(&mut self) -> Result<(), Failure> {
        for module in self.venus.list(self.target)? {
            let directory = format!("{}/{module}", self.target);
            self.venus.status(&directory)?;
            for name in self.venus.list(&directory)? {
                self.venus.status(&format!("{directory}/{name}"))?;
            }
        }
        Ok(())
    }

    fn read_all(&mut self) -> Result<(), Failure> {
        for module in modules() {
            for file in files() {
                let path = self.path(&module, &file);
                read(self.venus.open(&path)?, &path)?;
            }
        }
        Ok(())
    }

    fn make(&mut self) -> Result<(), Failure> {
        for module in modules() {
            for part in parts() {
                self.compile(&module, &part)?;
            }
        }
        let mut objects: Box<dyn Read> = Box::new(io::empty());
        for module in modules() {
            for part in parts() {
                let object = self.path(&module, &format!("{part}.o"));
                self.venus.status(&object)?;
                objects = Box::new(objects.chain(self.venus.open(&object)?));
            }
        }
        let program = format!("{}/program", self.target);
        self.venus.store(&program, &mut objects)?;
        self.venus.set_status(&program)
    }

    fn compile(&mut self, module: &str, part: &str) -> Result<(), Failure> {
        let (source, object) =
            (self.path(module, &format!("{part}.c")), self.path(module, &format!("{part}.o")));
        let header = self.path(module, "module.h");
        self.is_there(&object)?;
        self.venus.status(&source)?;
        let mut data = self.venus.open(&source)?;
        self.venus.status(&header)?;
        read(self.venus.open(&header)?, &header)?;
        std::thread::sleep(self.think / (MODULES * FILES));
        // An object has the length of its source, as in the benchmark with waiting elsewhere.
        self.venus.store(&object, &mut data)
    }

    /// Asks for a status that may be absent.
    fn is_there(&mut self, path: &str) -> Result<bool, Failure> {
        match self.venus.status(path) {
            Ok(()) => Ok(true),
            Err(Failure { why: Refusal::Absent, .. }) => Ok(false),
            Err(other) => Err(other),
        }
    }

    fn path(&self, module: &str, file: &str) -> String {
        format!("{}/{module}/{file}", self.target)
    }
}

/// Reads a whole copy.
fn read(mut file: File, path: &str) -> Result<(), Failure> {
    let read = io::copy(&mut file, &mut io::sink());
    read.map(drop).map_err(|error| Failure { call: "read", path: path.to_owned(), why: error.into() })
}
