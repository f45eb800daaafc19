//! Names of every length and of any bytes.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use afs_rpc::CallError;
use afs_sim::SimRng;
use afs_wire::error::AbortCode;
use afs_wire::fs::{CreateFile, MakeDir, Name, RemoveFile, SetStatus};
use afs_wire::ids::Fid;
use andrew_tests::hostile::caller::Caller;
use andrew_tests::hostile::samples::Server;
use andrew_tests::live::closing::write_and_close;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::process::seconds;
use andrew_tests::live::setup::Setup;

use crate::hostile::{assert_calm, fid, folder_for_all};

#[test]
fn names_of_every_length_and_of_any_bytes() {
    if !all_there(&[Need::Fuse]) {
        return;
    }
    let setup = Setup::new("names", 3, seconds(120));
    let mut cell = setup.up("rl", &[]);
    let folder = cell.mount().join("folder");
    fs::create_dir(&folder).unwrap();
    let mut rng = SimRng::new(5);
    let names: BTreeSet<OsString> = (1..=255).map(|length| name(&mut rng, length)).collect();
    assert_eq!(names.len(), 255);
    for name in &names {
        write_and_close(&folder.join(name), name.as_bytes()).unwrap();
    }
    let too_long = fs::File::create(folder.join(name(&mut rng, 256))).unwrap_err();
    assert_eq!(too_long.raw_os_error(), Some(libc::ENAMETOOLONG));

    let other = setup.mount("other", &[]);
    let seen = other.path().join("folder");
    assert!(listed(&seen) == names);
    for name in &names {
        assert!(fs::read(seen.join(name)).unwrap() == name.as_bytes(), "{name:?}");
    }
    // Each is renamed over another, and all are removed.
    for name in &names {
        let mut longer = name.as_bytes().to_vec();
        longer.truncate(254);
        longer.push(b'!');
        let longer = OsString::from_vec(longer);
        fs::rename(folder.join(name), folder.join(&longer)).unwrap();
        assert!(fs::read(seen.join(&longer)).unwrap() == name.as_bytes(), "{longer:?}");
        fs::remove_file(folder.join(&longer)).unwrap();
    }
    assert_eq!(listed(&seen), BTreeSet::new());
    fs::remove_dir(&folder).unwrap();
    assert_calm(&mut cell);
    drop(other);
    cell.stop();
}

/// A name in no encoding: any bytes that a name may have.
fn name(rng: &mut SimRng, length: usize) -> OsString {
    let mut bytes = vec![0; length];
    rng.fill(&mut bytes);
    for byte in &mut bytes {
        if matches!(byte, 0 | b'/' | b'.' | b'@') {
            *byte = 0xff;
        }
    }
    OsString::from_vec(bytes)
}

fn listed(folder: &Path) -> BTreeSet<OsString> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn names_that_no_directory_takes_are_refused() {
    if !all_there(&[Need::Fuse]) {
        return;
    }
    let setup = Setup::new("refused_names", 4, seconds(120));
    let mut cell = setup.up("rl", &[]);
    let folder = folder_for_all(&setup, cell.mount(), "folder", "all");
    let dir = fid(&folder);
    let caller = Caller::new(setup.address().parse().unwrap(), [8; 16]);
    let refused: [(&[u8], i32); 6] = [
        (b"", libc::EINVAL),
        (b"with/slash", libc::EINVAL),
        (b"/", libc::EINVAL),
        (b"with\0nul", libc::EINVAL),
        (b".", libc::EEXIST),
        (b"..", libc::EEXIST),
    ];
    for (name, errno) in refused {
        for code in attempts(&caller, dir, Name::new(name).unwrap()) {
            assert_eq!(code, Some(errno), "{:?}", name.escape_ascii().to_string());
        }
    }
    // A name of 256 bytes is valid in AFS, and one byte too long for Linux: a mount creates none, but reads and removes
    // those of other clients.
    let (name, status) = (Name::new([b'x'; 256]).unwrap(), SetStatus::default());
    caller.call(Server::File, &CreateFile { dir, name: name.clone(), status }).unwrap();
    write_and_close(&folder.join("beside"), b"it").unwrap();
    assert!(listed(&folder).contains(OsStr::new("beside")));
    assert_eq!(fs::metadata(folder.join(OsStr::from_bytes(&name))).unwrap().len(), 0);
    caller.call(Server::File, &RemoveFile { dir, name }).unwrap();
    fs::remove_file(folder.join("beside")).unwrap();
    // One byte more does not fit into the call's argument.
    let too_long = too_long(dir);
    let peer = std::net::SocketAddr::new(setup.address().parse().unwrap(), Server::File.port());
    let answer = caller.call_raw(peer, Server::File, too_long);
    assert_eq!(answer, Err(CallError::Abort(AbortCode::RXGEN_SS_UNMARSHAL)));
    assert_eq!(listed(&folder), BTreeSet::new());
    assert_calm(&mut cell);
    drop(caller);
    cell.stop();
}

fn attempts(caller: &Caller, dir: Fid, name: Name) -> [Option<i32>; 2] {
    let status = SetStatus::default();
    let file = caller.call(Server::File, &CreateFile { dir, name: name.clone(), status });
    let folder = caller.call(Server::File, &MakeDir { dir, name, status });
    [file.err(), folder.err()].map(|error| error?.abort_code()?.to_errno())
}

fn too_long(dir: Fid) -> Vec<u8> {
    let name = Name::new([b'x'; 256]).unwrap();
    let mut call = afs_wire::rpc::encode_call(&CreateFile { dir, name, status: SetStatus::default() });
    // The count before the name, and four more bytes of it.
    let count = 4 + Fid::WIRE_LEN;
    call[count..count + 4].copy_from_slice(&257_u32.to_be_bytes());
    call.splice(count + 4..count + 4, *b"xxxx");
    call
}
