//! The header and the rows of a matrix of distances.

use std::borrow::Cow;

use crate::topology::model::Cell;

/// The columns of a matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The devices, in order.
    pub(super) devices: Vec<String>,
    /// The columns after them, in order.
    pub(super) affinity: Vec<Affinity>,
}

/// A column after the devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Affinity {
    /// `CPU Affinity`
    Cpus,
    /// `NUMA Affinity`; `Node Affinity` with other vendors.
    Numa,
    /// `GPU NUMA ID`
    MemoryNuma,
}

/// One row of a matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MatrixRow {
    /// Which device, as a position among the columns.
    pub(super) device: usize,
    /// The cells as far as there are any.
    pub(super) cells: Vec<Cell>,
    /// The words after the cells.
    pub(super) rest: Vec<String>,
}

impl Header {
    /// Reads a header; `None` for any other line.
    pub(super) fn parse(line: &str) -> Option<Self> {
        // Any header has a column that ends with 0: a cheap test before the dear one.
        if line.len() < 4 || !line.contains('0') {
            return None;
        }
        let words = words(line);
        let start = words.iter().take(MAX_PREFIX).position(|word| is_accelerator(word))?;
        let prefix = letters(&words[start]);
        let mut devices = Vec::new();
        let mut rest = &words[start..];
        while let [word, after @ ..] = rest {
            let is_column = !begins_affinity(word, after) && super::super::scan::is_name(word);
            let is_cell = !matches!(Cell::parse(word), None | Some(Cell::Other(_)));
            if is_cell || devices.len() >= MAX_COLUMNS {
                return None;
            }
            if !is_column {
                break;
            }
            devices.push(word.clone().into_owned());
            rest = after;
        }
        let affinity = affinity(&rest.join(" "));
        // What follows the devices must be the columns that a matrix has; prose is no header.
        let known = rest.is_empty() || !affinity.is_empty();
        let numbered = devices.iter().take_while(|name| letters(name) == prefix).count() >= 1;
        // Without those columns, only numbered names make a header: prose has others.
        let all_numbered = devices.iter().all(|name| name.ends_with(|c: char| c.is_ascii_digit()));
        let enough = !affinity.is_empty() || (devices.len() >= 2 && all_numbered);
        let mut sorted = devices.clone();
        sorted.sort_unstable();
        let unique = sorted.windows(2).all(|pair| pair[0] != pair[1]);
        (known && numbered && enough && unique).then_some(Self { devices, affinity })
    }

    /// The letters before the number of the accelerators: `GPU` as a rule.
    pub(super) fn accelerator(&self) -> &str {
        letters(&self.devices[0])
    }

    /// Reads a row of this matrix; `None` for any other line.
    pub(super) fn row(&self, line: &str) -> Option<MatrixRow> {
        let words = words(line);
        let place = |word: &str| self.devices.iter().position(|name| name == word);
        let (at, device) = words.iter().take(MAX_PREFIX).enumerate().find_map(|(at, word)| {
            let device = place(word)?;
            let next = words.get(at + 1);
            let is_row =
                next.is_none_or(|next| place(next).is_none() && !split_cells(next, None).0.is_empty());
            is_row.then_some((at, device))
        })?;
        let mut row = MatrixRow { device, cells: Vec::new(), rest: Vec::new() };
        let mut last_count = None;
        for word in &words[at + 1..] {
            if row.cells.len() >= self.devices.len() {
                row.rest.push(word.clone().into_owned());
                continue;
            }
            let (cells, rest) = split_cells(word, last_count);
            for cell in cells {
                if let Cell::NvLink(count) = cell {
                    last_count = Some(count);
                }
                row.cells.push(cell);
            }
            if !rest.is_empty() {
                row.rest.push(rest.to_owned());
            }
        }
        row.cells.truncate(self.devices.len());
        // A row that ends early may end within a word: NV1 of NV18 is no count.
        let open = matches!(row.cells.last(), Some(Cell::NvLink(_) | Cell::Other(_)));
        if row.cells.len() < self.devices.len() && open {
            row.cells.pop();
        }
        Some(row)
    }
}

/// The words of a line; columns that run together are parted.
fn words(line: &str) -> Vec<Cow<'_, str>> {
    let plain = line.split(|c: char| c.is_whitespace() || c == '|').filter(|word| !word.is_empty());
    plain.flat_map(parted).map(Cow::Borrowed).collect()
}

/// `GPU0GPU1CPU` is three words: a new column begins after a digit or after `Affinity`.
fn parted(word: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, _) in word.char_indices().skip(1) {
        let before = word.as_bytes()[at - 1];
        let ends = before.is_ascii_digit() || word[..at].ends_with("Affinity");
        if ends && COLUMN_STARTS.iter().any(|begin| word[at..].starts_with(begin)) {
            parts.push(&word[start..at]);
            start = at;
        }
    }
    parts.push(&word[start..]);
    parts
}

