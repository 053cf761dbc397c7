//! Ranges in brackets: `gpu-[001-064]`, `n[1-3,7]`, `r[1-4]n[01-16]`.
//!
//! The number of results and their least length are known before the first is made, so that no text can ask for much
//! memory or time.

use super::parse::MAX_HOST_BYTES;
use super::{MAX_NODES, RosterError};

/// All texts that `pattern` stands for, the last range running fastest. A pattern without brackets stands for itself.
///
/// # Errors
/// [`RosterError::Range`] for a range that cannot be read, [`RosterError::TooMany`] for more than [`MAX_NODES`] results,
/// [`RosterError::Host`] if they are longer than a host name can be.
pub(crate) fn expand(pattern: &str) -> Result<Vec<String>, RosterError> {
    let parts = parts(pattern)?;
    if parts.iter().map(Part::least_bytes).sum::<usize>() > MAX_HOST_BYTES {
        return Err(RosterError::Host { host: pattern.chars().take(SHOWN_CHARS).collect() });
    }
    parts
        .iter()
        .try_fold(1_usize, |product, part| product.checked_mul(part.count()))
        .filter(|count| *count <= MAX_NODES)
        .ok_or(RosterError::TooMany { max: MAX_NODES })?;
    let mut texts = vec![String::new()];
    for part in &parts {
        texts = match part {
            Part::Literal(literal) => {
                texts.iter_mut().for_each(|text| text.push_str(literal));
                texts
            }
            Part::Ranges(ranges) => texts
                .iter()
                .flat_map(|text| {
                    ranges.iter().flat_map(move |range| range.numbers().map(move |n| format!("{text}{n}")))
                })
                .collect(),
        };
    }
    Ok(texts)
}

/// A stretch of a pattern.
enum Part<'a> {
    Literal(&'a str),
    Ranges(Vec<Range>),
}

/// `7` or `001-064`, both ends included.
struct Range {
    low: u32,
    high: u32,
    /// Digits that each number has at least.
    width: usize,
}

impl Part<'_> {
    /// Bytes of the shortest text that it stands for, or fewer.
    fn least_bytes(&self) -> usize {
        match self {
            Self::Literal(literal) => literal.len(),
            Self::Ranges(_) => 1,
        }
    }

    fn count(&self) -> usize {
        match self {
            Self::Literal(_) => 1,
            Self::Ranges(ranges) => {
                ranges.iter().fold(0, |sum: usize, range| sum.saturating_add(range.count()))
            }
        }
    }
}

impl Range {
    fn count(&self) -> usize {
        (self.high - self.low) as usize + 1
    }

    fn numbers(&self) -> impl Iterator<Item = String> {
        let width = self.width;
        (self.low..=self.high).map(move |number| format!("{number:0width$}"))
    }
}

fn parts(pattern: &str) -> Result<Vec<Part<'_>>, RosterError> {
    let at_fault = |range: &str, problem| RosterError::Range {
        range: range.to_owned(),
        pattern: pattern.to_owned(),
        problem,
    };
    let mut parts = Vec::new();
    let mut rest = pattern;
    while let Some(open) = rest.find(['[', ']']) {
        let (literal, bracket) = rest.split_at(open);
        let Some(inside) = bracket.strip_prefix('[') else {
            return Err(at_fault(rest, "it is closed but not opened"));
        };
        let Some((ranges, tail)) = inside.split_once(']') else {
            return Err(at_fault(bracket, "it is not closed"));
        };
        parts.push(Part::Literal(literal));
        let ranges = ranges
            .split(',')
            .map(|text| range(text).map_err(|problem| at_fault(text, problem)))
            .collect::<Result<_, _>>()?;
        parts.push(Part::Ranges(ranges));
        rest = tail;
    }
    parts.push(Part::Literal(rest));
    Ok(parts)
}

fn range(text: &str) -> Result<Range, &'static str> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (low, high) = (number(first)?, number(last)?);
    if low > high {
        return Err("its first number is above its last");
    }
    let width = if first.starts_with('0') { first.len() } else { 1 };
    if last.len() < width {
        return Err("its last number has fewer digits than the zero-padded first");
    }
    Ok(Range { low, high, width })
}

fn number(digits: &str) -> Result<u32, &'static str> {
    if digits.is_empty() || digits.len() > MAX_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("each end has 1 to 9 digits");
    }
    Ok(digits.parse().expect("nine digits fit 32 bits"))
}

/// Digits that always fit 32 bits.
const MAX_DIGITS: usize = 9;

/// How much of an overlong pattern an error shows.
const SHOWN_CHARS: usize = 80;
