//! Changes that are decided under a lease: of all kinds, with modes and times, and of files with several names.

use super::*;

#[test]
fn all_kinds_of_changes_are_decided_and_sent_within_a_second() {
    let cell = cell(3);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move {
        lease_with_model(&client).await;
        let before = client.venus.counters();
        let dir = client.find("dir").await.unwrap().node;
        client.put("dir/small", b"small").await.unwrap();
        client.mkdir("dir/sub").await.unwrap();
        client.put("dir/sub/inner", b"inner").await.unwrap();
        client.venus.symlink(dir, b"link", b"small").await.unwrap();
        client.venus.rename(dir, b"first0", dir, b"renamed").await.unwrap();
        client.venus.rename(dir, b"first1", dir, b"first2").await.unwrap();
        client.venus.rename_new(dir, b"renamed", dir, b"again").await.unwrap();
        let exists = client.venus.rename_new(dir, b"again", dir, b"first2").await.unwrap_err();
        assert_eq!(exists.kind, ErrorKind::Exists);
        client.venus.unlink(dir, b"first3").await.unwrap();
        client.mkdir("dir/gone").await.unwrap();
        client.venus.rmdir(dir, b"gone").await.unwrap();
        let small = client.find("dir/small").await.unwrap();
        let set = SetAttr { mode: Some(afs_wire::ids::Mode(0o600)), ..SetAttr::default() };
        let attr = client.venus.setattr(small.node, None, set).await.unwrap();
        assert_eq!((attr.mode.0, attr.size), (0o600, 5));
        client.put("dir/small", b"rewritten").await.unwrap();
        assert_eq!(client.calls_since(&before), [""; 0]);
        assert_eq!(client.get("dir/small").await.unwrap(), b"rewritten");
        client.env.sleep(Duration::from_millis(1500)).await;
        assert_eq!(client.calls_since(&before), ["ChangeList 1"]);
        assert_eq!(client.venus.counters().leases_lost, 0);
    });
    let other = b.clone();
    cell.on(&b, async move {
        let mut names = other.names("dir").await.unwrap();
        names.sort();
        assert_eq!(names, [".", "..", "again", "first2", "link", "model", "small", "sub"]);
        assert_eq!(other.get("dir/sub/inner").await.unwrap(), b"inner");
        assert_eq!(other.get("dir/small").await.unwrap(), b"rewritten");
        assert_eq!(other.find("dir/small").await.unwrap().attr.mode.0, 0o600);
        assert_eq!(other.get("dir/link").await.map_err(|error| error.kind).unwrap_err(), ErrorKind::Loop);
    });
    let client = a.clone();
    cell.on(&a, async move { assert_eq!(client.venus.counters().leases_lost, 0) });
}

#[test]
fn names_of_files_that_were_made_under_the_lease_are_decided_too() {
    let cell = cell(14);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move {
        lease_with_model(&client).await;
        let before = client.venus.counters();
        client.mkdir("dir/sub").await.unwrap();
        for n in 0..60 {
            let dir = if n % 2 == 0 { "dir" } else { "dir/sub" };
            put_by_link(&client, dir, &format!("object{n}"), format!("data {n}").as_bytes()).await.unwrap();
            let file = client.find(&format!("{dir}/object{n}")).await.unwrap();
            assert_eq!(file.attr.nlink, 1);
            let at = client.find(dir).await.unwrap().node;
            let linked = client.venus.link(file.node, at, format!("other{n}").as_bytes()).await.unwrap();
            assert_eq!((linked.node, linked.attr.nlink), (file.node, 2));
        }
        let [dir, sub] = [client.find("dir").await.unwrap().node, client.find("dir/sub").await.unwrap().node];
        client.venus.rename(dir, b"first0", sub, b"moved").await.unwrap();
        put_all(&client, "dir/sub", 0..1).await;
        client.venus.rename(sub, b"file0", dir, b"first1").await.unwrap();
        client.env.sleep(Duration::from_secs(2)).await;
        for n in 0..60 {
            let dir = if n % 2 == 0 { "dir" } else { "dir/sub" };
            assert_eq!(client.find(&format!("{dir}/object{n}")).await.unwrap().attr.nlink, 2);
        }
        assert_eq!(client.calls_since(&before), ["ChangeList 4"]);
        assert_eq!(client.venus.counters().leases_lost, 0);
        // Several names are in one directory.
        let file = client.find("dir/object0").await.unwrap();
        let refused = client.venus.link(file.node, sub, b"elsewhere").await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::CrossDevice);
        assert_eq!(
            client.venus.rename(dir, b"object0", sub, b"elsewhere").await.unwrap_err().kind,
            ErrorKind::CrossDevice
        );
        assert_eq!(client.venus.link(file.node, dir, b"object2").await.unwrap_err().kind, ErrorKind::Exists);
    });
    let other = b.clone();
    cell.on(&b, async move {
        assert_eq!(
            (other.get("dir/sub/moved").await.unwrap(), other.get("dir/first1").await.unwrap()),
            (b"x".to_vec(), b"data".to_vec())
        );
        for n in 0..60 {
            let dir = if n % 2 == 0 { "dir" } else { "dir/sub" };
            for name in ["object", "other"] {
                let path = format!("{dir}/{name}{n}");
                assert_eq!(other.get(&path).await.unwrap(), format!("data {n}").as_bytes());
                assert_eq!(other.find(&path).await.unwrap().attr.nlink, 2);
            }
        }
        assert_eq!(other.names("dir").await.unwrap().len(), 2 + 3 + 2 + 60);
    });
}

