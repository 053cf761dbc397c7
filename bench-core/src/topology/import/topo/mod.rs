//! `nvidia-smi topo -m` of every driver generation, and the matrices that other vendors print in its form.
//!
//! Read are: NIC columns with a legend or with the devices' own names, columns that run together, affinity columns in
//! any order or none, the `-mp` form, and files that end anywhere.

mod header;
mod legend;

use std::collections::BTreeMap;

use header::{Affinity, Header, MatrixRow};
use legend::Legend;

use super::Lines;
use crate::topology::model::{Cell, Device, HcaId, IdList, Inventory, Matrix, NvLinkShown, Row};

pub(super) fn begins(lines: Lines<'_>, at: usize) -> bool {
    let Some(header) = Header::parse(lines.get(at)) else { return false };
    match lines.next_filled(at + 1) {
        Some(next) => header.row(lines.get(next)).is_some(),
        None => header.devices.len() >= 2,
    }
}

pub(super) fn read(lines: Lines<'_>, at: usize, inventory: &mut Inventory, seen: &mut bool) -> usize {
    let Some(header) = Header::parse(lines.get(at)) else { return at };
    let mut rows: BTreeMap<usize, MatrixRow> = BTreeMap::new();
    let mut legend = Legend::default();
    let mut end = at + 1;
    let mut foreign = 0;
    for here in at + 1..lines.len() {
        let line = lines.get(here);
        if line.trim().is_empty() {
            continue;
        }
        let own = match header.row(line) {
            Some(row) if rows.contains_key(&row.device) => break,
            Some(row) => {
                rows.insert(row.device, row);
                true
            }
            None => legend.take(line),
        };
        foreign = if own { 0 } else { foreign + 1 };
        if foreign > MAX_FOREIGN {
            break;
        }
        if own {
            end = here + 1;
        }
    }
    if is_of_distances(&rows) {
        *seen = true;
        Reading { header: &header, rows: &rows, legend: &legend }.apply(inventory);
    }
    end
}

/// `nvidia-smi topo -p2p` prints a matrix of what peers may do; it holds no distances.
fn is_of_distances(rows: &BTreeMap<usize, MatrixRow>) -> bool {
    let mut others = rows.values().flat_map(|row| &row.cells).filter_map(|cell| match cell {
        Cell::Other(word) => Some(word.as_str()),
        Cell::Own | Cell::NvLink(_) | Cell::Pcie(_) => None,
    });
    let peers = others.any(|word| PEER_WORDS.contains(&word));
    !peers
}

/// A matrix that was read, before it goes into an inventory.
struct Reading<'a> {
    header: &'a Header,
    rows: &'a BTreeMap<usize, MatrixRow>,
    legend: &'a Legend,
}

