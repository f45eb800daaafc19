//! Settings of volumes: a few values, each with a name in commands and a number in calls and headers.

/// The rest of a setting that has `ALL`, `name` and `number`. `$what` names it where a number is refused.
macro_rules! setting {
    ($name:ident, $what:literal) => {
        impl $name {
            /// That of a number.
            #[must_use]
            pub fn of_number(number: u32) -> Option<Self> {
                Self::ALL.into_iter().find(|value| u32::from(value.number()) == number)
            }

            /// That of a name.
            #[must_use]
            pub fn of_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }
        }

        impl $crate::xdr::Encode for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                u32::from(self.number()).encode(out);
            }
        }

        impl $crate::xdr::Decode for $name {
            fn decode(r: &mut $crate::xdr::Reader<'_>) -> Result<Self, $crate::xdr::DecodeError> {
                let value = r.u32()?;
                Self::of_number(value).ok_or($crate::xdr::DecodeError::BadValue { what: $what, value })
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
