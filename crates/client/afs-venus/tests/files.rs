//! Files and directories as applications use them.

use crate::common;

use std::sync::Arc;
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_venus::{Kind, MemoryCache, NewTime, NodeId, OpenFlags, RootKind, SetAttr};
use afs_wire::ids::{FileTime, UnixSeconds};
use bytes::Bytes;
use common::fakes::{Fakes, Image, RW};
use common::{Cell, pattern};

#[test]
fn a_file_larger_than_the_cache_is_read_and_written() {
    let cell = Cell::new(1);
    cell.set_limits(|limits| limits.chunk_bytes = 64 << 10);
    let data = pattern(3 << 20, 1);
    let a = cell.client_with(1, Arc::new(MemoryCache::new(1 << 20)));
    let (one, sent) = (a.clone(), data.clone());
    cell.on(&a, async move {
        one.put("file", &sent).await.unwrap();
        assert!(one.get("file").await.unwrap() == sent);
    });
    let b = cell.client_with(2, Arc::new(MemoryCache::new(1 << 20)));
    let (two, sent) = (b.clone(), data.clone());
    cell.on(&b, async move {
        assert!(two.get("file").await.unwrap() == sent);
        let handle = two.open("file", OpenFlags::READ_WRITE).await.unwrap();
        for pos in [2_500_000u64, 100, 1_700_000] {
            let piece = two.venus.read(handle, pos, 1000).await.unwrap();
            assert_eq!(piece, sent[pos as usize..pos as usize + 1000]);
        }
        two.venus.write(handle, 2_000_000, Bytes::from_static(b"in the middle")).await.unwrap();
        two.venus.flush(handle, 0).await.unwrap();
    });
    let one = a.clone();
    let got = cell.on(&a, async move { one.get("file").await.unwrap() });
    assert_eq!(&got[2_000_000..2_000_013], b"in the middle");
    assert!(got[..2_000_000] == data[..2_000_000] && got[2_000_013..] == data[2_000_013..]);
}

#[test]
fn truncating_and_growing() {
    let cell = Cell::new(2);
    let (a, b) = (cell.client(1), cell.client(2));
    let check = |want: Vec<u8>| {
        let two = b.clone();
        assert_eq!(cell.on(&b, async move { two.get("file").await.unwrap() }), want);
    };
    let one = a.clone();
    cell.on(&a, async move {
        one.put("file", b"0123456789").await.unwrap();
        let node = one.find("file").await.unwrap().node;
        let cut = |size| SetAttr { size: Some(size), ..SetAttr::default() };
        assert_eq!(one.venus.setattr(node, None, cut(4)).await.unwrap().size, 4);
    });
    check(b"0123".to_vec());
    let one = a.clone();
    cell.on(&a, async move {
        let node = one.find("file").await.unwrap().node;
        let grow = SetAttr { size: Some(8), ..SetAttr::default() };
        assert_eq!(one.venus.setattr(node, None, grow).await.unwrap().size, 8);
    });
    check(b"0123\0\0\0\0".to_vec());
    let one = a.clone();
    cell.on(&a, async move {
        let handle = one.open_new("file").await.unwrap();
        one.venus.flush(handle, 0).await.unwrap();
        one.venus.release(handle).await.unwrap();
    });
    check(Vec::new());
    let one = a.clone();
    cell.on(&a, async move {
        one.put("file", b"0123456789").await.unwrap();
        let handle = one.open("file", OpenFlags::READ_WRITE).await.unwrap();
        let node = one.find("file").await.unwrap().node;
        let cut = SetAttr { size: Some(2), ..SetAttr::default() };
        one.venus.setattr(node, Some(handle), cut).await.unwrap();
        one.venus.write(handle, 5, Bytes::from_static(b"x")).await.unwrap();
        one.venus.flush(handle, 0).await.unwrap();
        one.venus.release(handle).await.unwrap();
    });
    check(b"01\0\0\0x".to_vec());
}