fn begins_affinity(word: &str, after: &[Cow<'_, str>]) -> bool {
    let next = after.first().map(Cow::as_ref);
    match word {
        "CPU" | "NUMA" | "Node" => next.is_some_and(|next| next.starts_with("Affinity")),
        "GPU" => next == Some("NUMA"),
        _ => false,
    }
}

/// The columns after the devices in their order.
fn affinity(text: &str) -> Vec<Affinity> {
    let known = [
        ("CPU Affinity", Affinity::Cpus),
        ("NUMA Affinity", Affinity::Numa),
        ("Node Affinity", Affinity::Numa),
        ("GPU NUMA ID", Affinity::MemoryNuma),
    ];
    let mut found: Vec<(usize, Affinity)> =
        known.iter().filter_map(|(title, column)| Some((text.find(title)?, *column))).collect();
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, column)| column).collect()
}

/// A column of accelerators: capital letters and a number, such as `GPU0`, but not a cell and not a NIC.
fn is_accelerator(word: &str) -> bool {
    let name = letters(word);
    let digits = &word[name.len()..];
    let shaped = (2..=5).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_uppercase())
        && (1..=3).contains(&digits.len())
        && digits.bytes().all(|b| b.is_ascii_digit());
    shaped && name != "NIC" && name != "NV"
}

fn letters(word: &str) -> &str {
    &word[..word.bytes().position(|b| !b.is_ascii_alphabetic()).unwrap_or(word.len())]
}

/// The cells of a word, most often one; and what is left of it, when the columns after the cells run into it.
fn split_cells(word: &str, last_count: Option<u16>) -> (Vec<Cell>, &str) {
    if let Some(cell) = Cell::parse(word)
        && (!matches!(cell, Cell::Other(_)) || known_parts(word, last_count).1 == word)
    {
        return (vec![cell], "");
    }
    known_parts(word, last_count)
}

fn known_parts(word: &str, last_count: Option<u16>) -> (Vec<Cell>, &str) {
    let mut cells = Vec::new();
    let mut rest = word;
    while let Some((cell, length)) = first_part(rest, last_count) {
        cells.push(cell);
        rest = &rest[length..];
    }
    (cells, rest)
}

fn first_part(text: &str, last_count: Option<u16>) -> Option<(Cell, usize)> {
    let word =
        ["NODE", "SYS", "SOC", "PHB", "PXB", "PIX", "X"].into_iter().find(|word| text.starts_with(word));
    if let Some(word) = word {
        return Some((Cell::parse(word)?, word.len()));
    }
    let digits = text.strip_prefix("NV")?;
    let run = digits.bytes().take_while(u8::is_ascii_digit).count();
    // A CPU list may follow without a space: the count is then what the row's other cells have, else one or two digits.
    let same = last_count.map(|count| count.to_string()).filter(|count| digits.starts_with(count.as_str()));
    let length = match same {
        Some(same) => same.len(),
        None => run.min(2),
    };
    let count = digits.get(..length)?.parse().ok()?;
    Some((Cell::NvLink(count), length + 2))
}

/// What a column can begin with that runs into the one before it.
const COLUMN_STARTS: [&str; 6] = ["GPU", "NIC", "mlx5_", "mlx4_", "CPU", "NUMA"];
/// Words before a header or a row on the same line.
const MAX_PREFIX: usize = 12;
/// Columns of a matrix that are read: the GPUs and HCAs that an inventory can hold.
const MAX_COLUMNS: usize = 768;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_known_by_its_shape() {
        let header = Header::parse("\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID").unwrap();
        assert_eq!(header.devices, ["GPU0", "GPU1", "mlx5_0"]);
        assert_eq!(header.affinity, [Affinity::Cpus, Affinity::Numa, Affinity::MemoryNuma]);
        let joined = Header::parse("GPU0GPU1NIC0NIC10CPU AffinityNUMA Affinity").unwrap();
        assert_eq!(joined.devices, ["GPU0", "GPU1", "NIC0", "NIC10"]);
        assert_eq!(joined.affinity, [Affinity::Cpus, Affinity::Numa]);
        for line in ["GPU0  X  NV18 PIX", "GPU1 NV18 X", "GPU 0: name", "use GPU0 please", "NIC0: mlx5_0", ""]
        {
            assert_eq!(Header::parse(line), None, "{line}");
        }
    }

    #[test]
    fn cells_that_run_together_are_parted() {
        let header = Header::parse("GPU0 GPU1 GPU2 NIC0 CPU Affinity NUMA Affinity").unwrap();
        let row =
            header.row("GPU1NV12 X NV12SYS0-51 0").or_else(|| header.row("GPU1 NV12XNV12SYS0-51 0")).unwrap();
        assert_eq!(row.device, 1);
        assert_eq!(row.cells.len(), 4);
        assert_eq!(row.rest, ["0-51", "0"]);
        let last = Header::parse("GPU0 GPU1 CPU Affinity").unwrap().row("GPU0 X NV60-51").unwrap();
        assert_eq!(last.cells[0], Cell::Own);
    }

    #[test]
    fn a_row_behind_a_log_prefix_is_read() {
        let header = Header::parse("rank 3 sees GPU0 GPU1").unwrap();
        let row = header.row("rank 3 sees GPU1 PIX X").unwrap();
        assert_eq!((row.device, row.cells.len()), (1, 2));
    }
}
