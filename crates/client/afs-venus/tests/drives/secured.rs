//! TLS to drives: the key is the one that the file server told, or nothing is sent.

use super::*;

#[test]
fn a_file_is_read_over_tls_with_the_key_that_the_file_server_told() {
    let scene = Scene::with_tls(1);
    let big = pattern(3 * MIB, 1);
    scene.put("big", big.clone());
    let client = scene.warm(2);
    assert!(scene.get(&client, "big").unwrap() == big);
    assert_eq!(at_drives(&client), 3 * MIB as u64, "{:?}", client.venus.counters().drive_fallbacks);
    assert_eq!(scene.hosts[0].served.counts().refused, [0; 8]);
}

#[test]
fn a_drive_with_another_fingerprint_is_told_no_capability() {
    let scene = Scene::with_tls(2);
    let big = pattern(3 * MIB, 1);
    scene.put("big", big.clone());
    let other = impostor(&scene.cell, true);
    let client = scene.warm(2);
    assert!(scene.get(&client, "big").unwrap() == big);
    assert_eq!(at_drives(&client), 0);
    assert_eq!(fallbacks(&client, "wrong_key"), 1, "{:?}", client.venus.counters().drive_fallbacks);
    assert_eq!(other.served.counts().refused, [0; 8], "nothing was presented there");
}

#[test]
fn a_drive_without_tls_is_no_drive_where_tls_was_told() {
    let scene = Scene::with_tls(3);
    let big = pattern(2 * MIB, 1);
    scene.put("big", big.clone());
    let other = impostor(&scene.cell, false);
    let client = scene.warm(2);
    assert!(scene.get(&client, "big").unwrap() == big);
    assert_eq!((at_drives(&client), other.served.counts().refused), (0, [0; 8]));
    assert!(client.venus.counters().drive_fallbacks.values().sum::<u64>() > 0);
}
