//! Opening of a connection: TLS, then the first frames.

use afs_env::{ByteStream, EnvExt, EnvRef};
use bytes::BytesMut;

use super::role::ClientRole;
use crate::capability::{Nonce, Nonces};
use crate::frame::{Hello, Message, VERSION, Welcome};
use crate::session::driver::Driver;
use crate::session::first::{read_first, write_first};
use crate::session::link::Link;
use crate::session::state::Side;
use crate::session::{Lost, Patience};
use crate::tls::{self, Security};

/// A connection whose handshake is complete.
pub(super) struct Opened {
    pub link: Link,
    pub welcome: Welcome,
    pub nonces: Nonces,
    stream: Box<dyn ByteStream>,
    received: BytesMut,
}

pub(super) async fn open(
    env: &EnvRef,
    stream: Box<dyn ByteStream>,
    security: Security,
    patience: &Patience,
) -> Result<Opened, Lost> {
    let opening = async {
        let stream = tls::secure(env, stream, security).await?;
        greet(env, stream).await
    };
    env.timeout(patience.handshake, opening).await.unwrap_or(Err(Lost::Handshake))
}

async fn greet(env: &EnvRef, mut stream: Box<dyn ByteStream>) -> Result<Opened, Lost> {
    let nonce = Nonce(env.random_bytes());
    write_first(&mut stream, &Message::Hello(Hello { version: VERSION, nonce })).await?;
    let mut received = BytesMut::new();
    let welcome = match read_first(&mut stream, &mut received).await? {
        Message::Welcome(welcome) if welcome.version == VERSION => welcome,
        Message::Goodbye(goodbye) => return Err(Lost::Goodbye(goodbye)),
        _ => return Err(Lost::Violation("a drive begins with a welcome of the version")),
    };
    let nonces = Nonces { drive: welcome.nonce, client: nonce };
    Ok(Opened { link: Link::new(env.clone(), Side::Client), welcome, nonces, stream, received })
}

impl Opened {
    /// Starts the driver of the connection, as a task.
    pub fn drive(self, env: &EnvRef, patience: Patience) {
        let driver = Driver::new(self.link, self.stream, self.received, ClientRole, patience);
        env.spawn(Box::pin(async move {
            let lost = driver.await;
            tracing::debug!(%lost, "a connection to a drive has ended");
        }));
    }
}
