//! Small readers that several importers share.

use crate::topology::model::PciAddress;
use crate::units::BitsPerSecond;

/// `key: value`, both trimmed; `None` without a colon or a key.
pub(super) fn key_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let key = key.trim();
    (!key.is_empty() && key.len() <= MAX_KEY).then(|| (key, value.trim()))
}

/// A number, decimal or with `0x`.
pub(super) fn number(text: &str) -> Option<u32> {
    let text = text.split_whitespace().next()?;
    match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A rate in Gb/s, as `400`, `400 Gb/sec (4X NDR)`; 0 is none.
pub(super) fn gigabits(text: &str) -> Option<BitsPerSecond> {
    let gigabits: f64 = text.split_whitespace().next()?.parse().ok()?;
    (gigabits.is_finite() && gigabits > 0.0).then_some(BitsPerSecond(gigabits * 1e9))
}

/// What stands between the first pair of brackets, such as `4X NDR`.
pub(super) fn in_brackets(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('(')?;
    let (inside, _) = rest.split_once(')')?;
    Some(inside.trim()).filter(|inside| !inside.is_empty())
}

/// A PCI address with a domain or as `lspci` writes it.
pub(super) fn bus(word: &str) -> Option<PciAddress> {
    PciAddress::parse(word.trim_matches([',', '"', '\'', '|', ' ']))
}

/// Whether a text can be the name of a device: letters, digits and a few signs.
pub(super) fn is_name(text: &str) -> bool {
    let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
    first && text.len() <= 64 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
}

/// Longest text of a GID that is kept: one has 39 characters.
pub(super) const MAX_GID: usize = 64;

/// Longest key: those of the tools have at most 30 letters.
const MAX_KEY: usize = 64;
