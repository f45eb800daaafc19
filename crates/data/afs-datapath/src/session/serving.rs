//! The drive's end of a connection.

mod attempt;
mod bound;
mod chunks;
mod grant;
mod reading;
mod role;
mod storing;
mod taken;

use std::sync::Arc;
use std::time::Duration;

use afs_env::future::{Either, select};
use afs_env::{ByteListener, ByteStream, EnvExt, EnvRef};
use bytes::BytesMut;

pub use taken::Taken;

use super::connection_table::ConnectionEntry;
use super::driver::Driver;
use super::first::{read_first, write_first};
use super::limits::STORE_WINDOW;
use super::link::Link;
use super::state::Side;
use super::{Drive, Lost};
use crate::capability::{Nonce, Nonces};
use crate::frame::{Goodbye, Hello, Message, VERSION, Welcome};
use crate::tls::{self, Offer};
use role::DriveRole;

/// Pause after an error of a listener: a shortage that time may end.
const PAUSE: Duration = Duration::from_secs(1);

/// Serves all connections of a listener, each in a task of its own, until [`Drive::stop`]. Dropping the future ends no
/// connection.
pub async fn accept(env: EnvRef, mut listener: Box<dyn ByteListener>, offer: Offer, drive: Arc<Drive>) {
    loop {
        let accepted = match select(listener.accept(), drive.stopped()).await {
            Either::Left(accepted) => accepted,
            Either::Right(()) => return,
        };
        match accepted {
            Ok(stream) => spawn(&env, stream, &offer, &drive),
            Err(error) => {
                tracing::warn!(%error, "no connection of the data path could be accepted");
                env.sleep(PAUSE).await;
            }
        }
    }
}

fn spawn(env: &EnvRef, stream: Box<dyn ByteStream>, offer: &Offer, drive: &Arc<Drive>) {
    let (own, offer, drive) = (env.clone(), offer.clone(), drive.clone());
    env.spawn(Box::pin(async move {
        let peer = stream.peer_addr();
        if let Err(lost) = serve(own, stream, &offer, drive).await {
            tracing::debug!(%peer, %lost, "a connection of the data path has ended");
        }
    }));
}

/// Serves one connection until its end, or until [`Drive::stop`]. A connection beyond the drive's limits is closed without a
/// word, and so is one that gives way to a newer one.
///
/// # Errors
/// Why it ended, unless the client said goodbye or the drive was stopped.
pub async fn serve(
    env: EnvRef,
    stream: Box<dyn ByteStream>,
    offer: &Offer,
    drive: Arc<Drive>,
) -> Result<(), Lost> {
    let Some(entry) = drive.connections.take(stream.peer_addr().ip()).map(Arc::new) else {
        drive.counters.turned_away.add(1);
        return Err(Lost::Closed);
    };
    let conversation = converse(&env, stream, offer, &drive, entry.clone());
    let lost = match select(conversation, entry.ended()).await {
        Either::Left(lost) => lost,
        Either::Right(()) => {
            drive.counters.turned_away.add(1);
            return Err(Lost::Closed);
        }
    };
    match lost {
        Lost::Goodbye(Goodbye::Done) | Lost::Closed => Ok(()),
        lost => {
            if matches!(lost, Lost::Frame(_) | Lost::Violation(_)) {
                drive.counters.violations.add(1);
            }
            Err(lost)
        }
    }
}

/// Returns why the connection ended.
async fn converse(
    env: &EnvRef,
    stream: Box<dyn ByteStream>,
    offer: &Offer,
    drive: &Arc<Drive>,
    entry: Arc<ConnectionEntry>,
) -> Lost {
    let patience = drive.limits.patience;
    let peer = stream.peer_addr();
    let opening = async {
        let (stream, received) = tls::receive(env, stream, offer).await?;
        greet(env, stream, received, drive).await
    };
    let greeted = match select(env.timeout(patience.handshake, opening), drive.stopped()).await {
        Either::Left(Ok(Ok(greeted))) => greeted,
        Either::Left(Ok(Err(lost))) => return lost,
        Either::Left(Err(_)) => return Lost::Handshake,
        Either::Right(()) => return Lost::Closed,
    };
    drive.counters.connections.add(1);
    let role = DriveRole::new(drive.clone(), peer, greeted.nonces, entry);
    let link = Link::new(env.clone(), Side::Drive);
    let mut driver = Driver::new(link.clone(), greeted.stream, greeted.received, role, patience);
    match select(&mut driver, drive.stopped()).await {
        Either::Left(lost) => lost,
        Either::Right(()) => {
            link.with(|state| state.close());
            driver.await
        }
    }
}

struct Greeted {
    stream: Box<dyn ByteStream>,
    received: BytesMut,
    nonces: Nonces,
}

async fn greet(
    env: &EnvRef,
    mut stream: Box<dyn ByteStream>,
    mut received: BytesMut,
    drive: &Drive,
) -> Result<Greeted, Lost> {
    let hello = match read_first(&mut stream, &mut received).await? {
        Message::Hello(Hello { version, nonce }) if version == VERSION => nonce,
        Message::Hello(_) => {
            write_first(&mut stream, &Message::Goodbye(Goodbye::Version)).await?;
            return Err(Lost::Violation("another version of the protocol"));
        }
        _ => return Err(Lost::Violation("a client begins with a hello")),
    };
    let nonce = Nonce(env.random_bytes());
    write_first(&mut stream, &Message::Welcome(welcome(drive, nonce))).await?;
    Ok(Greeted { stream, received, nonces: Nonces { drive: nonce, client: hello } })
}

fn welcome(drive: &Drive, nonce: Nonce) -> Welcome {
    let key = drive.key();
    Welcome {
        version: VERSION,
        nonce,
        drive: key.drive(),
        epoch: key.epoch(),
        requests_max: drive.limits.requests_per_connection,
        handles_max: drive.limits.handles_per_connection,
        store_credit: STORE_WINDOW,
    }
}
