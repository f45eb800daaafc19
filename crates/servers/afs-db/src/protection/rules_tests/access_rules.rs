//! Rules of access: privacy flags, quotas, and lists in pages.

use super::*;

#[test]
fn privacy_decides_who_sees_and_does_what() {
    let mut rows = cell();
    let (alice, bob, carol) = (as_user("alice"), as_user("bob"), as_user("carol"));
    let g = group(&mut rows, &alice, "alice:a", 0).unwrap();
    join(&mut rows, "bob", "alice:a").unwrap();
    let set = |rows: &mut MemoryRows, by: &Requester, privacy| {
        fields::set(rows, by, g, Fields { privacy_mask: 0xff, privacy, ..Fields::default() })
    };
    assert_eq!(set(&mut rows, &bob, 0), refused(Refusal::Permission));
    set(&mut rows, &alice, 0).unwrap();
    let outcomes = |rows: &MemoryRows, by: &Requester| {
        let sees = [
            list::status(rows, by, g).is_ok(),
            list::elements(rows, by, g).is_ok(),
            list::owned(rows, by, g, After::START, 9).is_ok(),
        ];
        let adds = members::add(&mut rows.clone(), by, ViceId(4), g).is_ok();
        let removes = members::remove(&mut rows.clone(), by, ViceId(3), g).is_ok();
        [sees[0], sees[1], sees[2], adds, removes]
    };
    assert_eq!(outcomes(&rows, &bob), [false; 5]);
    assert_eq!(outcomes(&rows, &alice), [true; 5]);
    assert_eq!(outcomes(&rows, &CELL), [true; 5]);
    set(&mut rows, &alice, 0x4b).unwrap();
    assert_eq!(outcomes(&rows, &bob), [true, true, false, true, true], "s-mar");
    assert_eq!(outcomes(&rows, &carol), [false; 5]);
    assert_eq!(outcomes(&rows, &ANONYMOUS), [false; 5]);
    set(&mut rows, &alice, 0xb4).unwrap();
    assert_eq!(outcomes(&rows, &carol), [true, true, true, true, false], "SOMA-");
    let restricted = Requester { restricted: true, ..alice.clone() };
    assert_eq!(outcomes(&rows, &restricted), [true, true, true, false, false]);
    join(&mut rows, "carol", "system:ptsviewers").unwrap();
    set(&mut rows, &alice, 0).unwrap();
    assert_eq!(outcomes(&rows, &carol), [true, true, true, false, false], "viewers see");
    // A user's own memberships are the user's to see.
    assert_eq!(list::elements(&rows, &bob, ViceId(3)), Ok(vec![g]));
    assert_eq!(list::elements(&rows, &alice, ViceId(3)), refused(Refusal::Permission));
    assert_eq!(list::cps_of(&rows, &alice, ViceId(3), None), refused(Refusal::Permission));
    assert_eq!(list::is_member(&rows, &alice, ViceId(3), g), Ok(true), "her group");
    assert_eq!(list::is_member(&rows, &alice, ViceId(3), ViceId(-204)), Ok(false), "a public one");
    assert_eq!(list::is_member(&rows, &ANONYMOUS, ViceId(3), g), refused(Refusal::Permission));
    assert_eq!(list::is_member(&rows, &CELL, ViceId(3), ViceId(2)), refused(Refusal::BadArgument));
}

#[test]
fn quotas_are_for_administrators_to_set() {
    let mut rows = cell();
    let quota = |group_quota, user_quota| Fields { group_quota, user_quota, ..Fields::default() };
    let alice = as_user("alice");
    let g = group(&mut rows, &alice, "alice:a", 0).unwrap();
    assert_eq!(fields::set(&mut rows, &alice, g, quota(Some(9), None)), refused(Refusal::Permission));
    assert_eq!(
        fields::set(&mut rows, &CELL, ViceId(2), quota(Some(-1), None)),
        refused(Refusal::BadArgument)
    );
    assert_eq!(
        fields::set(&mut rows, &CELL, ViceId(2), quota(None, Some(i32::MIN))),
        refused(Refusal::BadArgument)
    );
    fields::set(&mut rows, &CELL, ViceId(2), quota(Some(0), Some(7))).unwrap();
    assert_eq!(group(&mut rows, &alice, "alice:b", 0), refused(Refusal::NoMore));
    for fixed in [-101, -102, 32766] {
        assert_eq!(
            fields::set(&mut rows, &CELL, ViceId(fixed), quota(Some(1), None)),
            refused(Refusal::Permission)
        );
    }
    assert_eq!(
        fields::set(&mut rows, &ANONYMOUS, ViceId(-101), Fields::default()),
        Ok(()),
        "no field, no change"
    );
}

#[test]
fn lists_come_in_pages() {
    let mut rows = cell();
    for n in 0..7 {
        group(&mut rows, &as_user("alice"), &format!("alice:{n}"), 0).unwrap();
    }
    for limit in [1, 3, 100] {
        let (mut after, mut owned) = (After::START, Vec::new());
        loop {
            let page = list::owned(&rows, &CELL, ViceId(2), after, limit).unwrap();
            assert!(page.items.len() <= limit);
            owned.extend(page.items);
            let Some(next) = page.next else { break };
            after = next;
        }
        assert_eq!(owned, ids(&[-212, -211, -210, -209, -208, -207, -206]));
        for (users, groups, count) in
            [(true, false, 5), (false, true, 12), (true, true, 17), (false, false, 0)]
        {
            let (mut after, mut found) = (After::START, Vec::new());
            loop {
                let page = list::entries(&rows, &CELL, Kinds { users, groups }, after, limit).unwrap();
                assert!(page.items.len() <= limit);
                found.extend(page.items.into_iter().map(|status| status.entry.id));
                let Some(next) = page.next else { break };
                assert!(!matches!(next, After(ViceId(0 | -1))), "these two mean something else on the wire");
                after = next;
            }
            assert_eq!(found.len(), count);
            assert!(found.iter().all(|id| if id.is_group() { groups } else { users }));
        }
    }
    for by in [as_user("alice"), ANONYMOUS] {
        let kinds = Kinds { users: true, groups: true };
        assert_eq!(list::entries(&rows, &by, kinds, After::START, 9), refused(Refusal::Permission));
        assert_eq!(list::owned(&rows, &by, ViceId(0), After::START, 9), refused(Refusal::Permission));
    }
    // Cursors that never came from here lead nowhere, and no further.
    for odd in [i32::MAX, i32::MIN, -1, 5] {
        list::owned(&rows, &CELL, ViceId(2), After(ViceId(odd)), 9).unwrap();
        list::entries(&rows, &CELL, Kinds { users: true, groups: true }, After(ViceId(odd)), 9).unwrap();
    }
}
