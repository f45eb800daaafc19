//! Chunks that a drive takes when the file server has commanded it: those alone, once, and in bounded memory and time.

use afs_datapath::capability::{Nonces, Proof, TransferId};
use afs_datapath::frame::{
    Content, Decoder, Event, Goodbye, HandleNumber, Hello, Message, Presented, RequestId, encode_data,
};
use afs_env::io::{AsyncReadExt, AsyncWriteExt};
use afs_remote::DirectDrive;

use super::*;

const ONE: TransferId = TransferId(1);
const LEN: usize = 700_000;
/// How long a drive keeps what has not met.
const WAIT: Duration = Duration::from_secs(10);

struct Commanded {
    world: World,
    direct: DirectDrive,
}

impl Commanded {
    fn new(seed: u64) -> Self {
        let world = World::new(seed);
        let direct = DirectDrive::new(world.kit.env(), world.kit.options(7));
        let told = direct.clone();
        assert!(world.kit.run(async move { told.sealing().await.is_some() }));
        Self { world, direct }
    }

    fn room(&self, number: u128) -> Room {
        self.room_of(number, HolderId(1))
    }

    fn room_of(&self, number: u128, holder: HolderId) -> Room {
        let capability = Capability {
            access: Access::WRITE | Access::COMMANDED,
            holder,
            ..self.world.room(number).capability
        };
        sealed(&kit::key(7), capability)
    }

    fn command(&self, room: &Room, transfer: TransferId, content: Content) -> bool {
        let (direct, holder, tag) = (self.direct.clone(), room.capability.holder, room.tag);
        self.world.kit.run(async move { direct.collect((holder, transfer), tag, content).await })
    }

    /// Has the file server command the transfer that a client of these tests makes.
    fn command_right(&self, room: &Room) -> bool {
        self.command(room, ONE, Content::of(&data(1, LEN)))
    }

    /// A client that sends a chunk, over a connection of its own that waits for as long as a drive may be silent.
    fn sending(
        &self,
        room: &Room,
        transfer: TransferId,
    ) -> impl Future<Output = Result<(At, ChunkRef), Error>> + Send + use<> {
        let (env, room) = (self.world.kit.sim.env(self.world.client), room.clone());
        async move {
            let stream = env.connect(at()).await.map_err(|error| Error::Lost(error.into()))?;
            let client = Client::open(env, stream, Security::Clear, Patience::default()).await?;
            let handle = client.present(&room.capability, &room.secret)?;
            let chunk = client.send(&handle, transfer, data(1, LEN)).await?;
            Ok((At { client, handle }, chunk))
        }
    }

    fn send(&self, room: &Room, transfer: TransferId) -> Result<ChunkRef, Error> {
        let sent = self.world.kit.sim.block_on(self.world.client, kit::HOUR, self.sending(room, transfer));
        sent.ok().unwrap().map(|(_, chunk)| chunk)
    }

    fn received(&self) -> u64 {
        self.world.served.counts().bytes_received
    }
}

fn failed<T>(failure: impl Into<Failure>) -> Result<T, Error> {
    Err(Error::Failed(failure.into()))
}

#[test]
fn a_command_and_its_client_meet_in_either_order_and_the_chunk_becomes_the_file_servers() {
    for seed in [21, 22, 23] {
        let here = Commanded::new(seed);
        let room = here.room(1);
        assert!(here.command_right(&room));
        let first = here.send(&room, ONE).unwrap();
        let (env, direct, tag) = (here.world.kit.env(), here.direct.clone(), room.tag);
        env.clone().spawn(Box::pin(async move {
            env.sleep(Duration::from_secs(3)).await;
            let content = Content::of(&data(1, LEN));
            assert!(direct.collect((HolderId(1), TransferId(2)), tag, content).await);
        }));
        let chunks = [first, here.send(&room, TransferId(2)).unwrap()];
        here.world.claim(room.tag, &chunks).unwrap();
        here.world.kit.sim.run_for(2 * STAGED_LIFE);
        assert!(chunks.iter().all(|chunk| here.world.is_there(*chunk)));
        assert_eq!(here.world.served.counts().refused, [0; 8]);
    }
}

#[test]
fn nothing_is_taken_without_a_command_and_each_is_for_one_transfer() {
    let here = Commanded::new(24);
    let (room, before) = (here.room(1), here.received());
    let began = here.world.kit.sim.now();
    assert_eq!(here.send(&room, ONE), failed(Failure::Stalled));
    assert!(here.world.kit.sim.now() - began >= WAIT);
    assert_eq!(here.received(), before, "no byte of it has left the client");
    assert!(here.command_right(&room) && here.send(&room, ONE).is_ok());
    assert_eq!(here.received() - before, LEN as u64);
    assert_eq!(here.send(&room, ONE), failed(Failure::Stalled), "it was used");
    assert!(here.command_right(&room));
    here.world.kit.sim.run_for(WAIT);
    assert_eq!(here.send(&room, ONE), failed(Failure::Stalled), "it was not kept");
    assert_eq!(here.received() - before, LEN as u64);
}