#[test]
fn modes_and_times_are_the_last_that_were_set_also_while_lists_are_on_their_way() {
    let cell = cell(10);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move {
        lease_with_model(&client).await;
        // One list has the directory, what is made in it, and then its mode and time.
        client.mkdir("dir/sub").await.unwrap();
        client.put("dir/sub/inner", b"inner").await.unwrap();
        set(&client, "dir/sub", 0o710, 1000).await;
        client.env.sleep(Duration::from_secs(2)).await;
        assert_eq!(mode_and_time(&client, "dir/sub").await, (0o710, 1000));
        // Of these some are set between a list and its reply.
        for n in 0..400u32 {
            let (mode, time) = (0o600 + n % 0o100, 2000 + n);
            for path in ["dir/sub", "dir/sub/inner"] {
                set(&client, path, mode, time).await;
            }
            client.env.sleep(Duration::from_millis(u64::from(n % 13))).await;
            for path in ["dir/sub", "dir/sub/inner"] {
                assert_eq!(mode_and_time(&client, path).await, (mode, time), "{path}, step {n}");
            }
        }
        assert_eq!(client.venus.counters().leases_lost, 0);
    });
    let other = b.clone();
    cell.on(&b, async move {
        for path in ["dir/sub", "dir/sub/inner"] {
            assert_eq!(mode_and_time(&other, path).await, (0o600 + 399 % 0o100, 2399), "{path}");
        }
    });
}

