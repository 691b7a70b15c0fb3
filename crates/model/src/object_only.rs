//! An object is an object. The derived readers of structs take a list of values in the order of the fields, too, which
//! nobody who sends JSON means.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

struct Object<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

/// Reads a struct from an object alone.
pub fn object_only<'de, D: Deserializer<'de>, T: Deserialize<'de>>(input: D) -> Result<T, D::Error> {
    input.deserialize_map(Object(PhantomData))
}

/// The same, where there may be none.
pub fn optional_object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    input: D,
) -> Result<Option<T>, D::Error> {
    struct Only<T>(T);

    impl<'de, T: Deserialize<'de>> Deserialize<'de> for Only<T> {
        fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
            object_only(input).map(Only)
        }
    }

    Ok(Option::<Only<T>>::deserialize(input)?.map(|Only(value)| value))
}
