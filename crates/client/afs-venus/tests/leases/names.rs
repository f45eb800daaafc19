//! Where the decisions under a lease end: names of files with several, of directories, and outside of what is lent.

use super::*;

#[test]
fn a_file_that_lost_a_name_in_the_list_that_gave_it_one_has_one_name() {
    let cell = cell(18);
    let a = cell.client(1);
    let client = a.clone();
    cell.on(&a, async move {
        lease(&client, "dir").await;
        put_by_link(&client, "dir", "object", b"data").await.unwrap();
        let lists = client.calls("ChangeList");
        client.env.sleep(Duration::from_secs(2)).await;
        assert_eq!(client.calls("ChangeList"), lists + 1);
        assert_eq!(client.find("dir/object").await.unwrap().attr.nlink, 1);
    });
}

#[test]
fn a_directory_that_a_single_call_makes_in_a_leased_one_is_lent_at_its_first_change() {
    let cell = cell(20);
    let (a, b) = (cell.client(1), cell.client(2));
    let other = b.clone();
    cell.on(&b, async move { other.mkdir("dir").await.unwrap() });
    let client = a.clone();
    cell.on(&a, async move {
        put_all(&client, "dir", 0..5).await;
        let before = client.venus.counters();
        client.mkdir("dir/model").await.unwrap();
        put_all(&client, "dir/model", 0..10).await;
        client.env.sleep(Duration::from_secs(2)).await;
        // What was decided before the directory was made, and what is in it.
        assert_eq!(client.calls_since(&before), ["ChangeList 3", "TakeLease 1"]);
    });
}

/// What is not under the lease may be changed or looked at by others at any time, and a directory names the one above it.
#[test]
fn renames_out_of_the_lease_and_of_directories_are_single_calls() {
    let cell = cell(19);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move { client.mkdir("other").await.unwrap() });
    let other = b.clone();
    cell.on(&b, async move { other.put("other/file", b"other").await.unwrap() });
    let client = a.clone();
    cell.on(&a, async move {
        lease(&client, "dir").await;
        for path in ["dir/model", "dir/one", "dir/one/moved", "dir/two"] {
            client.mkdir(path).await.unwrap();
        }
        client.names("other").await.unwrap();
        let [dir, other, one, two] = {
            let node = async |path: &'static str| client.find(path).await.unwrap().node;
            [node("dir").await, node("other").await, node("dir/one").await, node("dir/two").await]
        };
        client.venus.rename(dir, b"first0", other, b"first0").await.unwrap();
        client.venus.rename(one, b"moved", two, b"moved").await.unwrap();
        assert_eq!(client.find("dir/one").await.unwrap().attr.nlink, 2);
        assert_eq!(client.find("dir/two").await.unwrap().attr.nlink, 3);
    });
    let other = b.clone();
    cell.on(&b, async move { assert_eq!(other.get("other/first0").await.unwrap(), b"x") });
    let client = a.clone();
    cell.on(&a, async move { assert_eq!(client.venus.counters().leases_lost, 0) });
}

#[test]
fn a_directory_of_a_lease_that_was_recalled_earns_one_of_its_own() {
    let cell = cell(21);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move {
        lease(&client, "dir").await;
        let before = client.venus.counters();
        client.mkdir("dir/sub").await.unwrap();
        assert_eq!(client.calls_since(&before), [""; 0], "decided under the lease");
    });
    let other = b.clone();
    cell.on(&b, async move { assert_eq!(other.names("dir/sub").await.unwrap().len(), 2) });
    let client = a.clone();
    cell.on(&a, async move {
        let taken = client.calls("TakeLease");
        client.put("dir/sub/file", b"data").await.unwrap();
        assert_eq!(client.calls("TakeLease"), taken, "others may be at work there");
    });
}