#[test]
fn each_change_that_is_decided_has_a_later_time_of_change() {
    let cell = cell(37);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move {
        lease_with_model(&client).await;
        let before = client.venus.counters();
        client.mkdir("dir/sub").await.unwrap();
        let [dir, sub] = [client.find("dir").await.unwrap().node, client.find("dir/sub").await.unwrap().node];
        let mut last = [FileTime::default(); 2];
        client.put("dir/file", b"data").await.unwrap();
        let node = client.find("dir/file").await.unwrap().node;
        let mut changed = async |what: &str, of_file: bool| {
            let [file, dir] = [
                client.venus.getattr(node).await.unwrap().ctime,
                client.venus.getattr(dir).await.unwrap().ctime,
            ];
            let is_later = if of_file { file > last[0] } else { dir > last[1] };
            assert!(is_later, "{what}: {file:?} and {dir:?} after {last:?}");
            last = [file, dir];
            client.env.sleep(Duration::from_millis(20)).await;
        };
        changed("creation", true).await;
        let mode = SetAttr { mode: Some(Mode(0o600)), ..SetAttr::default() };
        client.venus.setattr(node, None, mode).await.unwrap();
        changed("chmod", true).await;
        client.venus.link(node, dir, b"second").await.unwrap();
        changed("link", true).await;
        client.venus.unlink(dir, b"second").await.unwrap();
        changed("unlink of one of two names", true).await;
        client.put("dir/file", b"rewritten").await.unwrap();
        changed("write", true).await;
        client.venus.rename(dir, b"first0", dir, b"renamed").await.unwrap();
        changed("rename", false).await;
        client.venus.unlink(dir, b"renamed").await.unwrap();
        changed("unlink", false).await;
        client.venus.rename(dir, b"file", sub, b"file").await.unwrap();
        changed("rename to another directory", true).await;
        client.put("dir/sub/file", b"once more").await.unwrap();
        changed("write", true).await;
        assert_eq!(client.calls_since(&before), [""; 0]);
        client.env.sleep(Duration::from_secs(2)).await;
    });
    // What the server has noted is what both show then.
    let seen = [&a, &b].map(|each| {
        let client = each.clone();
        cell.on(each, async move { client.find("dir/sub/file").await.unwrap().attr.ctime })
    });
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn new_objects_and_data_keep_the_time_of_change_that_was_decided() {
    let cell = cell(39);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    let shown = cell.on(&a, async move {
        lease_with_model(&client).await;
        let before = client.venus.counters();
        client.put("dir/file", b"data").await.unwrap();
        client.put("dir/empty", b"").await.unwrap();
        client.mkdir("dir/sub").await.unwrap();
        client.env.sleep(Duration::from_millis(100)).await;
        client.put("dir/file", b"again").await.unwrap();
        let mut shown = Vec::new();
        for path in ["dir/file", "dir/empty", "dir/sub"] {
            shown.push((path, client.find(path).await.unwrap().attr.ctime));
        }
        assert_eq!(client.calls_since(&before), [""; 0]);
        client.env.sleep(Duration::from_secs(2)).await;
        shown
    });
    for each in [&a, &b] {
        let (client, shown) = (each.clone(), shown.clone());
        cell.on(each, async move {
            for (path, ctime) in shown {
                assert_eq!(client.find(path).await.unwrap().attr.ctime, ctime, "{path}");
            }
        });
    }
}

#[test]
fn directories_and_what_is_linked_keep_the_times_that_were_decided() {
    let cell = cell(38);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    let shown = cell.on(&a, async move {
        lease_with_model(&client).await;
        for sub in ["dir/made", "dir/emptied", "dir/renamed", "dir/linked"] {
            client.mkdir(sub).await.unwrap();
            for file in ["one", "two"] {
                client.put(&format!("{sub}/{file}"), b"data").await.unwrap();
            }
        }
        // The server has these, and others come to them later.
        client.env.sleep(Duration::from_secs(2)).await;
        client.put("dir/made/file", b"data").await.unwrap();
        client.env.sleep(Duration::from_millis(10)).await;
        let [emptied, renamed] = ["dir/emptied", "dir/renamed"].map(|path| client.find(path));
        client.venus.unlink(emptied.await.unwrap().node, b"one").await.unwrap();
        let renamed = renamed.await.unwrap().node;
        client.venus.rename(renamed, b"one", renamed, b"three").await.unwrap();
        let [linked, file] = ["dir/linked", "dir/linked/one"].map(|path| client.find(path));
        client.venus.link(file.await.unwrap().node, linked.await.unwrap().node, b"three").await.unwrap();
        client.env.sleep(Duration::from_millis(10)).await;
        client.mkdir("dir/made/sub").await.unwrap();
        client.invalidated.take();
        let times = times_of(&client).await;
        client.env.sleep(Duration::from_secs(2)).await;
        assert_eq!(client.venus.counters().leases_lost, 0);
        times
    });
    let told = a.invalidated.take();
    assert!(!told.iter().any(|told| told.starts_with("attributes")), "{told:?}");
    for each in [&a, &b] {
        let client = each.clone();
        assert_eq!(cell.on(each, async move { times_of(&client).await }), shown);
    }
}

async fn times_of(client: &Client) -> Vec<(&'static str, FileTime, FileTime)> {
    let mut shown = Vec::new();
    for path in
        ["dir", "dir/made", "dir/made/sub", "dir/emptied", "dir/renamed", "dir/linked", "dir/linked/one"]
    {
        let attr = client.find(path).await.unwrap().attr;
        shown.push((path, attr.mtime, attr.ctime));
    }
    shown
}
