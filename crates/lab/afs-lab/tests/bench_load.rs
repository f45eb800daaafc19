//! Tests of `andrew-lab bench load` on a served cell: every part, in every security class.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::home::free_ports;

/// A served cell that only holders of its key may write to; stopped at the end of the test, also after a failure.
struct Cell {
    home: tempfile::TempDir,
    base_port: u16,
}

impl Cell {
    fn start() -> Self {
        let base_port = free_ports();
        let cell = Self { home: tempfile::tempdir().unwrap(), base_port };
        cell.andrew(&format!("serve --rxkad --base-port {base_port} --detach"));
        cell
    }

    fn run(&self, line: &str) -> Output {
        self.command(Path::new(crate::PROGRAM), line).output().unwrap()
    }

    fn command(&self, program: &Path, line: &str) -> Command {
        let mut command = Command::new(program);
        command.args(line.split(' ')).current_dir(self.home.path()).env("HOME", self.home.path());
        for name in ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "ANDREW_TOKENS"] {
            command.env_remove(name);
        }
        command
    }

    /// Files of the cell's first volume.
    fn file_count(&self) -> u64 {
        let volume = serde_json::from_str(&self.andrew("--json vos examine root.cell")).unwrap();
        find(&volume, "files").unwrap_or_else(|| unreachable!("{volume}"))
    }

    fn done(&self, line: &str) -> String {
        said(line, &self.run(line))
    }

    /// Output of the program `andrew`, which is built beside this crate's.
    fn andrew(&self, line: &str) -> String {
        let program = Path::new(crate::PROGRAM).with_file_name("andrew");
        assert!(program.exists(), "{} is not there: `cargo build -p andrew`", program.display());
        said(line, &self.command(&program, line).output().unwrap())
    }

    /// Fid of the top directory of the cell's first volume.
    fn directory(&self) -> String {
        let volumes = self.andrew("vos listvol");
        let line = volumes.lines().find(|line| line.starts_with("root.cell")).unwrap();
        format!("{}.1.1", line.split_whitespace().nth(1).unwrap())
    }

    fn load(&self, directory: &str, more: &str) -> Output {
        let server = format!("--server 127.0.0.1:{} --directory {directory}", self.base_port);
        self.run(&format!("--json bench load {server} {more}"))
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        let program = Path::new(crate::PROGRAM).with_file_name("andrew");
        let _ = self.command(&program, "down").output();
    }
}

/// What a program that must succeed has said.
fn said(line: &str, output: &Output) -> String {
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_load_is_made_in_every_class_and_at_every_level() {
    let cell = Cell::start();
    let directory = cell.directory();
    let all = "--only statuses,creations,connections,store,fetch --statuses 5 --creations 5 --connections 5 --files 2 --bytes 3000001";
    let classes =
        ["rxkad --level clear", "rxkad --level auth", "rxkad", "rxgk --level clear", "rxgk --level auth"];
    for class in classes.into_iter().chain(["rxgk", "rxgk --enctype 18"]) {
        let output = cell.load(&directory, &format!("{all} --security {class}"));
        assert!(output.status.success(), "{class}: {}", String::from_utf8_lossy(&output.stderr));
        let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(said["connections"]["at_once"]["calls"], 5, "{class}: {said}");
        assert!(said["connections"]["first_calls"]["median"].as_f64().unwrap() > 0.0, "{class}: {said}");
        for what in ["stores", "fetches"] {
            assert_eq!(said[what]["runs"].as_array().unwrap().len(), 2, "{class}: {said}");
        }
    }
    // Anonymous callers may only read here: the results above are of authenticated calls.
    let reading = cell.load(&directory, "--only statuses,connections --statuses 5 --connections 5");
    assert!(reading.status.success(), "{reading:?}");
    let said: serde_json::Value = serde_json::from_slice(&reading.stdout).unwrap();
    assert!(said.get("stores").is_none() && said.get("statuses").is_some(), "{said}");
    let refused = cell.load(&directory, "--only store --files 1 --bytes 10");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("CreateFile"), "{refused:?}");
    let no_key = cell.load(&directory, "--security rxgk --enctype 23");
    assert!(String::from_utf8_lossy(&no_key.stderr).contains("no key"), "{no_key:?}");
}

#[test]
fn statuses_are_asked_for_beside_a_listing_of_what_was_kept() {
    let cell = Cell::start();
    let directory = cell.directory();
    let kept = cell.load(&directory, "--only creations --creations 120 --keep --security rxgk");
    assert!(kept.status.success(), "{}", String::from_utf8_lossy(&kept.stderr));
    let listing = format!("--only listing --statuses 5 --in-flight 2 --list {directory},{directory}");
    let output = cell.load(&directory, &listing);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let said = &said["listing"];
    assert_eq!(said["idle"]["calls"], 5, "{said}");
    let listings = said["beside"]["listings"].as_array().unwrap();
    assert_eq!(listings.len(), 2, "{said}");
    for one in listings {
        assert_eq!((&one["entries"], &one["bulk"]["calls"]), (&120.into(), &3.into()), "{said}");
    }
    let nothing = cell.load(&directory, "--only listing");
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("--list"), "{nothing:?}");
    let missing = cell.load(&directory, "--only listing --statuses 1 --list 1.1.1");
    assert!(String::from_utf8_lossy(&missing.stderr).contains("FetchData64"), "{missing:?}");
}

