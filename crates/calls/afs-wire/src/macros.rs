//! Macros for ids, XDR structures and tables of calls.

/// An identifier: a newtype of a number with the usual traits and its XDR form.
macro_rules! id {
    ($(#[$meta:meta])* pub struct $name:ident($inner:ty);) => {
        id_without_display! { $(#[$meta])* pub struct $name($inner); }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

/// As `id!`, for types with a `Display` of their own.
macro_rules! id_without_display {
    ($(#[$meta:meta])* pub struct $name:ident($inner:ty);) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl From<$inner> for $name {
            fn from(value: $inner) -> Self {
                Self(value)
            }
        }

        impl $crate::xdr::Encode for $name {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                self.0.encode(out);
            }
        }

        impl $crate::xdr::Decode for $name {
            #[inline]
            fn decode(r: &mut $crate::xdr::Reader<'_>) -> Result<Self, $crate::xdr::DecodeError> {
                <$inner as $crate::xdr::Decode>::decode(r).map(Self)
            }
        }
    };
}

/// A structure whose XDR form is its fields in order.
macro_rules! xdr_struct {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$field_meta:meta])* pub $field:ident : $type:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name { $(
            $(#[$field_meta])*
            #[doc = concat!("(Wire type `", stringify!($type), "`.)")]
            pub $field: $type,
        )* }

        impl $crate::xdr::Encode for $name {
            #[allow(unused_variables)]
            fn encode(&self, out: &mut Vec<u8>) {
                $( $crate::xdr::Encode::encode(&self.$field, out); )*
            }
        }

        impl $crate::xdr::Decode for $name {
            #[allow(unused_variables)]
            fn decode(r: &mut $crate::xdr::Reader<'_>) -> Result<Self, $crate::xdr::DecodeError> {
                Ok(Self { $( $field: $crate::xdr::Decode::decode(r)?, )* })
            }
        }
    };
}

/// The calls of one service, as a table: `opcode "wire name" Struct { arguments } -> Reply { results };`.
///
/// The reply is either a new structure (with a body) or an existing type (without one).
macro_rules! calls {
    (service $service:expr; $(
        $(#[$meta:meta])*
        $opcode:literal $wire:literal $name:ident { $($(#[$field_meta:meta])* $field:ident : $type:ty),* $(,)? }
            -> $reply:ident $({ $($(#[$reply_meta:meta])* $reply_field:ident : $reply_type:ty),* $(,)? })? ;
    )*) => {
        $(
            xdr_struct! {
                $(#[$meta])*
                #[doc = ""]
                #[doc = concat!("Opcode ", stringify!($opcode), ", `", $wire, "`.")]
                pub struct $name { $($(#[$field_meta])* pub $field: $type,)* }
            }

            impl $crate::rpc::Request for $name {
                const SERVICE: $crate::rpc::ServiceId = $service;
                const OPCODE: u32 = $opcode;
                const NAME: &'static str = $wire;
                type Reply = $reply;
            }

            $(
                xdr_struct! {
                    #[doc = concat!("Results of [`", stringify!($name), "`](struct@", stringify!($name), ").")]
                    pub struct $reply { $($(#[$reply_meta])* pub $reply_field: $reply_type,)* }
                }
            )?
        )*

        /// Every decoder of this table, for fuzz targets.
        #[cfg(feature = "fuzzing")]
        pub(crate) const DECODERS: &[$crate::decoders::Decoders] = &[$((
            $crate::decoders::survives::<$name>,
            $crate::decoders::survives::<<$name as $crate::rpc::Request>::Reply>,
        ),)*];

        /// The calls of this table, for a test against the service's list of opcodes.
        #[cfg(test)]
        pub(super) const CALLS: &[(u32, &str)] = &[$(($opcode, $wire),)*];
    };
}