#[test]
fn what_was_not_commanded_is_not_taken() {
    type Wrong = fn(&Commanded, &mut Room, &mut TransferId, &mut Content);
    let other = |here: &Commanded, room: &mut Room, _: &mut TransferId, _: &mut Content| *room = here.room(2);
    let table: [(&str, Wrong, Failure); 7] = [
        ("another number", |_, _, transfer, _| transfer.0 += 1, Failure::Stalled),
        ("another client", |here, room, _, _| *room = here.room_of(1, HolderId(2)), Failure::Stalled),
        ("another room", other, Refusal::OtherObject.into()),
        ("a longer chunk", |_, _, _, content| content.length += 1, Refusal::OutOfRange.into()),
        ("a shorter chunk", |_, _, _, content| content.length -= 1, Refusal::OutOfRange.into()),
        ("one byte", |_, _, _, content| content.length = 1, Refusal::OutOfRange.into()),
        ("another checksum", |_, _, _, content| content.crc ^= 1, Refusal::OtherObject.into()),
    ];
    for (what, wrong, failure) in table {
        let here = Commanded::new(25);
        let (room, before) = (here.room(1), here.received());
        let (mut of, mut transfer, mut content) = (room.clone(), ONE, Content::of(&data(1, LEN)));
        wrong(&here, &mut of, &mut transfer, &mut content);
        assert!(here.command(&of, transfer, content), "{what}");
        assert_eq!(here.send(&room, ONE), failed(failure), "{what}");
        assert_eq!(here.received(), before, "{what}");
    }
    // Bytes that are others than the client has said.
    let here = Commanded::new(26);
    let room = here.room(1);
    let used = here.world.kit.disk.used();
    assert!(here.command_right(&room));
    let told = here.world.client(&room, |at| async move {
        let what = ChunkRequest::Send { transfer: ONE, content: Content::of(&data(1, LEN)) };
        at.client.perform(&at.handle, what, data(2, LEN)).await
    });
    assert_eq!(told, failed(Failure::Damaged));
    assert_eq!(here.world.kit.disk.used(), used, "nothing was written");
}

#[test]
fn a_room_is_for_chunks_that_are_commanded_or_for_others() {
    let here = Commanded::new(27);
    let (commanded, plain) = (here.room(1), here.world.room(2));
    let told = here.world.client(&commanded, |at| async move { at.staged(1, LEN).await });
    assert_eq!(told, failed(Refusal::NotAllowed), "without a command");
    assert!(here.command_right(&plain));
    assert_eq!(here.send(&plain, ONE), failed(Refusal::NotAllowed));
    let collect = ChunkRequest::Collect {
        holder: HolderId(1),
        tag: commanded.tag,
        transfer: ONE,
        content: Content::of(&data(1, LEN)),
    };
    for room in [&commanded, &plain] {
        let what = collect.clone();
        let told = here
            .world
            .client(room, |at| async move { at.client.perform(&at.handle, what, Bytes::new()).await });
        assert_eq!(told, failed(Refusal::NotAllowed), "a client commands nothing");
    }
    // The file server commands its own store.
    let elsewhere = here.world.claim_raw(StoreNumber(STORE.0 + 1), collect, &[]);
    assert_eq!(elsewhere, Ok(ChunkReply::Done));
    assert_eq!(here.send(&commanded, ONE), failed(Refusal::OtherObject));
    let short = sealed(
        &kit::key(7),
        Capability { range: ByteRange::new(0, LEN as u64).unwrap(), ..commanded.capability },
    );
    assert!(here.command_right(&short));
    assert_eq!(here.send(&short, ONE), failed(Refusal::OutOfRange), "a chunk counts as whole blocks");
}

