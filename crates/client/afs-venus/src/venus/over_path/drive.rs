//! A drive made by hand, which does what a test says.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use afs_datapath::capability::{ByteRange, DriveId, DriveKey, KeyEpoch, Nonce, Revocations, TicketId};
use afs_datapath::frame::{
    Decoder, Event, Failure, Message, RequestId, StoreDescription, VERSION, Welcome, encode_data,
};
use afs_datapath::session::{
    self, DriveLimits, Identity, Objects, Offer, Opened, ReadRequest, StoreRequest, Taken,
};
use afs_env::io::{AsyncReadExt, AsyncWriteExt};
use afs_rpc::{BoxFuture, ByteStream, EnvExt, EnvRef};
use afs_wire::fs;
use afs_wire::ids::DataVersion;
use afs_wire::xdr::Fixed;
use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;

use super::conduct::{Calls, Conduct};
use super::file::{SERVER, Shared};

/// Where the drive takes connections.
const AT: SocketAddr = SocketAddr::new(IpAddr::V4(SERVER), 7200);
pub const DRIVE: DriveId = DriveId(77);
pub const EPOCH: KeyEpoch = KeyEpoch(5);

/// A store in progress: ranges and bytes.
type Pieces = Vec<(u64, Vec<u8>)>;

/// The drive.
pub struct Drive {
    file: Shared,
    pub conduct: Mutex<Conduct>,
    pub calls: Mutex<Calls>,
    tickets: Mutex<BTreeMap<u128, Pieces>>,
    /// Requests so far.
    pub requests: AtomicUsize,
    /// Connections so far.
    pub connections: AtomicUsize,
}

/// One connection.
struct Connection {
    env: EnvRef,
    received: BytesMut,
    decoder: Decoder,
    stores: BTreeMap<RequestId, (StoreDescription, Vec<u8>)>,
}

impl Drive {
    pub fn new(file: Shared, conduct: Conduct) -> Arc<Drive> {
        Arc::new(Drive {
            file,
            conduct: Mutex::new(conduct),
            calls: Mutex::new(Calls::Right),
            tickets: Mutex::default(),
            requests: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
        })
    }

    /// What the file server tells of it.
    pub fn reply(&self) -> fs::DataPathReply {
        fs::DataPathReply {
            port: AT.port(),
            clear: true,
            minimum_size: 1,
            drive: Fixed(DRIVE.0.to_be_bytes()),
            fingerprint: Fixed([9; 32]),
            addresses: fs::DriveAddresses::first_of([]),
        }
    }

    /// The pieces of a store, once.
    pub fn take(&self, ticket: u128) -> Option<Pieces> {
        self.tickets.lock().remove(&ticket)
    }

    /// Takes connections for ever.
    pub fn listen(self: &Arc<Self>, env: EnvRef) {
        let (me, mut listener) = (self.clone(), env.listen(AT).unwrap());
        env.clone().spawn(Box::pin(async move {
            while let Ok(stream) = listener.accept().await {
                let me = me.clone();
                me.connections.fetch_add(1, Ordering::SeqCst);
                let here = env.clone();
                env.spawn(Box::pin(async move { me.serve(here, stream).await.unwrap_or_default() }));
            }
        }));
    }

    async fn serve(&self, env: EnvRef, mut stream: Box<dyn ByteStream>) -> io::Result<()> {
        let (received, decoder, stores) = Default::default();
        let mut connection = Connection { env, received, decoder, stores };
        loop {
            while let Some(event) =
                connection.decoder.next(&mut connection.received).map_err(io::Error::other)?
            {
                let is_mute = *self.conduct.lock() == Conduct::Mute;
                if !is_mute {
                    self.handle(&mut connection, event, &mut stream).await?;
                }
            }
            if stream.read_buf(&mut connection.received).await? == 0 {
                return Ok(());
            }
        }
    }

    async fn handle(
        &self,
        connection: &mut Connection,
        event: Event,
        stream: &mut Box<dyn ByteStream>,
    ) -> io::Result<()> {
        match event {
            Event::Message(Message::Hello(_)) => send(stream, Message::Welcome(self.welcome())).await,
            Event::Message(Message::Read { request, range, version, .. }) => {
                self.requests.fetch_add(1, Ordering::SeqCst);
                self.read(&connection.env, stream, request, range, version).await
            }
            Event::Message(Message::Store { request, description, .. }) => {
                self.requests.fetch_add(1, Ordering::SeqCst);
                connection.stores.insert(request, (description, Vec::new()));
                self.stored(connection, request, stream).await
            }
            Event::Data(request, bytes) => {
                let Some((_, came)) = connection.stores.get_mut(&request) else { return Ok(()) };
                came.extend_from_slice(&bytes);
                self.stored(connection, request, stream).await
            }
            Event::Message(Message::Alive) => send(stream, Message::Alive).await,
            Event::Message(_) => Ok(()),
        }
    }

    fn welcome(&self) -> Welcome {
        let is_other = *self.conduct.lock() == Conduct::OtherDrive;
        Welcome {
            version: VERSION,
            nonce: Nonce([4; 32]),
            drive: if is_other { DriveId(78) } else { DRIVE },
            epoch: EPOCH,
            requests_max: 32,
            handles_max: 1024,
            store_credit: 1 << 20,
        }
    }