#[test]
fn a_removed_file_lives_on_in_its_handles() {
    let cell = Cell::new(3);
    let (a, b) = (cell.client(1), cell.client(2));
    let (one, two) = (a.clone(), b.clone());
    cell.on(&a, async move {
        one.put("file", b"still here").await.unwrap();
        let handle = one.open("file", OpenFlags::READ_WRITE).await.unwrap();
        let node = one.find("file").await.unwrap().node;
        one.venus.unlink(NodeId::ROOT, b"file").await.unwrap();
        assert_eq!(one.find("file").await.unwrap_err().errno(), 2);
        assert_eq!(one.read_all(handle).await.unwrap(), b"still here");
        one.venus.write(handle, 0, Bytes::from_static(b"STILL")).await.unwrap();
        assert_eq!(one.read_all(handle).await.unwrap(), b"STILL here");
        assert_eq!(one.venus.getattr(node).await.unwrap().nlink, 0);
        one.venus.flush(handle, 0).await.unwrap();
        one.venus.release(handle).await.unwrap();
        assert_eq!(one.names("").await.unwrap(), [".", ".."]);
    });
    cell.on(&b, async move { assert_eq!(two.names("").await.unwrap(), [".", ".."]) });
}

#[test]
fn a_removed_file_that_is_not_all_here_can_still_be_read_to_its_end() {
    let cell = Cell::new(4);
    cell.set_limits(|limits| {
        limits.chunk_bytes = 64 << 10;
        limits.read_ahead_chunks = 0;
    });
    let (a, b) = (cell.client(1), cell.client(2));
    let data = pattern(500_000, 1);
    let (one, sent) = (a.clone(), data.clone());
    cell.on(&a, async move { one.put("file", &sent).await.unwrap() });
    let (two, want) = (b.clone(), data.clone());
    cell.on(&b, async move {
        let handle = two.open("file", OpenFlags::READ).await.unwrap();
        two.venus.read(handle, 0, 10).await.unwrap();
        two.venus.unlink(NodeId::ROOT, b"file").await.unwrap();
        assert_eq!(two.find("file").await.unwrap_err().errno(), 2);
        assert!(two.read_all(handle).await.unwrap() == want);
        two.venus.release(handle).await.unwrap();
        assert_eq!(two.names("").await.unwrap(), [".", ".."], "nothing hidden stays behind");
    });
}

#[test]
fn renaming_over_an_open_file_leaves_its_readers_the_old_data() {
    let cell = Cell::new(5);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        one.put("config", b"old").await.unwrap();
        let handle = one.open("config", OpenFlags::READ).await.unwrap();
        one.put("config.new", b"new").await.unwrap();
        one.venus.rename(NodeId::ROOT, b"config.new", NodeId::ROOT, b"config").await.unwrap();
        assert_eq!(one.get("config").await.unwrap(), b"new");
        assert_eq!(one.read_all(handle).await.unwrap(), b"old");
        assert_eq!(one.names("").await.unwrap(), [".", "..", "config"]);
    });
}

#[test]
fn links_within_a_directory_and_not_across() {
    let cell = Cell::new(6);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        one.put("file", b"x").await.unwrap();
        one.mkdir("dir").await.unwrap();
        let node = one.find("file").await.unwrap().node;
        let dir = one.find("dir").await.unwrap().node;
        assert_eq!(one.venus.link(node, NodeId::ROOT, b"other").await.unwrap().attr.nlink, 2);
        assert_eq!(one.find("file").await.unwrap().attr.nlink, 2);
        assert_eq!(one.venus.link(node, dir, b"other").await.unwrap_err().errno(), 18);
        one.venus.unlink(NodeId::ROOT, b"file").await.unwrap();
        assert_eq!(one.find("other").await.unwrap().attr.nlink, 1);
        assert_eq!(one.get("other").await.unwrap(), b"x");
        one.mount("proj", "#proj.").await.unwrap();
        let proj = one.find("proj").await.unwrap().node;
        assert_eq!(one.venus.link(node, proj, b"other").await.unwrap_err().errno(), 18);
        assert_eq!(one.venus.rename(NodeId::ROOT, b"other", proj, b"other").await.unwrap_err().errno(), 18);
    });
}

