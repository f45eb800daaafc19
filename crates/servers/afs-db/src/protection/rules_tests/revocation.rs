//! Rules of revocation: who revokes, and what a revoked token does.

use super::*;

fn now(secs: u64) -> Fields {
    Fields { revoke_tokens: Some(UnixTime { secs, nanos: 0 }), ..Fields::default() }
}

fn alice(generation: u64) -> Requester {
    let terms = Terms { generation: TokenGeneration(generation), ..Terms::default() };
    Requester { identity: RequesterIdentity::Local { name: "alice".into(), terms }, restricted: false }
}

#[test]
fn a_caller_with_a_revoked_token_may_nothing_in_the_database_either() {
    let mut rows = cell();
    assert_eq!(rows::find(&rows, ViceId(2)).unwrap().name, "alice");
    group(&mut rows, &alice(0), "alice:friends", 0).unwrap();
    fields::set(&mut rows, &CELL, ViceId(2), now(500)).unwrap();
    for generation in [0, 499] {
        assert_eq!(group(&mut rows, &alice(generation), "alice:more", 0), refused(Refusal::Revoked));
        assert_eq!(list::status(&rows, &alice(generation), ViceId(2)), refused(Refusal::Revoked));
    }
    group(&mut rows, &alice(500), "alice:more", 0).unwrap();
    let entry = rows::find(&rows, ViceId(2)).unwrap();
    assert_eq!(entry.tokens, TokenGeneration(500));
}

#[test]
fn no_token_of_an_earlier_holder_of_a_name_counts_for_the_next_one() {
    let mut rows = cell();
    let named = |rows: &MemoryRows, generation| list::status(rows, &alice(generation), id(rows, "alice"));
    fields::set(&mut rows, &CELL, ViceId(2), now(400)).unwrap();
    assert!(named(&rows, 400).is_ok() && named(&rows, NOW.secs).is_ok());

    delete::delete(&mut rows, &CELL, ViceId(2), NOW).unwrap();
    let next = new(&mut rows, &CELL, "alice", NewId::User).unwrap();
    for generation in [0, 400, NOW.secs - 1] {
        assert_eq!(named(&rows, generation), refused(Refusal::Revoked), "{generation}");
    }
    assert!(named(&rows, NOW.secs).is_ok());

    // Also of one who has another name now; a clock that was put back does not help.
    let rename = |rows: &mut MemoryRows, id, name: &str, at| {
        let change = Change { name: Some(name.into()), ..Change::default() };
        change::change(rows, &CELL, id, &change, UnixTime { secs: at, nanos: 0 }).unwrap();
    };
    rename(&mut rows, next, "alicia", 5);
    rename(&mut rows, ViceId(3), "alice", 5);
    assert_eq!(named(&rows, NOW.secs), refused(Refusal::Revoked));
    assert!(named(&rows, NOW.secs + 1).is_ok());

    // Others have their tokens, and users of other cells theirs.
    assert_eq!(rows::find(&rows, ViceId(4)).unwrap().tokens, TokenGeneration::default());
    let dave = new(&mut rows, &CELL, "dave", NewId::User).unwrap();
    assert_eq!(rows::find(&rows, dave).unwrap().tokens, TokenGeneration::default());
}

#[test]
fn all_names_that_were_given_up_have_a_bounded_number_of_rows() {
    let mut rows = MemoryRows::default();
    for n in 0..20_000 {
        let gone = Entry::new(ViceId(n + 1), format!("user{n}"), ADMINISTRATORS, ADMINISTRATORS);
        gone::note(&mut rows, &gone, NOW).unwrap();
        assert_eq!(gone::first_tokens(&rows, &gone).unwrap().0, NOW.secs);
    }
    let kept = rows.range(rows::META, b"gone", b"gonf", usize::MAX).unwrap();
    assert!((2000..=4096).contains(&kept.len()), "{}", kept.len());
}

#[test]
fn the_cell_revokes_and_users_do_not_and_each_time_is_later() {
    let mut rows = cell();
    for by in [as_user("alice"), as_user("bob")] {
        assert_eq!(fields::set(&mut rows, &by, ViceId(2), now(500)), refused(Refusal::Permission));
    }
    let mut last = TokenGeneration(0);
    for secs in [500, 500, 100, 900] {
        fields::set(&mut rows, &CELL, ViceId(2), now(secs)).unwrap();
        let tokens = rows::find(&rows, ViceId(2)).unwrap().tokens;
        assert!(tokens > last && tokens.0 >= secs, "{tokens:?}");
        last = tokens;
    }
    let friends = group(&mut rows, &CELL, "friends", 0).unwrap();
    assert_eq!(fields::set(&mut rows, &CELL, friends, now(500)), refused(Refusal::BadArgument));
}
