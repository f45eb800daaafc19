//! Linux error numbers that have wire codes.

use super::{AbortCode, uae};

macro_rules! errno {
    ($($name:ident = $number:literal,)*) => {
        /// A Linux error that can be sent to a peer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(clippy::upper_case_acronyms)]
        #[repr(i32)]
        pub enum Errno { $(
            #[doc = concat!("Linux error number ", stringify!($number), ".")]
            $name = $number,
        )* }

        impl Errno {
            /// Every error there is, in order of its wire code.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name, such as `"ENOENT"`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }
        }
    };
}

errno! {
    EPERM = 1,
    ENOENT = 2,
    ESRCH = 3,
    EINTR = 4,
    EIO = 5,
    ENXIO = 6,
    E2BIG = 7,
    ENOEXEC = 8,
    EBADF = 9,
    ECHILD = 10,
    EAGAIN = 11,
    ENOMEM = 12,
    EACCES = 13,
    EFAULT = 14,
    ENOTBLK = 15,
    EBUSY = 16,
    EEXIST = 17,
    EXDEV = 18,
    ENODEV = 19,
    ENOTDIR = 20,
    EISDIR = 21,
    EINVAL = 22,
    ENFILE = 23,
    EMFILE = 24,
    ENOTTY = 25,
    ETXTBSY = 26,
    EFBIG = 27,
    ENOSPC = 28,
    ESPIPE = 29,
    EROFS = 30,
    EMLINK = 31,
    EPIPE = 32,
    EDOM = 33,
    ERANGE = 34,
    EDEADLK = 35,
    ENAMETOOLONG = 36,
    ENOLCK = 37,
    ENOSYS = 38,
    ENOTEMPTY = 39,
    ELOOP = 40,
    ENOMSG = 42,
    EIDRM = 43,
    ECHRNG = 44,
    EL2NSYNC = 45,
    EL3HLT = 46,
    EL3RST = 47,
    ELNRNG = 48,
    EUNATCH = 49,
    ENOCSI = 50,
    EL2HLT = 51,
    EBADE = 52,
    EBADR = 53,
    EXFULL = 54,
    ENOANO = 55,
    EBADRQC = 56,
    EBADSLT = 57,
    EBFONT = 59,
    ENOSTR = 60,
    ENODATA = 61,
    ETIME = 62,
    ENOSR = 63,
    ENONET = 64,
    ENOPKG = 65,
    EREMOTE = 66,
    ENOLINK = 67,
    EADV = 68,
    ESRMNT = 69,
    ECOMM = 70,
    EPROTO = 71,
    EMULTIHOP = 72,
    EDOTDOT = 73,
    EBADMSG = 74,
    EOVERFLOW = 75,
    ENOTUNIQ = 76,
    EBADFD = 77,
    EREMCHG = 78,
    ELIBACC = 79,
    ELIBBAD = 80,
    ELIBSCN = 81,
    ELIBMAX = 82,
    ELIBEXEC = 83,
    EILSEQ = 84,
    ERESTART = 85,
    ESTRPIPE = 86,
    EUSERS = 87,
    ENOTSOCK = 88,
    EDESTADDRREQ = 89,
    EMSGSIZE = 90,
    EPROTOTYPE = 91,
    ENOPROTOOPT = 92,
    EPROTONOSUPPORT = 93,
    ESOCKTNOSUPPORT = 94,
    EOPNOTSUPP = 95,
    EPFNOSUPPORT = 96,
    EAFNOSUPPORT = 97,
    EADDRINUSE = 98,
    EADDRNOTAVAIL = 99,
    ENETDOWN = 100,
    ENETUNREACH = 101,
    ENETRESET = 102,
    ECONNABORTED = 103,
    ECONNRESET = 104,
    ENOBUFS = 105,
    EISCONN = 106,
    ENOTCONN = 107,
    ESHUTDOWN = 108,
    ETOOMANYREFS = 109,
    ETIMEDOUT = 110,
    ECONNREFUSED = 111,
    EHOSTDOWN = 112,
    EHOSTUNREACH = 113,
    EALREADY = 114,
    EINPROGRESS = 115,
    ESTALE = 116,
    EUCLEAN = 117,
    ENOTNAM = 118,
    ENAVAIL = 119,
    EISNAM = 120,
    EREMOTEIO = 121,
    EDQUOT = 122,
    ENOMEDIUM = 123,
    EMEDIUMTYPE = 124,
    ECANCELED = 125,
    ENOTRECOVERABLE = 131,
    EOWNERDEAD = 130,
}

impl Errno {
    /// The Linux error number.
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// The error with a Linux number, if the wire has a code for it.
    pub fn from_linux(number: i32) -> Option<Self> {
        Self::ALL.iter().copied().find(|errno| errno.number() == number)
    }

    /// The wire code. All current peers understand it (`docs/protocol/fileserver.md` "9.2 errno ↔ UAE translation").
    pub fn to_uae(self) -> AbortCode {
        // Of two codes for one number (EAGAIN and EWOULDBLOCK) clients know the first.
        let index = uae::UAE.iter().position(|(_, number)| *number == self.number()).unwrap_or_default();
        AbortCode(uae::BASE + index as i32)
    }
}

impl From<Errno> for AbortCode {
    fn from(errno: Errno) -> Self {
        errno.to_uae()
    }
}

impl std::fmt::Display for Errno {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name(), self.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_survives_the_wire() {
        for errno in Errno::ALL {
            assert_eq!(errno.to_uae().to_errno(), Some(errno.number()), "{errno}");
            assert_eq!(Errno::from_linux(errno.number()), Some(*errno));
        }
    }

    #[test]
    fn codes_as_documented() {
        assert_eq!(Errno::EPERM.to_uae(), AbortCode(0x2f6df00));
        assert_eq!(Errno::EAGAIN.to_uae(), AbortCode(0x2f6df0a));
        assert_eq!(Errno::ELOOP.to_uae(), AbortCode(0x2f6df27));
        assert_eq!(Errno::EDQUOT.to_uae(), AbortCode(0x2f6df78));
        assert_eq!(Errno::EOPNOTSUPP.to_uae(), AbortCode(0x2f6df5d));
        assert_eq!(AbortCode(0x2f6df28).to_errno(), Some(11));
    }
}
