//! A store that is damaged under a real cell: the start names the command, the check says what is lost, the repair brings the rest back.

use std::fs;
use std::path::Path;

use andrew_tests::live::cell::{Cell, CellOptions, andrew, command, try_command};
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::netns::Netns;
use andrew_tests::live::process::{run_any, seconds};
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::watchdog::Watchdog;

#[test]
fn a_cell_with_a_broken_log_comes_back_with_what_stood_before() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("damaged-stores");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("damaged-stores", seconds(300), move || unmount_below(&folder));
    let netns = Netns::fresh("andrew-damage");
    let options = CellOptions::at("127.0.0.1", "rlidwk");
    let mut cell = Cell::up(&netns, scratch.path(), &options);
    let state = cell.state().to_owned();
    let store = state.join("vicepa/index");
    let names: Vec<String> = (0..30).map(|n| format!("file-{n:02}")).collect();
    for name in &names {
        fs::write(cell.mount().join(name), format!("content of {name}")).unwrap();
    }
    let store_text = store.to_str().unwrap();
    let in_use = try_command(&netns, &["store", "check", store_text]);
    let said = String::from_utf8_lossy(&in_use.stderr).into_owned();
    assert!(!in_use.status.success() && said.contains("andrew down"), "{said}");
    cell.kill();
    drop(cell);

    harm(&store, b"content of file-20");
    let said = fails_to_start(&netns, &state);
    assert!(said.contains(&format!("andrew store repair {store_text}")), "{said}");
    assert!(said.contains("log."), "{said}");
    let checked = try_command(&netns, &["store", "check", "--json", state.to_str().unwrap()]);
    assert_eq!(checked.status.code(), Some(1));
    let reports: serde_json::Value = serde_json::from_slice(&checked.stdout).unwrap();
    let damaged: Vec<_> =
        reports.as_array().unwrap().iter().filter(|report| report["whole"] == false).collect();
    assert_eq!(damaged.len(), 1, "{reports}");
    assert_eq!(damaged[0]["path"], store_text);
    let refused = try_command(&netns, &["store", "repair", store_text]);
    assert_eq!(refused.status.code(), Some(2), "nobody has typed yes");
    let said = command(&netns, &["store", "repair", "--yes", state.to_str().unwrap()]);
    assert!(said.contains("the damaged store is in"), "{said}");
    let _ = command(&netns, &["store", "check", state.to_str().unwrap()]);

    let cell = Cell::up(&netns, scratch.path(), &options);
    for name in &names[..20] {
        assert_eq!(fs::read_to_string(cell.mount().join(name)).unwrap(), format!("content of {name}"));
    }
    assert!(!cell.mount().join(&names[25]).exists(), "it came after what is lost");
    fs::write(cell.mount().join("after"), "it goes on").unwrap();
    cell.stop();
    // What was set aside is as it was.
    let beside = fs::read_dir(store.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(beside.into_iter().any(|name| name.to_string_lossy().starts_with("index.damaged-")));
}

/// Flips a bit of what the log has of a text.
fn harm(store: &Path, text: &[u8]) {
    for name in ["log.a", "log.b"] {
        let mut bytes = fs::read(store.join(name)).unwrap();
        if let Some(at) = bytes.windows(text.len()).position(|part| part == text) {
            bytes[at] ^= 1;
            fs::write(store.join(name), bytes).unwrap();
            return;
        }
    }
    panic!("the text is in no log");
}

fn fails_to_start(netns: &Netns, state: &Path) -> String {
    let mut start = netns.command(andrew());
    start.args(["up", "--no-mount", "--state"]).arg(state);
    let output = run_any(start, seconds(60));
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}
