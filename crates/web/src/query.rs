//! The query of a request as values: pairs of names and texts, read into whatever a route asks for.
//!
//! A text that is no number where one is asked for is told as JSON would be: by its name, and by what is allowed.

use std::borrow::Cow;

use rota_model::check::Invalid;
use serde::de::value::{Error, MapDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;
use url::form_urlencoded;

use crate::extract::pointer;
use crate::plain_words::in_plain_words;

/// What a query asks for; otherwise the parameter at fault, as a pointer.
pub(crate) fn read<T: DeserializeOwned>(query: &str) -> Result<T, Invalid> {
    let pairs = form_urlencoded::parse(query.as_bytes()).map(|(name, value)| (name, Text(value)));
    let mut track = serde_path_to_error::Track::new();
    let pairs = MapDeserializer::<_, Error>::new(pairs);
    let read = T::deserialize(serde_path_to_error::Deserializer::new(pairs, &mut track));
    read.map_err(|error| Invalid::one(pointer(&track.path()), in_plain_words(&error.to_string())))
}

/// The value of a parameter: whatever it is to be, it comes as a text.
struct Text<'a>(Cow<'a, str>);

impl<'de> IntoDeserializer<'de, Error> for Text<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! as_numbers {
    ($($method:ident $visit:ident $kind:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let refused = |_| Error::invalid_value(Unexpected::Str(&self.0), &stringify!($kind));
            visitor.$visit(self.0.parse().map_err(refused)?)
        }
    )*};
}

impl<'de> Deserializer<'de> for Text<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(&self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    as_numbers! {
        deserialize_bool visit_bool bool
        deserialize_u8 visit_u8 u8
        deserialize_u16 visit_u16 u16
        deserialize_u32 visit_u32 u32
        deserialize_u64 visit_u64 u64
        deserialize_i8 visit_i8 i8
        deserialize_i16 visit_i16 i16
        deserialize_i32 visit_i32 i32
        deserialize_i64 visit_i64 i64
        deserialize_f32 visit_f32 f32
        deserialize_f64 visit_f64 f64
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
