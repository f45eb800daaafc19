//! Byte streams over the kernel's TCP.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use afs_env::io::{AsyncRead, AsyncWrite, ReadBuf};
use afs_rpc::{ByteListener, ByteStream};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Handle;

pub(crate) fn listen(pool: &Handle, at: SocketAddr) -> io::Result<Box<dyn ByteListener>> {
    let listener = std::net::TcpListener::bind(at)?;
    listener.set_nonblocking(true)?;
    let local = listener.local_addr()?;
    let _pool = pool.enter();
    Ok(Box::new(Listening { listener: TcpListener::from_std(listener)?, local }))
}

/// The future may be polled by any thread, so it enters the pool itself.
pub(crate) async fn connect(
    pool: Handle,
    to: SocketAddr,
    segment: Option<u32>,
) -> io::Result<Box<dyn ByteStream>> {
    let socket = if to.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    if let Some(segment) = segment {
        // TCP tells the peer this size in its first packet, so that it must be set before the connection is made (tcp(7)).
        SockRef::from(&socket).set_tcp_mss(segment)?;
    }
    let mut connecting = Box::pin(socket.connect(to));
    let stream = poll_fn(|cx| {
        let _pool = pool.enter();
        connecting.as_mut().poll(cx)
    })
    .await?;
    Ok(Box::new(Connected::new(stream)?))
}

struct Listening {
    listener: TcpListener,
    local: SocketAddr,
}

impl ByteListener for Listening {
    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Box<dyn ByteStream>>> {
        loop {
            match ready!(self.listener.poll_accept(cx)) {
                // A connection that ended before it was accepted is no error of the listener (accept(2)).
                Ok((stream, _)) => {
                    if let Ok(connected) = Connected::new(stream) {
                        return Poll::Ready(Ok(Box::new(connected)));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

struct Connected {
    stream: TcpStream,
    local: SocketAddr,
    peer: SocketAddr,
}

impl Connected {
    /// Sets TCP_NODELAY: small messages are sent at once. A caller that wants larger segments writes more bytes per
    /// call.
    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let (local, peer) = (stream.local_addr()?, stream.peer_addr()?);
        Ok(Self { stream, local, peer })
    }
}

impl ByteStream for Connected {
    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn peer_addr(&self) -> SocketAddr {
        self.peer
    }
}

impl AsyncRead for Connected {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Connected {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
