//! Step names of an operation, read from the type of its plan through serde, so that no separate list can be
//! out of date.

use serde::de::value::{Error, StrDeserializer};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

/// The names of the steps of a plan, in order.
pub(crate) fn steps<'de, P: Deserialize<'de>>() -> &'static [&'static str] {
    let mut found: &'static [&'static str] = &[];
    // No value is made: deserialization ends as soon as the names are known.
    let _ = P::deserialize(Reader { found: &mut found, done: false });
    found
}

/// Deserializer that offers a plan its field `step` and records the permitted words.
struct Reader<'a> {
    found: &'a mut &'static [&'static str],
    done: bool,
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Error> {
        *self.found = variants;
        Err(Error::custom("the names are known"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl<'de> MapAccess<'de> for Reader<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(None);
        }
        seed.deserialize(StrDeserializer::new("step")).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(Reader { found: &mut *self.found, done: true })
    }
}

#[cfg(test)]
mod tests {
    use crate::steps_of;

    #[test]
    fn the_steps_are_those_of_the_journal() {
        let moved = steps_of("move").unwrap();
        assert_eq!((moved.first(), moved.last()), (Some(&"lock"), Some(&"undo")));
        assert_eq!(steps_of("release").unwrap(), ["lock", "clone", "send", "finish", "back-out"]);
        assert_eq!(steps_of("backup").unwrap(), ["lock", "clone"]);
        assert_eq!(steps_of("dance"), None);
    }
}
