//! The legends below a matrix.

use std::collections::BTreeMap;

use super::super::scan;

/// What the legends say.
#[derive(Debug, Default)]
pub(super) struct Legend {
    /// The legend explains `NV#`: this form of the matrix shows NVLink.
    pub(super) nvlink: bool,
    /// The device of each `NIC0`.
    pub(super) nics: BTreeMap<String, String>,
    /// What other words mean.
    pub(super) words: BTreeMap<String, String>,
}

impl Legend {
    /// Takes a line of a legend; says whether it is one.
    pub(super) fn take(&mut self, line: &str) -> bool {
        let line = line.trim_matches([' ', '\t', '|']);
        if line.ends_with("Legend:") {
            return true;
        }
        if let Some((word, meaning)) = line.split_once('=') {
            return self.word(word.trim(), meaning.trim());
        }
        match line.split_once(':') {
            Some((label, name)) => self.nic(label.trim(), name),
            None => false,
        }
    }

    fn word(&mut self, word: &str, meaning: &str) -> bool {
        let shaped = !word.is_empty()
            && word.len() <= 8
            && word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b"#/".contains(&b));
        if !shaped {
            return false;
        }
        self.nvlink |= word == "NV#";
        if self.words.len() < MAX_WORDS {
            self.words.insert(word.to_owned(), meaning.chars().take(MAX_MEANING).collect());
        }
        true
    }

    fn nic(&mut self, label: &str, name: &str) -> bool {
        let digits = label.rsplit(' ').next().and_then(|label| label.strip_prefix("NIC"));
        let numbered =
            digits.is_some_and(|d| !d.is_empty() && d.len() <= 4 && d.bytes().all(|b| b.is_ascii_digit()));
        let name = name.split_whitespace().next().unwrap_or("");
        if !numbered || !scan::is_name(name) || self.nics.len() >= MAX_NICS {
            return false;
        }
        let label = format!("NIC{}", digits.unwrap_or_default());
        self.nics.entry(label).or_insert_with(|| name.to_owned());
        true
    }
}

/// Words of a legend that are kept.
const MAX_WORDS: usize = 32;
/// Characters of a meaning that are kept.
const MAX_MEANING: usize = 120;
/// NICs of a legend that are kept.
const MAX_NICS: usize = 512;
