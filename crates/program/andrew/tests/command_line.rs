//! Tests of the program's command line: exit statuses, one-line errors, output.
#![allow(clippy::unwrap_used)]

use crate::home;

use home::{Home, free_ports};
use serde_json::Value;

/// Invalid input: status 2 and exactly this line, nothing on standard output. `~` is the home directory.
fn refused(line: &str, want: &str) {
    let home = Home::new();
    let output = home.run(line);
    let said = String::from_utf8(output.stderr).unwrap();
    let want = want.replace('~', &home.path().display().to_string());
    assert_eq!(said, format!("andrew: {want}\n"), "andrew {line}");
    assert_eq!(output.status.code(), Some(2), "andrew {line}");
    assert!(output.stdout.is_empty(), "andrew {line}");
}

#[test]
fn bad_input_is_one_line_and_status_2() {
    for (line, want) in [
        ("nonsense", "unrecognized subcommand 'nonsense'; see `andrew --help`"),
        ("up --cell a/b", "invalid value 'a/b' for '--cell <NAME>': "),
        (
            "up --base-port 1",
            "invalid value '1' for '--base-port <PORT>': 1 is not in 1024..=65528; see `andrew up --help`",
        ),
        (
            "up --mount /a --no-mount",
            "the argument '--mount <DIR>' cannot be used with '--no-mount'; see `andrew up --help`",
        ),
        (
            "up --cache-size 3",
            "invalid value '3' for '--cache-size <SIZE>': a cache has at least 16M; see `andrew up --help`",
        ),
        (
            "up --bypass-size 0",
            "invalid value '0' for '--bypass-size <SIZE>': a size is more than 0; \"off\" is no size; see `andrew up --help`",
        ),
        (
            "mount --cell x --servers 127.0.0.1 --bypass-streams 101 d",
            "invalid value '101' for '--bypass-streams <PERCENT>': a share of the cache is 1 to 100 percent, or \"off\"; see `andrew mount --help`",
        ),
        ("fs bypass on", "fs: bypass on needs a file; see `andrew fs bypass --help`"),
        (
            "fs bypass /proc",
            "fs: '/proc' is not in AFS; give a path in a mount (`andrew status` shows those there are)",
        ),
        (
            "fs recover save /proc copy",
            "fs: '/proc' is not in AFS; give a path in a mount (`andrew status` shows those there are)",
        ),
        (
            "fs recover discard 1.2.3",
            "fs: '1.2.3' has no unsaved data of yours; `andrew fs recover list` shows what there is",
        ),
        (
            "up --anyuser x",
            "invalid value 'x' for '--anyuser <RIGHTS>': rights are letters of rlidwka, or read, write, all or none; see `andrew up --help`",
        ),
        (
            "serve --listen 0.0.0.0",
            "clients cannot reach 0.0.0.0; give one address of this host with --listen (`ip -4 addr` shows them)",
        ),
        ("down", "no cell is running on ~/.local/state/andrew; `andrew status` shows what runs"),
        ("umount /proc", "/proc is not a mount of andrew; `andrew status` shows those there are"),
        (
            "mount --cell x --servers 300.1.1.1 d",
            "invalid value '300.1.1.1' for '--servers <HOST>': invalid IPv4 address syntax; see `andrew mount --help`",
        ),
        ("fs listacl no/such", "fs: File 'no/such' doesn't exist; give a path that does"),
        (
            "fs la /proc",
            "fs: '/proc' is not in AFS; give a path in a mount (`andrew status` shows those there are)",
        ),
        (
            "fs sa -dir . -acl u",
            "2 values required by '--acl <NAME RIGHTS> <NAME RIGHTS>...'; only 1 was provided; see `andrew fs setacl --help`",
        ),
        ("fs sa . u rwx", "fs: Illegal rights 'rwx'; give letters of rlidwka, or read, write, all or none"),
        ("fs mkmount a", "fs: mkmount needs a directory and a volume; see `andrew fs mkmount --help`"),
        ("fs sq . many", "fs: 'many' is not a size; a size is a number with k, M, G or T, like 500M"),
        (
            "vos listvol",
            "no cell is running on ~/.local/state/andrew; start one with `andrew up`, or name servers with --servers",
        ),
        (
            "vos examine",
            "the following required arguments were not provided: <NAME>; see `andrew vos examine --help`",
        ),
        (
            "vos --servers 127.0.0.1 create 1 2 3 4",
            "unexpected value '4' for '[SERVER PARTITION NAME]...' found; no more were expected; see `andrew vos create --help`",
        ),
        (
            "vos --servers 127.0.0.1 create nowhere a x",
            "vos: 'nowhere' is not a server; give its IPv4 address or its name",
        ),
        (
            "vos --servers 127.0.0.1 create 127.0.0.1 q9 x",
            "vos: could not interpret partition name 'q9'; give a letter, vicepa or /vicepa",
        ),
        (
            "vos --servers 127.0.0.1 create 127.0.0.1 a 12",
            "vos: Could not create volume 12: '12' cannot be the name of a volume; use 1 to 22 letters, digits, '.', '-' and '_', not only digits, and no .readonly or .backup at the end",
        ),
        (
            "completions tcsh",
            "invalid value 'tcsh' for '<SHELL>' [possible values: bash, elvish, fish, powershell, zsh]; did you mean 'zsh'?",
        ),
    ] {
        if want.ends_with(": ") {
            let home = Home::new();
            let output = home.run(line);
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(said.starts_with(&format!("andrew: {want}")) && said.lines().count() == 1, "{said}");
            assert_eq!(output.status.code(), Some(2));
        } else {
            refused(line, want);
        }
    }
}