#[test]
fn symbolic_links_and_their_loops() {
    let cell = Cell::new(7);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        one.mkdir("dir").await.unwrap();
        one.put("dir/file", b"data").await.unwrap();
        let link = one.mount("link", "dir/file").await.unwrap();
        assert_eq!((link.attr.kind, link.attr.size, link.attr.mode.0), (Kind::Symlink, 8, 0o777));
        assert_eq!(one.venus.link(link.node, NodeId::ROOT, b"second").await.unwrap_err().errno(), 1);
        assert_eq!(one.venus.readlink(link.node).await.unwrap(), "dir/file");
        one.mount("dir/up", "../link").await.unwrap();
        let found = one.venus.walk(b"dir/up", true).await.unwrap();
        assert_eq!((found.attr.kind, found.attr.size), (Kind::File, 4));
        one.mount("round", "round").await.unwrap();
        assert_eq!(one.venus.walk(b"round", true).await.unwrap_err().errno(), 40);
        one.venus.unlink(NodeId::ROOT, b"link").await.unwrap();
        assert_eq!(one.venus.walk(b"dir/up", true).await.unwrap_err().errno(), 2);
    });
}

#[test]
fn the_text_of_a_link_has_at_most_1024_bytes() {
    let cell = Cell::new(27);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        let longest = "x".repeat(1024);
        let link = one.mount("longest", &longest).await.unwrap();
        assert_eq!(one.venus.readlink(link.node).await.unwrap(), longest);
        let longer = one.mount("longer", &"x".repeat(1025)).await;
        assert_eq!(longer.unwrap_err().errno(), 36);
    });
}

#[test]
fn at_sys_stands_for_the_first_name_that_exists() {
    let cell = Cell::new(8);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        one.put("bin.any", b"any").await.unwrap();
        assert_eq!(one.get("bin.@sys").await.unwrap(), b"any");
        one.put("bin.amd64_linux26", b"amd64").await.unwrap();
        assert_eq!(one.get("bin.@sys").await.unwrap(), b"amd64");
    });
}

/// An archive of `node_modules/@sys` is unpacked like any other.
#[test]
fn a_name_that_ends_in_at_sys_is_itself_where_it_stands_for_nothing() {
    let cell = Cell::new(8);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        one.mkdir("@sys").await.unwrap();
        one.put("@sys/index.js", b"x").await.unwrap();
        one.put("mail@sys", b"y").await.unwrap();
        assert_eq!(one.get("@sys/index.js").await.unwrap(), b"x");
        assert_eq!(one.get("mail@sys").await.unwrap(), b"y");
        let dir = one.find("@sys").await.unwrap().node;
        one.venus.unlink(dir, b"index.js").await.unwrap();
        one.venus.rmdir(NodeId::ROOT, b"@sys").await.unwrap();
        one.venus.unlink(NodeId::ROOT, b"mail@sys").await.unwrap();
        assert_eq!(one.names("").await.unwrap(), [".", ".."]);
    });
}

