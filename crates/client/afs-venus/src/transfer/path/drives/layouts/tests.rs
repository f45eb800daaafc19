use afs_wire::ids::{Uniquifier, VnodeId};

use super::*;

/// Where the third window begins.
const WINDOW: u64 = 64 << 20;

fn at(secs: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(secs)
}

fn key(token: u64, vnode: u32, version: u64) -> Key {
    (TokenId(token), Fid::new(VolumeId(7), VnodeId(vnode), Uniquifier(1)), DataVersion(version))
}

fn layout(range: std::ops::Range<u64>, parts: usize) -> Layout {
    Layout::of_holes(range, parts)
}

fn missing(layouts: &mut Layouts, key: Key, from: u64, now: u64) -> Option<u64> {
    match layouts.look_up(key, from, at(now)) {
        Lookup::Missing(range) => Some(range.start),
        _ => None,
    }
}

fn is_here(layouts: &mut Layouts, key: Key, from: u64, now: u64) -> bool {
    matches!(layouts.look_up(key, from, at(now)), Lookup::Here(_))
}

#[test]
fn a_layout_is_asked_for_once_and_serves_one_token_and_version() {
    let (mut layouts, mine) = (Layouts::default(), key(1, 2, 5));
    assert_eq!(missing(&mut layouts, mine, WINDOW + 9, 0), Some(WINDOW));
    assert!(matches!(layouts.look_up(mine, 0, at(0)), Lookup::Asked));
    layouts.answered(mine, Ok(layout(WINDOW..WINDOW + 100, 1)), at(0));
    assert!(is_here(&mut layouts, mine, WINDOW + 99, 59));
    assert_eq!(
        missing(&mut layouts, mine, WINDOW + 100, 59),
        Some(WINDOW + 100),
        "the rest, from where it ended"
    );
    layouts.answered(mine, Err(Refused::File), at(59));
    assert!(!is_here(&mut layouts, key(2, 2, 5), WINDOW + 9, 59), "another token");
    assert!(is_here(&mut layouts, mine, WINDOW + 9, 9_000), "its capabilities end, and not what it says");
}

#[test]
fn another_version_and_a_failure_end_a_layout() {
    let mut layouts = Layouts::default();
    for version in [5, 6] {
        assert_eq!(missing(&mut layouts, key(1, 2, version), 0, 0), Some(0));
        layouts.answered(key(1, 2, version), Ok(layout(0..100, 1)), at(0));
    }
    assert!(is_here(&mut layouts, key(1, 2, 6), 0, 0));
    assert!(!is_here(&mut layouts, key(1, 2, 5), 0, 0));
    layouts.failed(key(1, 2, 6));
    assert_eq!(missing(&mut layouts, key(1, 2, 6), 0, 0), Some(0));
}

#[test]
fn a_volume_that_has_none_is_asked_again_after_minutes() {
    let (mut layouts, first, second) = (Layouts::default(), key(1, 2, 5), key(1, 4, 5));
    assert!(missing(&mut layouts, first, 0, 0).is_some());
    layouts.answered(first, Err(Refused::Volume), at(0));
    assert!(matches!(layouts.look_up(second, 0, at(179)), Lookup::None));
    assert!(missing(&mut layouts, second, 0, 180).is_some());
    // Of a volume that has layouts it is the file.
    layouts.answered(second, Ok(Layout::of_holes(0..9, 1)), at(180));
    assert!(missing(&mut layouts, first, 0, 180).is_some());
    layouts.answered(first, Err(Refused::Volume), at(180));
    assert!(matches!(layouts.look_up(first, 0, at(181)), Lookup::None));
    assert!(missing(&mut layouts, key(1, 6, 5), 0, 181).is_some());
}

#[test]
fn files_and_parts_are_bounded_and_the_oldest_is_given_up() {
    let mut layouts = Layouts::default();
    for vnode in 0..2 * FILES_MAX as u32 {
        assert!(missing(&mut layouts, key(1, vnode, 5), 0, 0).is_some());
        layouts.answered(key(1, vnode, 5), Ok(layout(0..100, 9)), at(0));
    }
    assert!(layouts.files.len() <= FILES_MAX && layouts.parts <= PARTS_MAX);
    assert!(is_here(&mut layouts, key(1, 2 * FILES_MAX as u32 - 1, 5), 0, 0));
    let counted: usize = layouts.files.values().map(File::parts).sum();
    assert_eq!((layouts.parts, layouts.by_use.len()), (counted, layouts.files.len()));
    // Those that are being asked for are not given up.
    let mut layouts = Layouts::default();
    let asked =
        (0..2 * FILES_MAX as u32).filter(|vnode| missing(&mut layouts, key(1, *vnode, 5), 0, 0).is_some());
    assert_eq!(asked.count(), FILES_MAX);
}

#[test]
fn a_file_of_which_any_version_is_known_is_not_asked_for_with_others() {
    let (mut layouts, mine) = (Layouts::default(), key(1, 2, 5));
    assert!(!layouts.is_known(mine));
    assert_eq!(missing(&mut layouts, mine, 0, 0), Some(0));
    let others = [key(1, 2, 4), key(1, 2, 6), key(2, 2, 5), key(1, 3, 5)];
    assert_eq!(others.map(|key| layouts.is_known(key)), [true, true, false, false]);
    assert!(matches!(layouts.look_up(mine, 0, at(0)), Lookup::Asked));
    layouts.answered(mine, Ok(layout(0..100, 1)), at(0));
    assert!(is_here(&mut layouts, mine, 0, 0));
}

#[test]
fn windows_grow_and_are_the_same_wherever_a_read_begins() {
    const MIB: u64 = 1 << 20;
    let windows =
        [0..8, 8..64, 64..512, 512..1024, 1024..1536].map(|range| range.start * MIB..range.end * MIB);
    for window in windows {
        for at in [window.start, window.start + 5, window.end - 1] {
            assert_eq!(super::window(at), window, "{at}");
        }
    }
    assert_eq!(window(u64::MAX).end, u64::MAX);
    let (mut layouts, mine) = (Layouts::default(), key(1, 2, 5));
    let asked = |layouts: &mut Layouts, from| match layouts.look_up(mine, from, at(0)) {
        Lookup::Missing(range) => Some(range),
        _ => None,
    };
    assert_eq!(asked(&mut layouts, 70 * MIB), Some(64 * MIB..512 * MIB));
    layouts.answered(mine, Ok(layout(64 * MIB..100 * MIB, 1)), at(0));
    // It had more parts than one reply has.
    assert_eq!(asked(&mut layouts, 100 * MIB), Some(100 * MIB..512 * MIB));
}