#[test]
fn every_command_explains_itself() {
    let home = Home::new();
    let commands = [
        "",
        "up",
        "down",
        "status",
        "serve",
        "mount",
        "umount",
        "fs",
        "vos",
        "man",
        "completions",
        "fs listacl",
        "fs sa",
        "fs lq",
        "fs exa",
        "fs mkm",
        "fs rmm",
        "fs flush",
        "fs whereis",
        "vos create",
        "vos remove",
        "vos examine",
        "vos listvol",
        "vos listvldb",
        "vos partinfo",
        "vos status",
    ];
    for command in commands {
        let output = home.run(&format!("{command} --help"));
        assert!(output.status.success(), "andrew {command} --help");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("Usage: andrew"), "andrew {command} --help:\n{text}");
        assert!(text.contains("--json"), "andrew {command} --help:\n{text}");
    }
}

#[test]
fn status_answers_text_and_json() {
    let home = Home::new();
    let text = String::from_utf8(home.run("status").stdout).unwrap();
    let state = home.path().join(".local/state/andrew");
    assert!(
        text.starts_with(&format!("no cell runs on {}; `andrew up` starts one\n", state.display())),
        "{text}"
    );
    let json: serde_json::Value = serde_json::from_slice(&home.run("status --json").stdout).unwrap();
    assert_eq!(json["cell"], serde_json::Value::Null);
    assert_eq!(json["state"], state.to_str().unwrap());
}

#[test]
fn man_pages_and_completions_come_from_the_definitions() {
    let home = Home::new();
    let output = home.run("man --out pages");
    assert!(output.status.success());
    let count = std::fs::read_dir(home.file("pages")).unwrap().count();
    let said = format!("{count} manual pages are in pages\n");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), said);
    for page in ["andrew.1", "andrew-up.1", "andrew-fs-setacl.1", "andrew-vos-create.1"] {
        let text = std::fs::read_to_string(home.path().join("pages").join(page)).unwrap();
        let synopsis = text.split(".SH ").find_map(|part| part.strip_prefix("SYNOPSIS")).unwrap();
        assert!(synopsis.lines().filter(|line| !line.is_empty()).count() <= 6, "{page}: {synopsis}");
    }
    let mount = std::fs::read_to_string(home.file("pages/andrew-mount.1")).unwrap();
    let synopsis =
        mount.split(".SH ").find_map(|part| part.strip_prefix("SYNOPSIS")).unwrap().replace('\\', "");
    assert!(synopsis.contains("--cell <NAME> <DIR>"), "{synopsis}");
    for shell in ["bash", "zsh", "fish"] {
        let script = home.run(&format!("completions {shell}")).stdout;
        assert!(String::from_utf8(script).unwrap().contains("listvldb"), "{shell}");
    }
}

