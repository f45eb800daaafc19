//! The AFS client of the Linux kernel, in an emulated machine, on an Andrew cell.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use andrew_tests::live::cell::{CELL, Cell, CellOptions};
use andrew_tests::live::guest::Guest;
use andrew_tests::live::mount::Mount;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::peers::Hosts;
use andrew_tests::live::process::seconds;
use andrew_tests::live::residents::{Home, Residents};
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::wait::until;
use andrew_tests::live::watchdog::Watchdog;

/// Time between two changes beside the emulated machine.
const PAUSE: Duration = Duration::from_millis(200);

/// The name that both replace is always in the directory. The kernel's client looks up a name and then opens its file: if the file is replaced
/// in between, the server has it no more (VNOVNODE), of which the kernel makes ENOENT.
const SCRIPT: &str = r#"
cd /afs
test "$(cat greeting)" = hello
getfattr --only-values -n afs.cell . ; echo
mkdir d; echo one > d/a; echo two >> d/a; test "$(cat d/a)" = "$(printf 'one\ntwo')"
mv d/a d/b; ln d/b d/c; ln -s b d/s; test "$(readlink d/s)" = b; test "$(cat d/s)" = "$(cat d/c)"
chmod 600 d/b; test "$(stat -c %a d/b)" = 600
truncate -s 3 d/b; test "$(cat d/c)" = one
dd if=/dev/urandom of=/tmp/r bs=64k count=128 2>/dev/null
cp /tmp/r d/r; sync; echo 3 > /proc/sys/vm/drop_caches; cmp /tmp/r d/r
for i in $(seq 100); do echo $i > d/many$i; done; test "$(ls d | wc -l)" = 104
df . | tail -1
rm d/many*; rmdir d 2>/dev/null && exit 1
sha256sum < d/r > sum
mkdir shared; echo 'first line, whole' > shared/name
until test -e shared/begun; do sleep 0.1; done
reads() {
    for attempt in 1 2 3; do
        cat shared/name > /dev/null && return
        ls shared | grep -qx name || { echo 'the name is missing'; return 1; }
        gone=$((gone + 1))
    done
    return 1
}
gone=0
for i in $(seq 40); do echo "line $i, whole" > shared/new-$i; mv shared/new-$i shared/name; reads || exit 1; done
touch shared/ended
echo "replaced between look-up and open: $gone"
echo done
"#;

#[test]
fn the_kernels_client_works_in_our_cell() {
    if !all_there(&[Need::Root, Need::Fuse, Need::OpenAfs, Need::Guest]) {
        return;
    }
    let scratch = Scratch::new("kafs");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("kafs", seconds(1500), move || unmount_below(&folder));
    let hosts = Hosts::around_our_cell(scratch.path(), 14, CELL);
    let vice = hosts.address(5);
    let cell = Cell::serve(&hosts.netns("vice"), scratch.path(), &CellOptions::at(&vice, "rlidwka"));
    let ours = Mount::new(&hosts.netns("venus"), CELL, &vice, scratch.path(), "ours", &["--allow-other"]);
    let home = Home { state: cell.state(), cell: CELL, servers: &vice, site: &[], top: ours.path() };
    let residents = Residents::of_served(&hosts.netns("venus"), scratch.path(), &home);
    std::fs::write(ours.path().join("greeting"), "hello\n").unwrap();

    let over = AtomicBool::new(false);
    let (output, counts) = std::thread::scope(|scope| {
        let beside = scope.spawn(|| replaces_beside_the_kernel(&ours.path().join("shared"), &over));
        let _over = SetOnDrop(&over);
        let output = Guest::new(&hosts, CELL, &vice).run(SCRIPT);
        over.store(true, Ordering::Relaxed);
        (output, beside.join())
    });
    // Shown where the test runs with `--nocapture`.
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    eprintln!("replaced and read beside the kernel's client: {counts:?}\n{said}");
    assert!(
        output.status.success() && said.trim().ends_with("done"),
        "{:?}\n{said}\n{complained}",
        output.status
    );
    assert!(said.starts_with(CELL), "{said}");

    let (replaced, read) = counts.unwrap();
    assert!(replaced > 0 && read > 0, "{replaced} {read}");

    residents.check();
    // The names that it wrote are those that Andrew's mount reads.
    let names = andrew_tests::live::files::names(&ours.path().join("d"));
    assert_eq!(names, ["b", "c", "r", "s"]);
    let bytes = std::fs::read(ours.path().join("d/r")).unwrap();
    assert_eq!(bytes.len(), 8 << 20);
    let sum = std::process::Command::new("sha256sum").arg(ours.path().join("d/r")).output().unwrap();
    let written = std::fs::read_to_string(ours.path().join("sum")).unwrap();
    assert_eq!(String::from_utf8_lossy(&sum.stdout)[..64], written[..64]);
}

/// Says that something is over, also where it ended by a panic.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Until the kernel's client has ended or its machine is `over`: replaces the name that it replaces, by rename, and reads it. The name
/// is never missing, and what it names is whole. Returns how often each was done.
fn replaces_beside_the_kernel(shared: &Path, over: &AtomicBool) -> (u32, u32) {
    let (name, ended) = (shared.join("name"), shared.join("ended"));
    let is_over = || over.load(Ordering::Relaxed);
    until("the kernel's directory", seconds(1200), || (name.exists() || is_over()).then_some(()));
    std::fs::write(shared.join("begun"), "").unwrap();
    let (mut replaced, mut read) = (0, 0);
    while !ended.exists() && !is_over() {
        let new = shared.join(format!("ours-{replaced}"));
        std::fs::write(&new, format!("ours {replaced}, whole\n")).unwrap();
        std::fs::rename(&new, &name).unwrap();
        replaced += 1;
        for _ in 0..5 {
            let text = std::fs::read_to_string(&name).unwrap();
            assert!(text.ends_with(", whole\n"), "{text:?}");
            read += 1;
        }
        // The emulated kernel fetches the directory again after each change: without a pause it does nothing else.
        std::thread::sleep(PAUSE);
    }
    (replaced, read)
}
