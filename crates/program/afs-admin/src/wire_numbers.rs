//! Conversions between wire types and the plain numbers of the journal.

macro_rules! kept {
    ($($module:ident: $type:ty as $inner:ty;)*) => { $(
        pub(crate) mod $module {
            use serde::{Deserialize, Deserializer, Serialize, Serializer};

            pub(crate) fn serialize<S: Serializer>(id: &$type, to: S) -> Result<S::Ok, S::Error> {
                id.0.serialize(to)
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<$type, D::Error> {
                <$inner>::deserialize(from).map(<$type>::from)
            }
        }
    )* };
}

kept! {
    volume: afs_wire::ids::VolumeId as u32;
    partition: afs_wire::ids::PartitionNumber as i32;
    date: afs_wire::ids::UnixSeconds as u32;
}