#[test]
fn a_client_that_sends_bytes_before_the_command_loses_its_connection() {
    let here = Commanded::new(28);
    let (room, env) = (here.room(1), here.world.kit.sim.env(here.world.client));
    let told = here.world.kit.sim.block_on(here.world.client, kit::HOUR, async move {
        let (mut stream, mut received) = (env.connect(at()).await.unwrap(), BytesMut::new());
        let mut decoder = Decoder::default();
        let nonce = afs_datapath::capability::Nonce([5; 32]);
        let hello = Message::Hello(Hello { version: VERSION, nonce });
        stream.write_all(&hello.to_frame()).await.unwrap();
        loop {
            if let Some(Event::Message(message)) = decoder.next(&mut received).unwrap() {
                let Message::Welcome(welcome) = message else { return message };
                let nonces = Nonces { drive: welcome.nonce, client: nonce };
                let (handle, request) = (HandleNumber(0), RequestId(1));
                let proof = Presented(Proof::new(&room.capability, &room.secret, &nonces));
                let present = Message::Present { handle, capability: room.capability, proof };
                let what = ChunkRequest::Send { transfer: ONE, content: Content::of(&data(1, LEN)) };
                let send = Message::Perform { request, handle, what };
                let early = [&encode_data(request, 1)[..], b"x"].concat();
                let all = [&present.to_frame()[..], &send.to_frame(), &early].concat();
                stream.write_all(&all).await.unwrap();
            } else {
                assert!(stream.read_buf(&mut received).await.unwrap() > 0, "the drive says why");
            }
        }
    });
    assert_eq!(told.ok().unwrap(), Message::Goodbye(Goodbye::Violation));
    assert_eq!(here.world.served.counts().violations, 1);
}

/// Commands without clients take bounded room for a bounded time, and those of one client no more than its share.
#[test]
fn commands_that_nobody_waits_for_are_bounded_and_one_client_has_a_share_of_them() {
    let here = Commanded::new(29);
    let (tag, content) = (here.room(1).tag, Content::of(&data(1, LEN)));
    let taken_of = |holder, most: u128| {
        let direct = here.direct.clone();
        here.world.kit.run(async move {
            let mut taken = 0;
            while taken < most && direct.collect((HolderId(holder), TransferId(taken)), tag, content).await {
                taken += 1;
            }
            taken
        })
    };
    assert_eq!(taken_of(1, 5000), 64);
    assert_eq!(taken_of(2, 5000), 64, "another one has its own");
    let all: u128 = (3..40).map(|holder| taken_of(holder, 40)).sum();
    assert_eq!(all, 1024 - 2 * 64);
    here.world.kit.sim.run_for(WAIT);
    let room = here.room(1);
    assert!(here.command_right(&room) && here.send(&room, ONE).is_ok());
}

#[test]
fn a_client_that_gives_up_or_a_revocation_leaves_nothing_behind() {
    let here = Commanded::new(30);
    let (room, env) = (here.room(1), here.world.kit.sim.env(here.world.client));
    let gave_up = here.world.client(&room, |at| async move {
        let sending = at.client.send(&at.handle, ONE, data(1, LEN));
        Ok(env.timeout(Duration::from_secs(1), sending).await.is_err())
    });
    assert_eq!(gave_up, Ok(true));
    here.world.kit.sim.run_for(Duration::from_secs(1));
    assert_eq!(here.world.served.counts().in_progress, 0, "long before the wait is over");
    // One that waits when its room is revoked.
    let (env, served) = (here.world.kit.env(), here.world.served.clone());
    let (direct, tag) = (here.direct.clone(), room.tag);
    env.clone().spawn(Box::pin(async move {
        env.sleep(Duration::from_secs(2)).await;
        served.revocations.revoke_all();
        assert!(direct.collect((HolderId(1), ONE), tag, Content::of(&data(1, LEN))).await);
    }));
    let before = here.received();
    assert_eq!(here.send(&room, ONE), failed(Refusal::Revoked));
    assert_eq!(here.received(), before);
}

/// At whatever moment the drive ends: nothing that it has taken can be claimed, and nothing is left.
#[test]
fn a_drive_that_is_started_again_in_the_middle_has_taken_nothing() {
    for moment in 0..8 {
        let mut here = Commanded::new(31);
        let room = here.room(1);
        assert!(here.command_right(&room));
        let sending = here.sending(&room, ONE);
        let outcome = here
            .world
            .kit
            .sim
            .env(here.world.client)
            .spawn_with_result(async move { sending.await.map(|(_, chunk)| chunk) });
        here.world.kit.sim.run_for(Duration::from_micros(500 * moment));
        here.world.served = here.world.kit.crash(2);
        here.world.kit.sim.run_for(Duration::from_secs(120));
        let told = here.world.kit.sim.block_on(here.world.client, kit::HOUR, outcome).ok().unwrap();
        if let Ok(Ok(chunk)) = told {
            assert!(matches!(here.world.claim(room.tag, &[chunk]), Err(DriveError::NotStaged)), "{moment}");
        }
        // What was commanded is forgotten with the rest, and so is the room.
        assert_eq!(here.send(&room, ONE), failed(Refusal::Revoked), "{moment}");
        let (drive, live) = (here.world.kit.remote(), Arc::new(Live(Vec::new())));
        here.world.kit.run(async move { drive.sweep(live).await.unwrap() });
        assert!(here.world.kit.disk.used() < 100_000, "{moment}: {}", here.world.kit.disk.used());
    }
}