/// Properties that all JSON output about volumes and snapshots shares: docs/json.md.
#[test]
fn volumes_and_snapshots_are_told_alike_by_every_command() {
    let home = Home::new();
    home.done(&format!("serve --base-port {} --detach", free_ports()));
    home.done("vos create projects -maxquota 123");
    home.done("vos snapshot create projects before");
    home.done("vos backup projects");
    let json = |line: &str| -> Value { serde_json::from_str(&home.done(&format!("{line} --json"))).unwrap() };
    let listed = json("vos listvol")[0]["volumes"].as_array().unwrap().clone();
    let volume = |name: &str| listed.iter().find(|volume| volume["name"] == name).unwrap().clone();
    for (name, kind) in
        [("projects", "read-write"), ("projects.before", "snapshot"), ("projects.backup", "backup")]
    {
        assert_eq!(volume(name)["kind"], kind);
        let examined = json(&format!("vos examine {name}"));
        for same in ["id", "name", "kind", "created", "quota_bytes", "read_write_id"] {
            assert_eq!(examined["volumes"][0][same], volume(name)[same], "{same} of {name}");
        }
    }
    assert_eq!(volume("projects")["quota_bytes"], 123 * 1024);
    assert_eq!(volume("projects")["backed_up"], volume("projects.backup")["created"]);
    let snapshot = json("vos snapshot list projects")[0].clone();
    assert_eq!(
        (&snapshot["name"], &snapshot["id"], &snapshot["created"]),
        (&"before".into(), &volume("projects.before")["id"], &volume("projects.before")["created"])
    );
    let entry = &json("vos listvldb projects.before")[0];
    assert_eq!(
        (&entry["read_write_id"], &entry["sites"][0]["role"]),
        (&snapshot["id"], &"read-write".into())
    );
    assert!(json("vos partinfo")[0]["total_bytes"].as_u64().unwrap() > 1 << 20);
    assert!(json("server list")[0]["partitions"][0]["free_bytes"].is_u64());
    for line in
        ["listvol", "listvldb", "examine projects", "snapshot list projects", "partinfo", "size projects"]
    {
        in_form(&json(&format!("vos {line}")), line);
    }
}

/// Sizes are in bytes, times in RFC 3339, and volume numbers of 0 are null.
fn in_form(value: &Value, line: &str) {
    const TIMES: [&str; 6] = ["created", "copied", "backed_up", "accessed", "updated", "since"];
    match value {
        Value::Array(all) => all.iter().for_each(|one| in_form(one, line)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            assert!(!name.ends_with("_kib") && !name.ends_with("size"), "{line}: {name} has no unit");
            let is_time = |text: &str| text.len() == "2026-11-21T04:01:18Z".len() && text.ends_with('Z');
            if TIMES.contains(&name.as_str()) {
                assert!(value.is_null() || value.as_str().is_some_and(is_time), "{line}: {name}: {value}");
            }
            if name == "id" || name.ends_with("_id") {
                assert!(value.is_null() || value.as_u64() > Some(0), "{line}: {name}: {value}");
            }
            in_form(value, line);
        }),
        _ => {}
    }
}

/// Servers without a mount need no privilege: a cell is created, used as its owner and anonymously, stopped, and is the
/// same cell after the next start.
#[test]
fn a_cell_is_served_and_its_volumes_managed() {
    let home = Home::new();
    let run = |line: &str| home.done(line);
    let base = free_ports();
    let serve = format!("serve --base-port {base} --detach");
    assert!(run(&serve).starts_with("cell andrew.local is served at 127.0.0.1"));
    let again = home.run(&serve);
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8(again.stderr).unwrap().contains("a cell is already running on"));
    assert!(
        run("vos create -server localhost -partition a -name projects -maxquota 123").starts_with("Volume ")
    );
    assert!(run("vos listvol").contains("projects"));
    let stranger = format!("--servers 127.0.0.1 --base-port {base}");
    let seen: serde_json::Value =
        serde_json::from_str(&run(&format!("vos {stranger} --json examine projects"))).unwrap();
    assert_eq!(seen["volumes"][0]["quota_bytes"], 123 * 1024);
    let denied = home.run(&format!("vos {stranger} remove projects"));
    assert_eq!(denied.status.code(), Some(1));
    run("down");
    run(&serve);
    assert!(run("vos listvldb projects").contains("number of sites -> 1"));
    run("vos remove projects");
    assert!(run("vos status").starts_with("No active transactions on 127.0.0.1"));
}
