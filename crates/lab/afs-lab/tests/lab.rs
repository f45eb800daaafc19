//! Tests of `andrew-lab` and of its report: the list, and a quick run of everything.
#![allow(clippy::unwrap_used)]

use crate::home;

use home::Home;
use serde_json::Value;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder of the project's scripts.
fn scripts() -> PathBuf {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders.nth(3).unwrap().join("scripts")
}

/// `scripts/lab-report`, run in a folder; `None` without Python.
fn report(folder: &Path, line: &str) -> Option<Output> {
    let script = scripts().join("lab-report");
    let mut command = Command::new("python3");
    match command.arg(script).args(line.split(' ')).current_dir(folder).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("SKIPPED: no python3");
            None
        }
        output => Some(output.unwrap()),
    }
}

/// What it says when it must succeed.
pub fn reported(folder: &Path, line: &str) -> Option<String> {
    let output = report(folder, line)?;
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_list_has_every_table_with_what_it_lacks() {
    let home = Home::new();
    let Some(list) = reported(home.path(), "--list --json") else { return };
    let list: Value = serde_json::from_str(&list).unwrap();
    let list = list.as_array().unwrap();
    assert_eq!(list.len(), 55);
    for line in list {
        let is_refused = line["state"] == "refused";
        assert_eq!(is_refused, line["reason"].is_string(), "{line}");
    }
    let text = reported(home.path(), "--list citi01-3").unwrap();
    assert!(
        text.starts_with("C. J. Antonelli") && text.contains("citi01-3.fig5") && !text.contains("gibson97")
    );
    refused_by_report(&home, "--list nothing", "lab-report: 'nothing' is no table or figure; ");
    let said = home.refused(2, "run gibson97.table5");
    assert_eq!(
        said,
        "andrew-lab: 'gibson97.table5' is not measured; `scripts/lab-report --list` shows all tables and figures\n"
    );
}

/// One line, and status 2.
fn refused_by_report(home: &Home, line: &str, why: &str) {
    let output = report(home.path(), line).unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{line}: {said}");
    assert!(said.starts_with(why), "{said}");
}

/// They compare what is computed with the papers' own numbers.
#[test]
fn the_reports_own_tests_pass() {
    let mut command = Command::new("python3");
    command.args(["-B", "-m", "unittest", "discover", "-s", "papers", "-t", "."]).current_dir(scripts());
    match command.output() {
        Err(error) if error.kind() == ErrorKind::NotFound => eprintln!("SKIPPED: no python3"),
        output => {
            let output = output.unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

#[test]
fn a_directory_that_is_not_there_is_told_before_the_first_experiment() {
    let home = Home::new();
    assert_eq!(
        home.refused(2, "run all --quick --local nowhere"),
        "andrew-lab: nowhere is not a directory; give an existing one with --local\n"
    );
}

#[test]
fn all_is_run_and_nothing_twice() {
    let home = Home::new();
    let run = |line: &str| -> Value { serde_json::from_str(&home.done(line)).unwrap() };
    let first = run("run all --quick --out results --json");
    let results = first["results"].as_array().unwrap();
    assert_eq!(results.len(), 25);
    for result in results {
        let id = result["id"].as_str().unwrap();
        let text = std::fs::read_to_string(home.file(&format!("results/{id}.json"))).unwrap();
        let file: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&file["id"], &file["quick"]), (&id.into(), &true.into()));
        assert!(file["environment"]["cores"].as_u64().unwrap() > 0, "{id}");
        assert_eq!(result["state"] == "refused", file["lacks"].is_string(), "{id}");
    }
    let again = run("run all --quick --out results --json");
    let states = |run: &Value, state: &str| {
        run["results"].as_array().unwrap().iter().filter(|one| one["state"] == state).count()
    };
    assert!(states(&first, "ran") >= 10, "{first}");
    assert_eq!((states(&again, "ran"), states(&again, "was_done")), (0, states(&first, "ran")));

    if let Some(said) =
        reported(home.path(), "results --quick --json --only gibson97.table2 gibson97.table7-nfs")
    {
        let said: Value = serde_json::from_str(&said).unwrap();
        let computed: Value = serde_json::from_str(
            &std::fs::read_to_string(home.file("results/gibson97.table2.json")).unwrap(),
        )
        .unwrap();
        assert_eq!((&computed["outcome"], &computed["quick"]), (&"ran".into(), &true.into()));
        let page = std::fs::read_to_string(home.file("results/index.html")).unwrap();
        for result in results {
            assert!(page.contains(&format!("<section id={}>", result["id"])), "{result}");
        }
        let plots = ["index.md", "howard88.fig1.svg", "gibson97.fig6.svg"];
        assert!(
            said["results"].as_u64() >= Some(25)
                && plots.iter().all(|name| home.file("results").join(name).exists())
        );
        std::fs::write(home.file("costs"), "{\"what\": \"x\", \"calls\": {\"FetchStatus\": []}}").unwrap();
        refused_by_report(
            &home,
            "results --costs costs",
            "lab-report: --costs: the points of FetchStatus are none",
        );
        refused_by_report(&home, "nowhere", "lab-report: nowhere is not a directory; ");
    }
    volumes(&home);
    prototype(&home);
    let plain = home.refused(2, "run howard88.table6 --mount results");
    assert!(plain.starts_with("andrew-lab: results is in no mount of Andrew; "), "{plain}");
    let plain = home.refused(2, "nasd --mount results");
    assert!(plain.starts_with("andrew-lab: nasd: results is in no mount of Andrew; "), "{plain}");
    let lines = [
        ("--beside nfs=results", "andrew-lab: --beside nfs: results is in a mount of type "),
        ("--beside disk=results --beside disk=results", "andrew-lab: --beside disk: the name is given twice"),
        (
            "--beside disk=results --beside-server nfs=1",
            "andrew-lab: --beside-server nfs: there is no --beside nfs=DIR",
        ),
        ("--beside disk=nowhere", "andrew-lab: nowhere is not a directory"),
    ];
    for (words, why) in lines {
        let said = home.refused(2, &format!("run howard88.table11 {words}"));
        assert!(said.starts_with(why), "{said}");
    }
}

fn sheet(home: &Home, id: &str) -> (Vec<String>, Vec<Vec<Value>>) {
    let text = std::fs::read_to_string(home.file(&format!("results/{id}.json"))).unwrap();
    let sheet = serde_json::from_str::<Value>(&text).unwrap()["sheet"].take();
    (
        serde_json::from_value(sheet["columns"].clone()).unwrap(),
        serde_json::from_value(sheet["rows"].clone()).unwrap(),
    )
}

/// Clients of the prototype ran as processes, and what its server's processes used was told.
fn prototype(home: &Home) {
    let (columns, rows) = sheet(home, "howard88.table3");
    let of = |row: &Vec<Value>, name: &str| {
        row[columns.iter().position(|column| column == name).unwrap()].as_f64().unwrap()
    };
    assert_eq!(rows.iter().map(|row| of(row, "load_units")).collect::<Vec<_>>(), [1.0, 2.0, 5.0]);
    assert!(rows.iter().all(|row| of(row, "overall") > 1.0 && of(row, "testauth") > 0.0), "{rows:?}");
    let (columns, rows) = sheet(home, "howard88.table4");
    assert_eq!(&columns[1..3], ["samples", "cpu_total"]);
    assert!(rows.iter().all(|row| row[2].as_f64().unwrap() > 0.0), "{rows:?}");
    assert_eq!(rows.iter().map(|row| row[1].as_f64().unwrap()).collect::<Vec<_>>(), [1.0, 2.0, 5.0]);
    let (columns, _) = sheet(home, "howard88.fig1");
    assert!(columns.contains(&"ran_prototype".into()), "{columns:?}");
}

/// Operations on volumes were measured in a cell of the lab's own.
fn volumes(home: &Home) {
    let (_, rows) = sheet(home, "howard88.section6");
    // Of the largest volume: operation, megabytes, seconds with their range, megabytes that travelled and were written.
    let row = |operation: &str| {
        let is_it = |row: &&Vec<Value>| row[0].as_str().unwrap().starts_with(operation) && row[1] != 1.0;
        rows.iter().find(is_it).unwrap_or_else(|| panic!("no {operation}: {rows:?}"))
    };
    let travelled = |operation: &str| row(operation)[5].as_f64().unwrap();
    assert_eq!(travelled("clone"), 0.0);
    assert!(travelled("release, to a new site") > 8.0);
    assert!((1.0..3.0).contains(&travelled("release, 1 MB changed")), "{rows:?}");
    assert!(travelled("release, nothing changed") < 0.1, "{rows:?}");
    assert!(travelled("move") > 8.0 && row("move")[7].as_str().unwrap().contains("passes"));
    let quota = rows.iter().find(|row| row[0] == "change of the quota").unwrap();
    assert_eq!(quota[7], "a store of 2 MB beyond it is refused, without a quota taken");
}

#[test]
fn a_peer_says_where_it_listens_and_ends_with_its_input() {
    let home = Home::new();
    let said: Value = serde_json::from_str(&home.done("peer --listen 127.0.0.1:0 --json")).unwrap();
    assert!(said["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{said}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let line = format!("peer --listen {}", taken.local_addr().unwrap());
    assert!(home.refused(1, &line).contains("cannot listen at 127.0.0.1:"));
}