#[test]
fn mount_points_lead_into_volumes_and_dots_lead_out_again() {
    let cell = Cell::new(9);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        one.mkdir("dir").await.unwrap();
        let mounted = one.mount("dir/proj", "#proj.").await.unwrap();
        assert_eq!(mounted.attr.kind, Kind::Directory);
        assert_eq!((mounted.attr.fid.vnode.0, mounted.attr.fid.unique.0), (1, 1));
        one.put("dir/proj/file", b"in proj").await.unwrap();
        assert_eq!(one.get("dir/proj/file").await.unwrap(), b"in proj");
        let up = one.venus.walk(b"dir/proj/..", true).await.unwrap();
        assert_eq!(up.node, one.find("dir").await.unwrap().node);
        let dir = up.node;
        let text = one.venus.property(mounted.node, b"afs.mount").await.unwrap();
        assert_eq!(text, "#proj.");
        assert_eq!(one.venus.property(dir, b"afs.lsmount.proj").await.unwrap(), "#proj.");
        assert_eq!(one.venus.rmdir(dir, b"proj").await.unwrap_err().errno(), 16);
        one.venus.set_property(dir, b"afs.rmmount", b"proj").await.unwrap();
        assert_eq!(one.find("dir/proj").await.unwrap_err().errno(), 2);
        assert_eq!(
            one.venus.set_property(NodeId::ROOT, b"afs.rmmount", b"dir").await.unwrap_err().errno(),
            22
        );
    });
}

#[test]
fn times_have_nanoseconds_on_every_machine() {
    let cell = Cell::new(90);
    let (a, b) = (cell.client(1), cell.client(2));
    let one = a.clone();
    let (made, set) = cell.on(&a, async move {
        one.put("file", b"x").await.unwrap();
        let made = one.find("file").await.unwrap().attr;
        let change =
            SetAttr { mtime: Some(NewTime::At(FileTime::new(UnixSeconds(7), 8))), ..SetAttr::default() };
        one.put("set", b"y").await.unwrap();
        let set = one.venus.setattr(one.find("set").await.unwrap().node, None, change).await.unwrap();
        (made, set)
    });
    assert!(made.mtime.nanos() != 0 && made.ctime.nanos() != 0, "{made:?}");
    assert_eq!(set.mtime, FileTime::new(UnixSeconds(7), 8));
    let other = b.clone();
    cell.on(&b, async move {
        for (name, expected) in [("file", made), ("set", set)] {
            let found = other.find(name).await.unwrap().attr;
            assert_eq!((found.mtime, found.ctime), (expected.mtime, expected.ctime), "{name}");
        }
    });
}

/// A program looks at the file that it has written before it closes it, as git does, and compares later.
#[test]
fn the_time_of_change_is_that_of_the_write_before_and_after_the_store() {
    let cell = Cell::new(93);
    let (a, b) = (cell.client(1), cell.client(2));
    let one = a.clone();
    let shown = cell.on(&a, async move {
        one.put("old", b"before").await.unwrap();
        let mut shown = Vec::new();
        for name in ["new", "old"] {
            let handle = match name {
                "new" => one.open_new(name).await.unwrap(),
                _ => one.open(name, OpenFlags::READ_WRITE).await.unwrap(),
            };
            one.env.sleep(Duration::from_millis(20)).await;
            one.venus.write(handle, 0, Bytes::from_static(b"data")).await.unwrap();
            let node = one.find(name).await.unwrap().node;
            let before = one.venus.getattr(node).await.unwrap();
            one.env.sleep(Duration::from_secs(2)).await;
            one.venus.flush(handle, 0).await.unwrap();
            one.venus.release(handle).await.unwrap();
            let after = one.venus.getattr(node).await.unwrap();
            assert_eq!((after.ctime, after.mtime), (before.ctime, before.mtime), "{name}");
            shown.push((name, before.ctime));
        }
        shown
    });
    let two = b.clone();
    cell.on(&b, async move {
        for (name, ctime) in shown {
            let attr = two.find(name).await.unwrap().attr;
            assert_eq!(attr.ctime, ctime, "{name}");
            let mode = SetAttr { mode: Some(afs_wire::ids::Mode(0o600)), ..SetAttr::default() };
            assert!(two.venus.setattr(attr.node, None, mode).await.unwrap().ctime > ctime, "{name}");
        }
    });
}

