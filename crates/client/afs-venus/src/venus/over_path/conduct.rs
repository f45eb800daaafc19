//! What drives and file servers of tests do with requests.

use afs_datapath::capability::Refusal;
use afs_datapath::session::Failure;

/// What the drive does with requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conduct {
    /// What it should.
    Right,
    /// It says that it is another drive.
    OtherDrive,
    /// It takes streams and says nothing.
    Mute,
    /// It sends what is no frame in reply to a request.
    Garbage,
    /// It closes the stream in reply to a request.
    HangUp,
    /// It replies to no request.
    Silent,
    /// It announces bytes, sends half of them, and then nothing.
    Half,
    /// It announces fewer bytes than it was asked for, and sends these.
    Fewer,
    /// It announces fewer bytes than it was asked for, and sends nothing.
    FewerAndSilent,
    /// It sends a byte in nine seconds.
    Drips,
    /// It announces more bytes than it was asked for, and sends these.
    More,
    /// It announces the right number of bytes, and sends many more.
    Endless,
    /// It fails every request so.
    Fails(Failure),
    /// It gives a ticket that the file server does not have.
    WrongTicket,
}

/// What the file server does with the calls for the data path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Calls {
    /// What it should.
    Right,
    /// It gives no capability.
    Denies,
    /// It gives no capability, and says so later than anybody waits for it.
    Delays,
    /// It gives capabilities for another file.
    OtherFile,
    /// It gives capabilities to write for those to read, and the other way round.
    OtherUse,
    /// It does not know Commit.
    NoCommit,
}

/// Every way in which requests are served that is not the right one.
pub fn wrong() -> impl Iterator<Item = Conduct> {
    let failures = [
        Failure::NoHandle,
        Failure::OtherVersion,
        Failure::NoObject,
        Failure::Unavailable,
        Failure::Busy,
        Failure::NoSpace,
        Failure::Io,
        Failure::Invalid,
        Failure::Stalled,
    ];
    let refusals = Refusal::ALL.into_iter().map(Failure::Refused);
    let others = [
        Conduct::OtherDrive,
        Conduct::Mute,
        Conduct::Garbage,
        Conduct::HangUp,
        Conduct::Silent,
        Conduct::Half,
        Conduct::Fewer,
        Conduct::FewerAndSilent,
        Conduct::Drips,
        Conduct::More,
        Conduct::Endless,
        Conduct::WrongTicket,
    ];
    failures.into_iter().chain(refusals).map(Conduct::Fails).chain(others)
}