#[test]
fn costs_of_calls_are_measured_and_replayed() {
    let cell = Cell::start();
    let (directory, port) = (cell.directory(), cell.base_port);
    let running: serde_json::Value = serde_json::from_str(&cell.andrew("--json status")).unwrap();
    let pid = find(&running, "pid").unwrap_or_else(|| unreachable!("{running}"));
    let server =
        format!("costs --server 127.0.0.1:{port} --directory {directory} --calls 64 --security rxkad");
    let said = cell.done(&format!("{server} --server-pid {pid} --out costs.json"));
    assert!(said.ends_with("the costs are in costs.json\n"), "{said}");
    let text = std::fs::read_to_string(cell.home.path().join("costs.json")).unwrap();
    let costs: serde_json::Value = serde_json::from_str(&text).unwrap();
    let points = |call: &str| costs["calls"][call].as_array().map_or(0, Vec::len);
    assert_eq!(
        ["FetchStatus", "BulkStatus", "FetchData", "RemoveFile", "read"].map(points),
        [1, 1, 11, 11, 11]
    );
    // The server has a data path and no drive.
    let beside = [
        "GetCapability",
        "GetCapability by requests",
        "store by the data path",
        "GetLayout",
        "GetRoom",
        "Commit",
    ];
    assert_eq!(beside.map(points), [1, 4, 10, 0, 0, 0]);
    let refused = String::from_utf8(
        cell.run(&format!("{server} --server-pid {pid} --mount . --out costs.json")).stderr,
    );
    assert!(refused.unwrap().contains(". is in no mount of Andrew"));
    cell.done(&format!("{server} --server-pid {pid} --only capabilities --onto costs.json --out both.json"));
    let both = std::fs::read_to_string(cell.home.path().join("both.json")).unwrap();
    assert!(both.contains("FetchStatus") && both.matches("calls to 127.0.0.1").count() == 2, "{both}");
    let stored: Vec<f64> = costs["calls"]["StoreData"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| point[1].as_f64().unwrap())
        .collect();
    assert!(stored.iter().all(|cost| *cost > 0.0), "{stored:?}");
    // Nothing is left in the directory: the names can be made again.
    let again = cell.load(&directory, "--only creations --creations 64 --security rxkad");
    assert!(again.status.success(), "{again:?}");
    replayed(&cell);

    let refused = |line: &str| String::from_utf8(cell.run(line).stderr).unwrap();
    assert!(
        refused(&format!("{server} --server-pid 4194305 --out costs.json"))
            .contains("--server-pid: process 4194305")
    );
    let anonymous = server.replace(" --security rxkad", "");
    let denied = refused(&format!("{anonymous} --server-pid {pid} --out costs.json"));
    assert!(denied.contains("costs: 127.0.0.1") && denied.contains("CreateFile"), "{denied}");
    a_signal_ends_it(&cell, &format!("{server} --server-pid {pid}").replace("--calls 64", "--calls 2000"));
}

/// The costs stand in the tables that are computed with them.
fn replayed(cell: &Cell) {
    let home = cell.home.path();
    std::fs::create_dir(home.join("results")).unwrap();
    let line = "results --costs costs.json --only gibson97.table4b gibson97.table7-nfs";
    let Some(_) = crate::lab::reported(home, line) else { return };
    let table7 = std::fs::read_to_string(home.join("results/gibson97.table7-nfs.json")).unwrap();
    let what = format!("calls to 127.0.0.1:{}", cell.base_port);
    assert!(table7.contains("SID_here_pct") && table7.contains(&what), "{table7}");
    assert!(
        std::fs::read_to_string(home.join("results/gibson97.table4b.json")).unwrap().contains("StoreData")
    );
}

/// What was measured before is written, and no file is left.
fn a_signal_ends_it(cell: &Cell, line: &str) {
    let empty = cell.file_count();
    let mut command =
        cell.command(Path::new(crate::PROGRAM), &format!("{line} --only path,calls --out part.json"));
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    while cell.file_count() == empty {
        std::thread::yield_now();
    }
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), &*said), (Some(1), "andrew-lab: costs: interrupted\n"));
    let part = std::fs::read_to_string(cell.home.path().join("part.json")).unwrap();
    assert!(part.contains("; interrupted\"") && !part.contains("BulkStatus"), "{part}");
    assert_eq!(cell.file_count(), empty);
}

/// The first number of that name in a value.
fn find(value: &serde_json::Value, name: &str) -> Option<u64> {
    let within = || {
        value
            .as_array()
            .into_iter()
            .flatten()
            .chain(value.as_object().into_iter().flat_map(|all| all.values()))
    };
    value.get(name).and_then(serde_json::Value::as_u64).or_else(|| within().find_map(|one| find(one, name)))
}
