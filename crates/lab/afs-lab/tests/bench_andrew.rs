//! Tests of the command line of `andrew-lab bench andrew`, and of the help of all commands.

use crate::home::Home;

#[test]
fn bad_input_is_one_line_and_status_2() {
    let home = Home::new();
    for (line, want) in [
        ("bench andrew --src . --dir nowhere", "nowhere is not a directory; give an existing one with --dir"),
        (
            "bench andrew --src . --dir . --loads 0",
            "invalid value '0' for '--loads <N>': 0 is not in 1..=256; see `andrew-lab bench andrew --help`",
        ),
        ("bench andrew --src . --dir .", "--src: . holds no file; give the source tree of a program"),
    ] {
        assert_eq!(home.refused(2, line), format!("andrew-lab: {want}\n"));
    }
}

#[test]
fn every_command_explains_itself_and_has_a_page() {
    let home = Home::new();
    for command in ["", "costs", "run", "nasd", "peer", "bench", "bench andrew", "bench load"] {
        let text = home.done(&format!("{command} --help"));
        assert!(text.contains("Usage: andrew-lab") && text.contains("--json"), "{command}: {text}");
    }
    home.done("man --out pages");
    let page = std::fs::read_to_string(home.file("pages/andrew-lab-bench-andrew.1")).unwrap();
    let synopsis = page.split(".SH ").find_map(|part| part.strip_prefix("SYNOPSIS")).unwrap();
    assert!(synopsis.lines().filter(|line| !line.is_empty()).count() <= 6, "{synopsis}");
}
