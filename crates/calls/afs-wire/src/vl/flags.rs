//! Flags of entries and sites. Source: `docs/protocol/vldb.md` "2.1 Flags".

macro_rules! flags {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$bit_meta:meta])* $bit:ident = $value:literal;)* }) => {
        id_without_display! {
            $(#[$meta])*
            pub struct $name(u32);
        }

        impl $name {
            $($(#[$bit_meta])* pub const $bit: Self = Self($value);)*

            /// No bit.
            pub const NONE: Self = Self(0);

            /// Whether every bit of `wanted` is set.
            pub const fn contains(self, wanted: Self) -> bool {
                self.0 & wanted.0 == wanted.0
            }

            /// Whether any bit of `wanted` is set.
            pub const fn intersects(self, wanted: Self) -> bool {
                self.0 & wanted.0 != 0
            }

            /// These bits and those of `more`.
            #[must_use]
            pub const fn with(self, more: Self) -> Self {
                Self(self.0 | more.0)
            }

            /// These bits but those of `fewer`.
            #[must_use]
            pub const fn without(self, fewer: Self) -> Self {
                Self(self.0 & !fewer.0)
            }
        }

        impl std::ops::BitOr for $name {
            type Output = Self;

            fn bitor(self, more: Self) -> Self {
                self.with(more)
            }
        }
    };
}

flags! {
    /// Which volumes of a group exist, and which operation holds the entry. Servers store the caller's bits
    /// unchanged.
    pub struct EntryFlags {
        /// The read-write volume exists.
        RW_EXISTS = 0x1000;
        /// A read-only volume exists.
        RO_EXISTS = 0x2000;
        /// The backup volume exists.
        BACK_EXISTS = 0x4000;
        /// A DFS fileset.
        DFS_FILESET = 0x8000;
        /// The bits of the operation that holds the entry.
        LOCK_OPERATIONS = 0x1f0;
    }
}

flags! {
    /// Kind and state of the volume at a site.
    pub struct SiteFlags {
        /// Has the new release already, during a release.
        NEW_REPSITE = 0x01;
        /// A read-only volume.
        RO_VOLUME = 0x02;
        /// The read-write volume.
        RW_VOLUME = 0x04;
        /// The backup volume; normally inferred from the read-write site instead.
        BACK_VOLUME = 0x08;
        /// The server is given by its UUID; in [`UuidEntry`](super::UuidEntry) only.
        UUID = 0x10;
        /// Not released to yet.
        DONT_USE = 0x20;
        /// A read-write replica; not used.
        RW_REPLICA = 0x40;
    }
}

flags! {
    /// The operation that an entry is locked for: exactly one of these.
    pub struct LockOperation {
        /// The volume moves.
        MOVE = 0x10;
        /// The volume is released.
        RELEASE = 0x20;
        /// The backup volume is made.
        BACKUP = 0x40;
        /// The volume is deleted, or a site is added.
        DELETE = 0x80;
        /// The volume is dumped or restored.
        DUMP = 0x100;
    }
}

impl LockOperation {
    /// Whether exactly one operation is named.
    pub const fn is_valid(self) -> bool {
        matches!(self, Self::MOVE | Self::RELEASE | Self::BACKUP | Self::DELETE | Self::DUMP)
    }
}

flags! {
    /// Which parts of a lock to release. Tools pass [`ReleaseType::ALL`]; no bit keeps the lock.
    pub struct ReleaseType {
        /// Its time: unlocks the entry.
        TIMESTAMP = 1;
        /// Its operation.
        OPERATION = 2;
        /// Its owner.
        OWNER = 4;
        /// All of it.
        ALL = 7;
    }
}
