//! The forms in which values with a unit stand in TOML: `"2s"`, `2`, `"400G"`, `"64K:8M"`, `["64K", 1048576]`.
//!
//! A number is read as if it were written as text, so `2` means what `"2"` means: seconds for a time, bits a second
//! for a rate, bytes for a size. Every value is printed in a form that is read back exactly.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serializer};

use super::{Budget, parse_sizes};
use crate::units::{BitsPerSecond, Bytes, exact_duration, parse_duration};

/// A value that is one text or number in TOML.
pub(super) trait Form: Sized {
    /// What is expected, for error messages.
    const EXPECTED: &'static str;

    /// Reads it.
    fn read(text: &str) -> Result<Self, String>;

    /// Prints it so that [`Form::read`] gives the same value.
    fn print(&self) -> String;
}

impl Form for Duration {
    const EXPECTED: &'static str = "a duration such as \"2s\" or a number of seconds";

    fn read(text: &str) -> Result<Self, String> {
        parse_duration(text).map_err(|error| error.to_string())
    }

    fn print(&self) -> String {
        exact_duration(*self)
    }
}

impl Form for BitsPerSecond {
    const EXPECTED: &'static str = "a rate such as \"400G\" or a number of bits a second";

    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: crate::units::RateError| error.to_string())
    }

    fn print(&self) -> String {
        self.exact()
    }
}

impl Form for Budget {
    const EXPECTED: &'static str = "a budget such as \"10m\", \"off\" or \"auto\"";

    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: super::BudgetError| error.to_string())
    }

    fn print(&self) -> String {
        self.to_string()
    }
}

/// Reads an optional [`Form`]; for `#[serde(with)]`.
pub(super) fn deserialize<'de, T: Form, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    from.deserialize_any(FormVisitor(PhantomData)).map(Some)
}

/// Prints an optional [`Form`]; for `#[serde(with)]`.
pub(super) fn serialize<T: Form, S: Serializer>(value: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
    match value {
        None => to.serialize_none(),
        Some(value) => to.serialize_str(&value.print()),
    }
}

/// Reads and prints an optional list of sizes; for `#[serde(with)]`.
pub(super) mod sizes {
    use super::*;

    pub(in crate::plan) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Vec<Bytes>>, D::Error> {
        from.deserialize_any(SizesVisitor).map(Some)
    }

    pub(in crate::plan) fn serialize<S: Serializer>(
        sizes: &Option<Vec<Bytes>>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match sizes {
            None => to.serialize_none(),
            Some(sizes) => to.collect_seq(sizes.iter().map(Bytes::to_string)),
        }
    }
}

struct FormVisitor<T>(PhantomData<T>);

impl<T: Form> Visitor<'_> for FormVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::read(text).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}

struct SizesVisitor;

impl<'de> Visitor<'de> for SizesVisitor {
    type Value = Vec<Bytes>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size such as \"64K\", a range such as \"64K:8M\", or a list of them")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        parse_sizes(text).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(SizesItem(sizes)) = items.next_element()? {
            all.extend(sizes);
        }
        Ok(all)
    }
}

/// One entry of a list of sizes, which may itself be a range.
struct SizesItem(Vec<Bytes>);

impl<'de> Deserialize<'de> for SizesItem {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(SizesVisitor).map(Self)
    }
}
