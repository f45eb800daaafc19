//! Moves of a drive that says what its script says: replies right and wrong, bytes, credit, and what belongs to no request.

use afs_datapath::capability::{DriveId, Generation, KeyEpoch, Nonce, Refusal, TicketId};
use afs_datapath::frame::{
    ChunkReply, DriveStatus, Failure, Goodbye, HandleNumber, Hello, Message, OPEN_END, RequestId, Welcome,
};
use afs_drive::{ChunkId, Usage};

use super::script::Script;
use super::watched_chunks::chunk;

pub fn welcome(version: u32, script: &mut Script) -> Welcome {
    Welcome {
        version: if script.once_in(30) { script.word() } else { version },
        nonce: Nonce([script.byte(); 32]),
        drive: DriveId(0xd1),
        epoch: KeyEpoch(5),
        requests_max: script.pick(&[0, 1, 2, 8, 8, 8, u32::MAX]),
        handles_max: script.pick(&[8, 8, 8, 8, 8, 8, 8, 8, 8, 1, 0, u32::MAX]),
        store_credit: script.pick(&[0, 1000, 512 << 10, 512 << 10, u32::MAX]),
    }
}

pub fn failed(request: RequestId, script: &mut Script) -> Message {
    let failures = [
        Failure::Busy,
        Failure::Io,
        Failure::OtherVersion,
        Failure::NoHandle,
        Failure::Refused(Refusal::Revoked),
        Failure::Damaged,
    ];
    Message::Failed { request, failure: script.pick(&failures) }
}

pub fn announce(request: RequestId, script: &mut Script) -> Message {
    let length = match script.below(4) {
        0 => OPEN_END,
        _ => u64::from(script.length()),
    };
    Message::Announce { request, length, file_length: u64::from(script.length()) }
}

pub fn end(request: RequestId, script: &mut Script) -> Message {
    Message::Announce { request, length: u64::from(script.length()), file_length: 0 }
}

pub fn stored(request: RequestId, script: &mut Script) -> Message {
    Message::Stored { request, ticket: TicketId(script.byte().into()) }
}

pub fn performed(request: RequestId, script: &mut Script) -> Message {
    let usage = Usage { free: script.word().into(), total: 9 };
    let reply = match script.below(6) {
        0 => ChunkReply::Done,
        1 => ChunkReply::Status(DriveStatus::default()),
        2 => ChunkReply::Swept { removed: true, missing: script.word(), one_missing: ChunkId::MIN },
        3 => ChunkReply::Revoked { latest: Generation(1) },
        4 => ChunkReply::Begun { run: 1, mark: ChunkId::MAX, usage },
        _ => ChunkReply::Written { chunk: chunk(), usage },
    };
    Message::Performed { request, reply }
}

/// Messages that drives do not send, or not now.
pub fn misplaced(request: RequestId, script: &mut Script) -> Message {
    let nonce = Nonce([1; 32]);
    match script.below(5) {
        0 => Message::Hello(Hello { version: 1, nonce }),
        1 => Message::Welcome(welcome(1, script)),
        2 => Message::Cancel { request },
        3 => Message::Withdraw { handle: HandleNumber(0) },
        _ => Message::Goodbye(script.pick(&[
            Goodbye::Done,
            Goodbye::Idle,
            Goodbye::Violation,
            Goodbye::Version,
        ])),
    }
}