/// As by `cp -p`, or by a program that hides that it has changed the file.
#[test]
fn a_time_that_a_program_sets_is_not_the_time_of_change() {
    let cell = Cell::new(94);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        one.put("file", b"data").await.unwrap();
        let before = one.find("file").await.unwrap().attr;
        for mtime in [before.mtime, FileTime::new(UnixSeconds(7), 0), before.mtime.after(1_000_000_000_000)] {
            let handle = one.open("file", OpenFlags::READ_WRITE).await.unwrap();
            one.env.sleep(Duration::from_secs(2)).await;
            one.venus.write(handle, 0, Bytes::from_static(b"else")).await.unwrap();
            let change = SetAttr { mtime: Some(NewTime::At(mtime)), ..SetAttr::default() };
            one.venus.setattr(before.node, None, change).await.unwrap();
            one.venus.flush(handle, 0).await.unwrap();
            one.venus.release(handle).await.unwrap();
            let after = one.venus.getattr(before.node).await.unwrap();
            assert_eq!(after.mtime, mtime);
            let since = before.ctime.after(2_000_000_000);
            assert!(after.ctime > since && after.ctime < since.after(20_000_000_000), "{before:?} {after:?}");
        }
    });
}

/// The fake server keeps whole seconds, and does not say that it keeps more.
#[test]
fn a_server_of_seconds_has_its_times_shown_in_seconds() {
    let cell = Fakes::new(92, 1, 1);
    let image = Arc::new(std::sync::Mutex::new(Image::new(100).with("file", b"old")));
    cell.servers[0].host(RW, &image, true);
    cell.locate(&[(0, afs_wire::vl::SiteFlags::RW_VOLUME)]);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        let handle = one.open("file", OpenFlags::READ_WRITE).await.unwrap();
        one.venus.write(handle, 0, Bytes::from_static(b"new")).await.unwrap();
        let dirty = one.find("file").await.unwrap().attr;
        assert_eq!((dirty.size, dirty.mtime.nanos()), (3, 0));
        one.venus.flush(handle, 0).await.unwrap();
        one.venus.release(handle).await.unwrap();
        assert_eq!(one.find("file").await.unwrap().attr.mtime.nanos(), 0);
    });
}

#[test]
fn checkvolumes_has_the_kernel_look_up_every_mount_point_again() {
    let cell = Cell::new(91);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        let mounted = one.mount("proj", "#proj.").await.unwrap();
        assert!(mounted.name_for.is_some());
        assert_eq!(one.find("proj").await.unwrap().attr.fid, mounted.attr.fid);
        one.put("proj/file", b"x").await.unwrap();
        assert_eq!(one.find("proj/file").await.unwrap().name_for, None);
        one.invalidated.take();
        one.venus.set_property(NodeId::ROOT, b"afs.flush", b"locations").await.unwrap();
        let told = one.invalidated.take();
        assert!(told.iter().any(|it| it.starts_with("entry") && it.ends_with(" proj")), "{told:?}");
        let before = one.venus.counters();
        one.find("proj").await.unwrap();
        let asked = one.calls_since(&before);
        assert!(asked.iter().any(|call| call.starts_with("GetEntryByName")), "{asked:?}");
    });
}

#[test]
fn the_synthetic_root_shows_the_cells() {
    let cell = Cell::new(10);
    let a = cell.client_at(1, Arc::new(MemoryCache::new(1 << 20)), RootKind::Cells);
    let one = a.clone();
    cell.on(&a, async move {
        assert_eq!(one.names("").await.unwrap(), [".", "..", "test.cell", ".test.cell"]);
        one.put("test.cell/file", b"x").await.unwrap();
        assert_eq!(one.get(".test.cell/file").await.unwrap(), b"x");
        let up = one.venus.walk(b"test.cell/..", true).await.unwrap();
        assert_eq!(up.node, NodeId::ROOT);
        assert_eq!(one.find("no.such.cell").await.unwrap_err().errno(), 2);
        assert_eq!(one.venus.mkdir(NodeId::ROOT, b"x", 0o755).await.unwrap_err().errno(), 30);
        assert_eq!(one.venus.statfs(NodeId::ROOT).await.unwrap().blocks, 0);
    });
}