    async fn read(
        &self,
        env: &EnvRef,
        stream: &mut Box<dyn ByteStream>,
        request: RequestId,
        range: ByteRange,
        version: DataVersion,
    ) -> io::Result<()> {
        let (mut bytes, file_length, is_other) = {
            let file = self.file.lock();
            let length = file.bytes.len() as u64;
            let (from, to) = (range.start().min(length), range.end().min(length));
            (file.bytes[from as usize..to as usize].to_vec(), length, DataVersion(file.version) != version)
        };
        let conduct = *self.conduct.lock();
        match conduct {
            Conduct::Garbage => return stream.write_all(&[0xff; 64]).await,
            Conduct::HangUp => return Err(io::ErrorKind::ConnectionAborted.into()),
            Conduct::Silent => return Ok(()),
            Conduct::Fails(failure) => return send(stream, Message::Failed { request, failure }).await,
            _ if is_other => {
                return send(stream, Message::Failed { request, failure: Failure::OtherVersion }).await;
            }
            Conduct::Fewer | Conduct::FewerAndSilent => bytes.truncate(bytes.len() / 2),
            Conduct::More => bytes.extend([7; 100]),
            _ => {}
        }
        let length = bytes.len() as u64;
        send(stream, Message::Announce { request, length, file_length }).await?;
        match conduct {
            Conduct::Half => bytes.truncate(bytes.len() / 2),
            Conduct::FewerAndSilent => return Ok(()),
            Conduct::Drips => return drip(env, stream, request, &bytes).await,
            _ => {}
        }
        send_data(stream, request, bytes.clone().into()).await?;
        // Enough for any buffer in between.
        for _ in 0..if conduct == Conduct::Endless { 10_000 } else { 0 } {
            send_data(stream, request, bytes.clone().into()).await?;
        }
        Ok(())
    }

    /// Replies if all bytes have come.
    async fn stored(
        &self,
        connection: &mut Connection,
        request: RequestId,
        stream: &mut Box<dyn ByteStream>,
    ) -> io::Result<()> {
        let Some((description, came)) = connection.stores.get(&request) else { return Ok(()) };
        if (came.len() as u64) < description.total() {
            return Ok(());
        }
        let Some((description, came)) = connection.stores.remove(&request) else { return Ok(()) };
        let conduct = *self.conduct.lock();
        match conduct {
            Conduct::Garbage => return stream.write_all(&[0xff; 64]).await,
            Conduct::HangUp => return Err(io::ErrorKind::ConnectionAborted.into()),
            Conduct::Silent | Conduct::Half | Conduct::Endless => return Ok(()),
            Conduct::Fails(failure) => return send(stream, Message::Failed { request, failure }).await,
            _ => {}
        }
        let mut rest = &came[..];
        let mut pieces = Pieces::new();
        for range in description.ranges() {
            let (bytes, behind) = rest.split_at(range.len() as usize);
            pieces.push((range.start(), bytes.to_vec()));
            rest = behind;
        }
        let ticket = u128::from(request.0) + 1000 * self.connections.load(Ordering::SeqCst) as u128;
        if conduct != Conduct::WrongTicket {
            self.tickets.lock().insert(ticket, pieces);
        }
        send(stream, Message::Stored { request, ticket: TicketId(ticket) }).await
    }
}

/// A drive with TLS and a key that nobody was told of.
pub fn listen_with_tls(env: EnvRef) {
    let offer = Offer::tls(Identity::generate(&*env).unwrap());
    let key = DriveKey::new(DRIVE, EPOCH, [8; 32]);
    let drive = session::Drive::new(key, Revocations::default(), Arc::new(Nothing), DriveLimits::default());
    let listener = env.listen(AT).unwrap();
    env.spawn(Box::pin(session::accept(env.clone(), listener, offer, drive)));
}

/// No file at all.
struct Nothing;

impl Objects for Nothing {
    fn read(&self, _: ReadRequest) -> BoxFuture<'static, Result<Opened, Failure>> {
        Box::pin(async { Err(Failure::NoObject) })
    }

    fn store(&self, _: StoreRequest, _: Taken) -> BoxFuture<'static, Result<TicketId, Failure>> {
        Box::pin(async { Err(Failure::NoObject) })
    }
}

async fn send(stream: &mut Box<dyn ByteStream>, message: Message) -> io::Result<()> {
    stream.write_all(&message.to_frame()).await
}

async fn send_data(stream: &mut Box<dyn ByteStream>, request: RequestId, bytes: Bytes) -> io::Result<()> {
    stream.write_all(&encode_data(request, bytes.len())).await?;
    stream.write_all(&bytes).await
}

async fn drip(
    env: &EnvRef,
    stream: &mut Box<dyn ByteStream>,
    request: RequestId,
    bytes: &[u8],
) -> io::Result<()> {
    for byte in bytes {
        env.sleep(Duration::from_secs(9)).await;
        send_data(stream, request, Bytes::copy_from_slice(&[*byte])).await?;
    }
    Ok(())
}
