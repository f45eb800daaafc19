//! An S3 server of another implementation (moto), and a proxy before it that makes faults.

pub mod lies;
pub mod proxy;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// moto; stopped when this is dropped.
pub struct Moto {
    child: Child,
    pub address: SocketAddr,
}

/// A Python that has moto: that of `scripts/install-needed test`, or the system's. `None`, said past the test program's capture, if there is
/// none; on CI that is a failure.
pub fn python() -> Option<PathBuf> {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let root = folders.find(|folder| folder.join("Cargo.lock").exists()).unwrap_or(Path::new("/"));
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let candidates = [target.join("moto/bin/python"), root.join("target/moto/bin/python"), "python3".into()];
    let has_moto = |python: &PathBuf| {
        let mut look = Command::new(python);
        look.args(["-c", "import moto.server"]).stderr(Stdio::null());
        look.status().is_ok_and(|status| status.success())
    };
    let found = candidates.into_iter().find(has_moto);
    if found.is_none() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "needed on CI: moto (make deps)");
        let _ = writeln!(std::io::stderr(), "SKIPPED: moto is not installed (make deps)");
    }
    found
}

impl Moto {
    /// Starts it on a free port, and makes the bucket `andrew`.
    pub fn start(python: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new(python)
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let moto = Self { child, address: SocketAddr::from(([127, 0, 0, 1], port)) };
        moto.make_bucket();
        moto
    }

    /// Repeats until the server listens.
    fn make_bucket(&self) {
        let given_up = Instant::now() + Duration::from_secs(120);
        let request = format!(
            "PUT /andrew HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            self.address
        );
        while !self.ask(&request).is_some_and(|reply| reply.starts_with("HTTP/1.1 200")) {
            assert!(Instant::now() < given_up, "moto does not serve");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn ask(&self, request: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.write_all(request.as_bytes()).ok()?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply).ok()?;
        Some(reply)
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