#[test]
fn a_directory_of_many_names_is_listed_page_by_page() {
    let cell = Cell::new(11);
    let (a, b) = (cell.client(1), cell.client(2));
    let one = a.clone();
    cell.on(&a, async move {
        for n in 0..700 {
            one.put(&format!("name {n}"), b"").await.unwrap();
        }
        one.venus.unlink(NodeId::ROOT, b"name 350").await.unwrap();
    });
    for client in [a, b] {
        let reader = client.clone();
        let names = cell.on(&client, async move {
            let (mut names, mut offset) = (Vec::new(), 0);
            loop {
                let page = reader.venus.readdir(NodeId::ROOT, offset, 33).await.unwrap();
                let Some(last) = page.last() else { break };
                offset = last.next_offset;
                names.extend(page.into_iter().map(|entry| String::from_utf8(entry.name).unwrap()));
            }
            names.sort();
            names
        });
        let mut want: Vec<String> = (0..700).filter(|n| *n != 350).map(|n| format!("name {n}")).collect();
        want.extend([".".into(), "..".into()]);
        want.sort();
        assert_eq!(names, want);
    }
}

#[test]
fn properties_that_tools_read_and_set() {
    let cell = Cell::new(12);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        one.put("file", b"x").await.unwrap();
        let file = one.find("file").await.unwrap();
        let get = async |name: &str| {
            String::from_utf8(one.venus.property(file.node, name.as_bytes()).await.unwrap().to_vec()).unwrap()
        };
        assert_eq!(get("afs.fid").await, file.attr.fid.to_string());
        assert_eq!(get("afs.cell").await, "test.cell");
        assert_eq!(get("afs.volume").await, "root.cell");
        assert_eq!(get("afs.whereis").await, "10.0.0.1\n");
        assert!(get("afs.acl").await.starts_with("1\n0\nsystem:anyuser\t127\n"));
        assert!(get("afs.volstatus").await.contains("\"name\":\"root.cell\""));
        assert!(get("afs.status").await.contains("\"promised\":true"));
        assert!(get("afs.counters").await.contains("\"CreateFile\":1"));
        assert_eq!(get("afs.quota").await, "0");
        let set = async |name: &str, value: &str| {
            one.venus.set_property(file.node, name.as_bytes(), value.as_bytes()).await
        };
        assert_eq!(get("afs.offlinemsg").await, "");
        assert_eq!(set("afs.quota", "5000").await.unwrap_err().errno(), 13);
        assert_eq!(set("afs.offlinemsg", "back soon").await.unwrap_err().errno(), 13);
        for message in ["", "\0", &"x".repeat(128)] {
            assert_eq!(set("afs.offlinemsg", message).await.unwrap_err().errno(), 22);
        }
        assert_eq!(one.venus.property(file.node, b"user.other").await.unwrap_err().errno(), 61);
        assert_eq!(one.venus.set_property(file.node, b"user.other", b"").await.unwrap_err().errno(), 95);
        let acl = b"2\n0\nsystem:anyuser\t127\nsystem:authuser\t9\n";
        one.venus.set_property(NodeId::ROOT, b"afs.acl", acl).await.unwrap();
        assert!(get("afs.acl").await.contains("system:authuser\t9"));
        let before = one.venus.counters();
        one.venus.set_property(file.node, b"afs.flush", b"").await.unwrap();
        assert_eq!(one.get("file").await.unwrap(), b"x");
        // The directory, whose list has changed, and the file.
        assert!(one.calls_since(&before).iter().any(|call| call == "FetchData64 2"));
    });
}