impl Reading<'_> {
    fn apply(&self, inventory: &mut Inventory) {
        let devices = self.devices(inventory);
        self.matrix(inventory);
        for (place, device) in devices.iter().enumerate() {
            let row = self.row_state(place);
            match device {
                Some(Device::Gpu(index)) => self.gpu(inventory, *index, place, row),
                Some(Device::Hca(id)) => {
                    let hca = inventory.hca_mut(*id);
                    hca.row = hca.row.max(row);
                }
                None => {}
            }
        }
        self.links(inventory, &devices);
        self.gaps(inventory, &devices);
    }

    /// The device of each column. A NIC is known by the name that the legend gives, else by its label alone.
    fn devices(&self, inventory: &mut Inventory) -> Vec<Option<Device>> {
        let accelerator = self.header.accelerator();
        let mut devices = Vec::new();
        for name in &self.header.devices {
            let number = name.strip_prefix(accelerator).and_then(|digits| digits.parse::<u16>().ok());
            let device = match number {
                Some(index) => inventory.gpu_mut(index).map(|gpu| {
                    gpu.label.clone_from(name);
                    Device::Gpu(index)
                }),
                None => self.nic(inventory, name).map(Device::Hca),
            };
            devices.push(device);
        }
        devices
    }

    fn nic(&self, inventory: &mut Inventory, column: &str) -> Option<HcaId> {
        let numbered =
            column.strip_prefix("NIC").is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
        if !numbered {
            return inventory.hca_named(column);
        }
        match self.legend.nics.get(column) {
            Some(name) => {
                let id = inventory.hca_named(name)?;
                let (hca, mut learn) = inventory.learn_hca(id);
                learn.fact(&mut hca.label, column.to_owned(), &format!("{name}: its number in the matrix"));
                Some(id)
            }
            None => inventory.hca_labelled(column),
        }
    }

    fn matrix(&self, inventory: &mut Inventory) {
        let cells = || self.rows.values().flat_map(|row| &row.cells);
        let shown = self.legend.nvlink || cells().any(|cell| matches!(cell, Cell::NvLink(_)));
        let matrix = inventory.matrix.get_or_insert_with(|| Matrix {
            nvlink: NvLinkShown::Unknown,
            unknown_words: BTreeMap::new(),
            has_memory_numa: false,
        });
        if shown {
            matrix.nvlink = NvLinkShown::Shown;
        }
        matrix.has_memory_numa |= self.header.affinity.contains(&Affinity::MemoryNuma);
        for cell in cells() {
            if let Cell::Other(word) = cell
                && matrix.unknown_words.len() < MAX_WORDS
            {
                let meaning = self.legend.words.get(word).cloned();
                matrix.unknown_words.entry(word.clone()).or_insert(meaning);
            }
        }
    }

    fn row_state(&self, place: usize) -> Row {
        match self.rows.get(&place) {
            None => Row::Missing,
            Some(row) if row.cells.len() < self.header.devices.len() => Row::Cut,
            Some(_) => Row::Whole,
        }
    }

    fn gpu(&self, inventory: &mut Inventory, index: u16, place: usize, row: Row) {
        let facts = self.rows.get(&place).map(|row| affinities(&row.rest, &self.header.affinity));
        let Some((gpu, mut learn)) = inventory.learn_gpu(index) else { return };
        gpu.row = gpu.row.max(row);
        let Some(facts) = facts.filter(|_| row == Row::Whole) else { return };
        let label = gpu.label.clone();
        for (column, word) in facts {
            match column {
                Affinity::Cpus => {
                    if let Some(list) = IdList::parse(&word) {
                        learn.fact(&mut gpu.cpus, list, &format!("{label}: CPU affinity"));
                    }
                }
                Affinity::Numa => {
                    if let Some(list) = IdList::parse(&word) {
                        learn.fact(&mut gpu.numa, list, &format!("{label}: NUMA affinity"));
                    }
                }
                Affinity::MemoryNuma => gpu.memory_numa = gpu.memory_numa.or_else(|| word.parse().ok()),
            }
        }
    }

    fn links(&self, inventory: &mut Inventory, devices: &[Option<Device>]) {
        for (place, row) in self.rows {
            for (other, cell) in row.cells.iter().enumerate() {
                let (Some(a), Some(b)) = (devices[*place], devices[other]) else { continue };
                let mirrored = self.rows.get(&other).and_then(|row| row.cells.get(*place));
                if *place < other && mirrored.is_some_and(|mirrored| mirrored != cell) {
                    let names = [&self.header.devices[*place], &self.header.devices[other]];
                    let what = format!("matrix: the way between {} and {}", names[0], names[1]);
                    note(inventory, &what);
                }
                if a != b {
                    link(inventory, a, b, cell);
                }
            }
        }
    }

    /// What the header promises and the rows do not hold.
    fn gaps(&self, inventory: &mut Inventory, devices: &[Option<Device>]) {
        let mut missing = Vec::new();
        for (place, name) in self.header.devices.iter().enumerate() {
            match self.row_state(place) {
                Row::Missing | Row::Cut if devices[place].is_some() => missing.push(name.as_str()),
                Row::Missing | Row::Cut | Row::NoMatrix | Row::Whole => {}
            }
        }
        if !missing.is_empty() {
            let rows = crate::topology::words::shortened(&missing);
            inventory.note_gap(format!("the matrix is cut: rows of {rows}"), COMMAND);
        }
        let unnamed = devices.iter().flatten().any(|device| match device {
            Device::Hca(id) => inventory.hca(*id).name.is_none(),
            Device::Gpu(_) => false,
        });
        if unnamed {
            let what = "the names of the NICs: the NIC legend below the matrix is cut off".to_owned();
            inventory.note_gap(what, COMMAND);
        }
    }
}

fn note(inventory: &mut Inventory, what: &str) {
    if inventory.contradictions.len() < MAX_CONTRADICTIONS
        && !inventory.contradictions.iter().any(|c| c == what)
    {
        inventory.contradictions.push(what.to_owned());
    }
}

fn link(inventory: &mut Inventory, a: Device, b: Device, cell: &Cell) {
    let link = inventory.links.entry(a, b);
    match cell {
        Cell::Own => {}
        Cell::NvLink(count) => {
            link.nvlinks.get_or_insert(*count);
        }
        Cell::Pcie(distance) => {
            link.pcie.get_or_insert(*distance);
        }
        Cell::Other(word) => {
            link.other.get_or_insert_with(|| word.clone());
        }
    }
}

/// Which word after the cells belongs to which column.
///
/// Where there are fewer words than columns, an empty column is recognised by the kinds of the words that are there:
/// the last `N/A` or number stands under the last column, a list with ranges under the CPUs.
fn affinities(words: &[String], columns: &[Affinity]) -> Vec<(Affinity, String)> {
    let words = joined(words);
    if words.len() >= columns.len() {
        return columns.iter().copied().zip(words).collect();
    }
    let mut left: Vec<Affinity> = columns.to_vec();
    let mut found = Vec::new();
    for word in words {
        let is_range = word.contains(['-', ',']);
        let wanted = if is_range {
            left.iter().position(|column| *column == Affinity::Cpus).or_else(|| first_numa(&left))
        } else if word == "N/A" {
            left.iter().position(|column| *column == Affinity::MemoryNuma)
        } else {
            first_numa(&left)
        };
        if let Some(at) = wanted {
            found.push((left[at], word));
            left.drain(..=at);
        }
    }
    found
}

fn first_numa(columns: &[Affinity]) -> Option<usize> {
    columns.iter().position(|column| *column == Affinity::Numa)
}

/// Lists with a space after a comma are one word.
fn joined(words: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for word in words {
        match out.last_mut() {
            Some(last) if last.ends_with(',') => last.push_str(word),
            Some(_) | None => out.push(word.clone()),
        }
    }
    out
}

/// The command that prints the matrix.
const COMMAND: &str = "nvidia-smi topo -m";
/// The words of `nvidia-smi topo -p2p`.
const PEER_WORDS: [&str; 7] = ["OK", "NS", "CNS", "GNS", "TNS", "DR", "U"];
/// Lines of something else that may stand between rows: logs of other processes.
const MAX_FOREIGN: usize = 2;
/// Unknown words that are kept.
const MAX_WORDS: usize = 16;
/// Contradictions that are kept.
const MAX_CONTRADICTIONS: usize = 256;
