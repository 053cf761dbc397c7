//! P_Keys: which partition two InfiniBand ports share.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A row of a port's P_Key table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PkeyRow {
    /// Its index.
    pub index: u16,
    /// Its value: the partition in the lower 15 bits, full membership in the highest one.
    pub value: u16,
}

/// Two ports without a partition in which they may talk.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoPartition {
    /// None in common.
    #[error("the ports share no partition: {} at the source, {} at the destination", list(.source_table), list(.destination))]
    Disjoint {
        /// The source's values.
        source_table: Vec<u16>,
        /// The destination's.
        destination: Vec<u16>,
    },
    /// The partition that was asked for is not at both ends.
    #[error("P_Key 0x{wanted:04x} is not at both ends: {} at the source, {} at the destination", list(.source_table), list(.destination))]
    Missing {
        /// What was asked for.
        wanted: u16,
        /// The source's values.
        source_table: Vec<u16>,
        /// The destination's.
        destination: Vec<u16>,
    },
    /// Both are limited members, which may not talk to each other.
    #[error(
        "both ends are limited members of partition 0x{partition:04x}, and limited members may not talk to each other"
    )]
    BothLimited {
        /// The partition, without the membership bit.
        partition: u16,
    },
}

impl PkeyRow {
    /// The partition without the membership bit.
    pub fn partition(self) -> u16 {
        self.value & PARTITION_BITS
    }

    fn is_full_member(self) -> bool {
        self.value & !PARTITION_BITS != 0
    }
}

/// The rows that both ends use: the partition that was asked for, else the first of the source's table that the
/// destination shares; at least one end is a full member (IBTA volume 1, 10.9.3).
///
/// # Errors
/// [`NoPartition`], which tells both tables.
pub fn choose_pkeys(
    source: &[PkeyRow],
    destination: &[PkeyRow],
    wanted: Option<u16>,
) -> Result<(PkeyRow, PkeyRow), NoPartition> {
    let shared = || {
        source
            .iter()
            .filter(|row| wanted.is_none_or(|value| row.partition() == value & PARTITION_BITS))
            .flat_map(|own| {
                destination
                    .iter()
                    .filter(|peer| peer.partition() == own.partition())
                    .map(|peer| (*own, *peer))
            })
    };
    if let Some(pair) = shared().find(|(own, peer)| own.is_full_member() || peer.is_full_member()) {
        return Ok(pair);
    }
    if let Some((own, _)) = shared().next() {
        return Err(NoPartition::BothLimited { partition: own.partition() });
    }
    let values = |rows: &[PkeyRow]| rows.iter().map(|row| row.value).collect();
    let (source_table, destination) = (values(source), values(destination));
    Err(match wanted {
        Some(wanted) => NoPartition::Missing { wanted, source_table, destination },
        None => NoPartition::Disjoint { source_table, destination },
    })
}

fn list(values: &[u16]) -> String {
    match values {
        [] => "none".to_owned(),
        values => values.iter().map(|value| format!("0x{value:04x}")).collect::<Vec<_>>().join(" "),
    }
}

/// All bits but that of the membership.
const PARTITION_BITS: u16 = 0x7fff;

#[cfg(test)]
mod tests {
    use super::*;

    fn table(values: &[u16]) -> Vec<PkeyRow> {
        values
            .iter()
            .enumerate()
            .map(|(index, value)| PkeyRow { index: index as u16, value: *value })
            .collect()
    }

    fn chosen(source: &[u16], destination: &[u16], wanted: Option<u16>) -> Result<(u16, u16), NoPartition> {
        choose_pkeys(&table(source), &table(destination), wanted).map(|(own, peer)| (own.index, peer.index))
    }

    #[test]
    fn the_first_shared_partition_with_a_full_member_is_taken() {
        for (source, destination, wanted, indices) in [
            (&[0xffff][..], &[0xffff][..], None, (0, 0)),
            (&[0xffff, 0x8001], &[0x8001, 0xffff], None, (0, 1)),
            (&[0x7fff, 0x8001], &[0x7fff, 0x8001], None, (1, 1)),
            (&[0x7fff], &[0xffff], None, (0, 0)),
            (&[0xffff, 0x8001], &[0xffff, 0x0001], Some(0x8001), (1, 1)),
            (&[0xffff, 0x8001], &[0xffff, 0x8001], Some(0x0001), (1, 1)),
        ] {
            assert_eq!(chosen(source, destination, wanted), Ok(indices), "{source:x?} {destination:x?}");
        }
    }

    #[test]
    fn ports_without_a_common_partition_are_told_with_both_tables() {
        let text = |result: Result<(u16, u16), NoPartition>| result.expect_err("no partition").to_string();
        assert!(
            text(chosen(&[0x8001], &[0x8002], None))
                .contains("0x8001 at the source, 0x8002 at the destination")
        );
        assert!(
            text(chosen(&[0xffff], &[0xffff], Some(0x8005))).starts_with("P_Key 0x8005 is not at both ends")
        );
        assert!(text(chosen(&[0x0001], &[0x0001], None)).contains("limited members of partition 0x0001"));
        assert!(text(chosen(&[], &[0xffff], None)).contains("none at the source"));
    }
}
