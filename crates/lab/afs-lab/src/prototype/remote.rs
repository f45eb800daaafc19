//! A client's connections to servers that are other processes.

use super::call::{Call, Refusal, Reply, ServerNumber};
use super::cell::Connections;
use super::wire::{Head, Request, broken};
use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Seek, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a server may take for a connection, and may send or take nothing of an exchange, before it counts as gone. It may have a small
/// part of a processor for many clients.
const PATIENCE: Duration = Duration::from_secs(120);

/// Connections, made at the first call; a process of the server's serves each until it is closed.
pub(super) struct Remote {
    servers: Vec<SocketAddr>,
    open: BTreeMap<ServerNumber, BufReader<TcpStream>>,
    patience: Duration,
}

impl Remote {
    pub(super) fn to(servers: Vec<SocketAddr>) -> Self {
        Self { servers, open: BTreeMap::new(), patience: PATIENCE }
    }

    fn connection(&mut self, at: ServerNumber) -> Result<BufReader<TcpStream>, Refusal> {
        if let Some(open) = self.open.remove(&at) {
            return Ok(open);
        }
        let address = self.servers.get(at.0 as usize).ok_or(Refusal::Absent)?;
        let stream = TcpStream::connect_timeout(address, self.patience)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.patience))?;
        stream.set_write_timeout(Some(self.patience))?;
        Ok(BufReader::new(stream))
    }
}

impl Connections for Remote {
    fn call(&mut self, at: ServerNumber, path: &str, call: Call<'_>) -> Result<Reply, Refusal> {
        let mut connection = self.connection(at)?;
        // A connection on which an exchange broke off is not used again.
        let reply = exchange(&mut connection, path, call).map_err(|why| late(why, self.patience))?;
        self.open.insert(at, connection);
        reply
    }
}

/// Tells what a time-out of a socket is.
fn late(why: Refusal, patience: Duration) -> Refusal {
    match why {
        Refusal::Io(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            let text = format!("the server did nothing for {patience:?}");
            io::Error::new(io::ErrorKind::TimedOut, text).into()
        }
        other => other,
    }
}

/// Sends a call, and reads the reply to its end.
fn exchange(
    connection: &mut BufReader<TcpStream>,
    path: &str,
    call: Call<'_>,
) -> Result<Result<Reply, Refusal>, Refusal> {
    let (mut data, mut length) = (None, 0);
    if let Call::Store(mut copy) = call {
        copy.rewind()?;
        length = copy.metadata()?.len();
        data = Some(copy.take(length));
    }
    let stream = connection.get_mut();
    stream.write_all(&Request::of(path, call, length).bytes()?)?;
    if let Some(mut data) = data {
        io::copy(&mut data, stream)?;
    }
    let head = Head::read(connection)?;
    Ok(match (head, call) {
        (Head::Refused(why), _) => Err(why),
        (Head::Valid(is_valid), _) => Ok(Reply::Valid(is_valid)),
        (Head::Status(stamp), _) => Ok(Reply::Status(stamp)),
        (Head::Names(length), _) => Ok(Reply::Names(names(connection, length)?)),
        (Head::Data(stamp, length), Call::Fetch(mut copy)) => {
            if io::copy(&mut connection.take(length), &mut copy)? < length {
                return Err(Refusal::Io(io::ErrorKind::UnexpectedEof.into()));
            }
            Ok(Reply::Status(stamp))
        }
        (Head::Data(..), _) => return Err(broken("data for a call that has none").into()),
    })
}

fn names(from: &mut dyn Read, length: u64) -> io::Result<Vec<String>> {
    let text = io::read_to_string(from.take(length))?;
    if (text.len() as u64) < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(text.split_terminator('\0').map(str::to_owned).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};

    /// A client of a server that takes connections and says what it is given here.
    fn client(said: &'static [u8], patience: Duration) -> (Remote, std::thread::JoinHandle<TcpStream>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let remote = Remote { patience, ..Remote::to(vec![listener.local_addr().unwrap()]) };
        let server = std::thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            // The request of `list`.
            stream.read_exact(&mut [0; 1 + 8 + 2 + 3]).unwrap();
            stream.write_all(said).unwrap();
            stream
        });
        (remote, server)
    }

    fn list(remote: &mut Remote) -> Refusal {
        remote.call(ServerNumber(0), "dir", Call::ListDir).unwrap_err()
    }

    #[test]
    fn a_server_that_stays_silent_ends_the_call() {
        let (mut remote, server) = client(&[2, 0, 0, 0, 0], Duration::from_millis(50));
        assert_eq!(list(&mut remote).to_string(), "the server did nothing for 50ms");
        drop(server.join().unwrap());
        assert!(remote.open.is_empty(), "the connection was kept");
    }

    #[test]
    fn a_list_that_was_cut_is_none() {
        let (mut remote, server) = client(b"\x02\0\0\0\0\0\0\0\x08one\0", PATIENCE);
        std::thread::spawn(move || drop(server.join().unwrap()));
        let why = list(&mut remote);
        assert!(matches!(&why, Refusal::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof), "{why}");
    }
}
