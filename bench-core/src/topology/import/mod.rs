//! Importers: from text captures of other tools to facts of an [`Inventory`].
//!
//! A file may hold any number of captures one after another, with prompts, log lines and other text between them. Each
//! reader knows the shape of one tool's output: the first that recognises a line reads on until the shape ends. File
//! names play no part. No text makes a reader fail: what it does not know it leaves, and where a capture is cut it
//! notes the gap. Every line is looked at by each reader once, so time is linear in the text; what is kept is bounded
//! by the limits of the model.

mod clean;
mod csv;
mod gpus;
mod ibdev2netdev;
mod iblinkinfo;
mod ibstat;
mod ibstatus;
mod ibv_devinfo;
mod lspci;
mod machine;
mod nccl_xml;
mod port_facts;
mod rdma_link;
mod scan;
mod show_gids;
mod smi_query;
mod sysfs;
mod topo;

use std::borrow::Cow;

use super::model::Inventory;

/// Reads every capture in `text` into `inventory`; `source` is what the file is called before people.
///
/// Nothing is read from a text that holds no capture; [`Inventory::captures`] says what was read.
pub fn import(inventory: &mut Inventory, source: &str, text: &str) {
    let cleaned = clean::lines(text);
    let lines = Lines(&cleaned);
    let mut at = 0;
    while at < lines.len() {
        let reader = READERS.iter().find(|reader| (reader.begins)(lines, at));
        let Some(reader) = reader else {
            at += 1;
            continue;
        };
        let mut seen = false;
        let end = (reader.read)(lines, at, inventory, &mut seen);
        if seen {
            inventory.note_capture(reader.command, source);
        }
        // A reader that takes nothing must not stop the rest.
        at = end.max(at + 1);
    }
    inventory.fill_distances();
}

/// The lines of a text.
#[derive(Clone, Copy)]
struct Lines<'a>(&'a [Cow<'a, str>]);

impl<'a> Lines<'a> {
    fn len(self) -> usize {
        self.0.len()
    }

    /// A line; empty beyond the end.
    fn get(self, at: usize) -> &'a str {
        self.0.get(at).map_or("", |line| line.as_ref())
    }

    /// The next line from `at` on that is not blank, if it is among the next few.
    fn next_filled(self, at: usize) -> Option<usize> {
        (at..self.len().min(at + LOOK_AHEAD)).find(|at| !self.get(*at).trim().is_empty())
    }
}

/// A reader of one tool's output.
struct Reader {
    /// The command that writes it.
    command: &'static str,
    /// Whether such a capture begins at this line; looks at this line and a few more.
    begins: fn(Lines<'_>, usize) -> bool,
    /// Reads from this line on and returns the first line that is not its own; says whether it learned anything.
    read: fn(Lines<'_>, usize, &mut Inventory, &mut bool) -> usize,
}

/// Every reader; the first that recognises a line reads it.
const READERS: [Reader; 15] = [
    Reader { command: "nvidia-smi topo -m", begins: topo::begins, read: topo::read },
    Reader { command: "ibstat", begins: ibstat::begins, read: ibstat::read },
    Reader { command: "ibstatus", begins: ibstatus::begins, read: ibstatus::read },
    Reader { command: "ibv_devinfo", begins: ibv_devinfo::begins, read: ibv_devinfo::read },
    Reader { command: "ibdev2netdev", begins: ibdev2netdev::begins, read: ibdev2netdev::read },
    Reader { command: "show_gids", begins: show_gids::begins, read: show_gids::read },
    Reader { command: "rdma link", begins: rdma_link::begins, read: rdma_link::read },
    Reader { command: "iblinkinfo", begins: iblinkinfo::begins, read: iblinkinfo::read },
    Reader { command: "NCCL topology XML", begins: nccl_xml::begins, read: nccl_xml::read },
    Reader { command: "sysfs of InfiniBand devices", begins: sysfs::begins, read: sysfs::read },
    Reader { command: "nvidia-smi -L or nvlink -s", begins: gpus::begins, read: gpus::read },
    Reader { command: "nvidia-smi -q", begins: smi_query::begins, read: smi_query::read },
    Reader { command: "lspci -vvv", begins: lspci::begins, read: lspci::read },
    Reader { command: "nvidia-smi --query-gpu", begins: csv::begins, read: csv::read },
    Reader { command: "lscpu", begins: machine::begins, read: machine::read },
];

/// Lines that a reader may look ahead to recognise a capture.
const LOOK_AHEAD: usize = 8;