/// A shell stands in a directory that another machine removes.
#[test]
fn a_look_up_in_a_removed_directory_is_one_call() {
    let cell = Cell::new(15);
    let (a, b) = (cell.client(1), cell.client(2));
    let (one, two) = (a.clone(), b.clone());
    let dir = cell.on(&a, async move {
        one.mkdir("d").await.unwrap();
        let dir = one.find("d").await.unwrap().node;
        one.names("d").await.unwrap();
        dir
    });
    cell.on(&b, async move { two.venus.rmdir(NodeId::ROOT, b"d").await.unwrap() });
    let one = a.clone();
    cell.on(&a, async move {
        // It learns of the removal.
        one.names("").await.unwrap();
        one.env.sleep(Duration::from_secs(1)).await;
        let before = one.venus.counters();
        assert_eq!(one.venus.lookup(dir, b"new").await.unwrap_err().errno(), 116);
        let calls = one.calls_since(&before);
        assert!(calls.iter().all(|call| call.ends_with(" 1")), "{calls:?}");
    });
}

/// `cp` has ended, and the kernel releases the file some time later.
#[test]
fn a_flush_right_after_a_close_drops_the_file() {
    let cell = Cell::new(14);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        let handle = one.open_new("file").await.unwrap();
        one.write_all(handle, b"text").await.unwrap();
        let node = one.find("file").await.unwrap().node;
        one.venus.flush(handle, 0).await.unwrap();
        let flushing = one.clone();
        let flushed = one.env.spawn_with_result(async move {
            flushing.venus.set_property(node, b"afs.flush", b"file").await.unwrap();
        });
        one.env.sleep(Duration::from_millis(100)).await;
        one.venus.release(handle).await.unwrap();
        flushed.await.unwrap();
        let before = one.venus.counters();
        assert_eq!(one.get("file").await.unwrap(), b"text");
        assert!(one.calls_since(&before).iter().any(|call| call.starts_with("FetchData64")));
    });
}

#[test]
fn room_is_that_of_the_quota() {
    let cell = Cell::new(13);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        let small = one.mount("small", "#small.").await.unwrap();
        let space = one.venus.statfs(small.node).await.unwrap();
        assert_eq!((space.block_bytes, space.blocks), (1024, u64::from(common::SMALL_KIB)));
        assert!(space.blocks_free < space.blocks);
        assert!(one.venus.statfs(NodeId::ROOT).await.unwrap().blocks_free > 1000);
    });
}

#[test]
fn names_that_cannot_be() {
    let cell = Cell::new(14);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        let long = vec![b'x'; 256];
        let create = async |name: &[u8]| {
            one.venus
                .create(NodeId::ROOT, name, 0o644, OpenFlags::WRITE)
                .await
                .map(drop)
                .map_err(|e| e.errno())
        };
        assert_eq!(create(&long).await, Err(36));
        assert_eq!(create(b"").await, Err(22));
        assert_eq!(create(b"a/b").await, Err(22));
        assert_eq!(create(b"..").await, Err(22));
        assert_eq!(create(&long[..255]).await, Ok(()));
        assert_eq!(create(b"\xff\xfe not utf-8").await, Ok(()));
        assert_eq!(create(b"\xff\xfe not utf-8").await, Err(17));
        assert_eq!(one.venus.lookup(NodeId::ROOT, &long).await.unwrap_err().errno(), 36);
    });
}

#[test]
fn emptying_an_empty_file_changes_its_time() {
    let cell = Cell::new(15);
    let (a, b) = (cell.client(1), cell.client(2));
    let one = a.clone();
    let before = cell.on(&a, async move {
        one.put("stamp", b"").await.unwrap();
        one.find("stamp").await.unwrap().attr.mtime
    });
    cell.sim.run_for(std::time::Duration::from_secs(5));
    let one = a.clone();
    cell.on(&a, async move { one.put("stamp", b"").await.unwrap() });
    let two = b.clone();
    assert!(cell.on(&b, async move { two.find("stamp").await.unwrap().attr.mtime }) > before);
}

#[test]
fn all_of_this_holds_with_data_on_drives_of_other_kinds() {
    afs_testkit::run_again_over(&["copies/nasd", "round/netscsi"], module_path!(), &[]);
}
