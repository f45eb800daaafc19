//! A cell with a caller of every kind.

use afs_rpc::CallError;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, AclText, SetStatus};
use afs_wire::ids::Fid;

use crate::rig::people::OWEN;
use crate::rig::{Cell, Claim, Client};

/// All callers, by a letter. The directory's list gives alice everything, staff `rlidwk`, owen `i`; against frank stands a negative
/// entry; `system:anyuser` has nothing.
///
/// | Letter | Who |
/// | --- | --- |
/// | `-` | an anonymous caller |
/// | `a` | alice, by an entry of her own |
/// | `b` | bob, who has no entry |
/// | `c` | carol, in the team, which is in the staff |
/// | `f` | frank, likewise, with the negative entry |
/// | `o` | owen, who owns the file |
/// | `d` | dora, an administrator |
/// | `k` | a holder of the cell's key |
/// | `e` | erin of another cell, who is in the database |
/// | `x` | a user of another cell who is not in the database |
/// | `L` | the cell's own process |
pub const EVERYBODY: &str = "-abcfodkexL";
/// The same without the owner of the cell, who calls from another machine.
pub const EVERYBODY_HERE: &str = "-abcfodkex";
pub const ADMINISTRATORS: &str = "dkL";

pub struct Scene {
    pub cell: Cell,
    pub callers: Vec<(char, Client)>,
    pub dir: Fid,
    count: u32,
}

impl Scene {
    pub fn new(seed: u64) -> Self {
        let cell = Cell::with(seed, Default::default(), "rlidwka");
        cell.open_data_path();
        let (client, owner) = (cell.client(1), cell.owner());
        let claim = |letter| match letter {
            'a' => Claim::of("alice"),
            'b' => Claim::of("bob"),
            'c' => Claim::of("carol"),
            'f' => Claim::of("frank"),
            'o' => Claim::of("owen"),
            'd' => Claim::of("dora"),
            'k' => Claim::of_key(),
            'e' => Claim::of_cell("erin", "else.where"),
            'x' => Claim::of_cell("alice", "nowhere"),
            other => panic!("{other}"),
        };
        let callers = EVERYBODY.chars().map(|letter| match letter {
            '-' => (letter, client.clone()),
            'L' => (letter, owner.clone()),
            letter => (letter, client.acting_as(&claim(letter))),
        });
        let callers = callers.collect();
        let dir = owner.make_dir(cell.root(), "d").unwrap().fid;
        owner.ask(fs::StoreAcl { fid: dir, acl: list() }).unwrap();
        Scene { cell, callers, dir, count: 0 }
    }

    /// A caller who has suspended groups takes the place of this one.
    pub fn suspend(&mut self, letter: char, claim: &Claim) {
        let client = self.caller('-').acting_as(claim);
        self.callers
            .iter_mut()
            .filter(|caller| caller.0 == letter)
            .for_each(|caller| caller.1 = client.clone());
    }

    pub fn caller(&self, letter: char) -> &Client {
        &self.callers.iter().find(|caller| caller.0 == letter).unwrap().1
    }

    /// A file owned by owen, created by alice.
    pub fn file(&mut self) -> (Fid, String) {
        self.count += 1;
        let text = format!("f{}", self.count);
        let fid = self.caller('a').create(self.dir, &text).unwrap().fid;
        let status = SetStatus { owner: Some(OWEN), ..SetStatus::default() };
        self.caller('L').ask(fs::StoreStatus { fid, status }).unwrap();
        (fid, text)
    }

    /// An unused name.
    pub fn fresh(&mut self) -> String {
        self.count += 1;
        format!("n{}", self.count)
    }
}

pub fn list() -> AclText {
    AclText::new("3\n1\nadmin:staff\t63\nalice\t127\nowen\t4\nfrank\t127\n\0").unwrap()
}

/// Whether a call passed the check of its caller.
pub fn passed<T: std::fmt::Debug>(outcome: Result<T, CallError>, refusals: &[AbortCode]) -> bool {
    match outcome {
        Ok(_) => true,
        Err(CallError::Abort(code)) if refusals.contains(&code) => false,
        Err(CallError::Abort(code)) => panic!("neither done nor refused: {code}"),
        Err(error) => panic!("{error}"),
    }
}

pub fn ok<T: std::fmt::Debug>(outcome: Result<T, CallError>) -> bool {
    passed(outcome, &[Errno::EACCES.to_uae(), Errno::EPERM.to_uae()])
}

/// The same for calls on a lock that alice's machine holds: EINVAL says that the caller's machine does not
/// hold it, which is no matter of rights.
pub fn may_lock<T: std::fmt::Debug>(outcome: Result<T, CallError>) -> bool {
    match outcome {
        Err(CallError::Abort(code)) if code == Errno::EINVAL.to_uae() => true,
        other => ok(other),
    }
}

/// The volume's setting is looked at after the right.
pub fn may_ask<T: std::fmt::Debug>(outcome: Result<T, CallError>) -> bool {
    match outcome {
        Err(CallError::Abort(code)) if code == Errno::EOPNOTSUPP.to_uae() => true,
        other => ok(other),
    }
}
