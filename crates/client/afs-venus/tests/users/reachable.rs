//! Objects that a tool names by number: who may.

use super::*;

#[test]
fn an_object_named_by_number_is_there_for_those_who_may_list_its_directory() {
    let cell = cell(4);
    let machine = cell.client(1);
    let here = machine.clone();
    cell.on(&machine, async move {
        log_in(&here).await;
        home_of_alice(&here).await;
        let (alice, bob, nobody) = (here.user(ALICE), here.user(BOB), here.user(NOBODY));
        let home = alice.find("home").await.unwrap().node;
        let inside = ["home/secret", "home/sub"];
        for path in inside {
            let node = alice.find(path).await.unwrap().node;
            alice.venus.require_reachable(node).await.unwrap();
            for other in [&bob, &nobody] {
                denied(other.venus.require_reachable(node).await);
            }
        }
        for user in [&alice, &bob, &nobody] {
            user.venus.require_reachable(home).await.unwrap();
            user.venus.require_reachable(NodeId::ROOT).await.unwrap();
        }
        let unknown = bob.venus.require_reachable(NodeId(1 << 40)).await.unwrap_err();
        assert_eq!(unknown.errno(), 116);
        alice.set_acl("home", &[("alice", "rlidwka"), ("bob", "l"), ("system:anyuser", "")]).await.unwrap();
        for path in inside {
            let node = alice.find(path).await.unwrap().node;
            bob.venus.require_reachable(node).await.unwrap();
            denied(nobody.venus.require_reachable(node).await);
        }
    });
}
