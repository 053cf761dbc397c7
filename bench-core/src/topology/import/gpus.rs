//! `nvidia-smi -L`, `nvidia-smi nvlink -s`, and the lines of environment dumps that name the GPUs.

use super::Lines;
use crate::topology::model::{Inventory, LinkActivity, NvLink, NvLinkSummary};

pub(super) fn begins(lines: Lines<'_>, at: usize) -> bool {
    gpu(lines.get(at)).is_some()
}

pub(super) fn read(lines: Lines<'_>, at: usize, inventory: &mut Inventory, seen: &mut bool) -> usize {
    let Some(Named { indexes, name, uuid }) = gpu(lines.get(at)) else { return at };
    *seen = true;
    for index in &indexes {
        let Some((gpu, mut learn)) = inventory.learn_gpu(*index) else { continue };
        gpu.learn_name(name, &mut learn);
        if let Some(uuid) = uuid.filter(|_| indexes.len() == 1) {
            let what = format!("{}: UUID", gpu.label);
            learn.fact(&mut gpu.uuid, uuid.to_owned(), &what);
        }
    }
    let mut end = at + 1;
    for here in at + 1..lines.len() {
        let line = lines.get(here);
        if line.trim().is_empty() {
            continue;
        }
        if let Some(summary) = summary(line) {
            end = here + 1;
            for index in &indexes {
                if let Some(gpu) = inventory.gpu_mut(*index) {
                    gpu.nvlink_summary = Some(summary);
                }
            }
            continue;
        }
        let Some(link) = link(line) else { break };
        *seen = true;
        end = here + 1;
        if let [index] = indexes.as_slice()
            && let Some((gpu, mut learn)) = inventory.learn_gpu(*index)
        {
            gpu.learn_nvlink(link, &mut learn);
        }
    }
    end
}

/// A line that names GPUs.
struct Named<'a> {
    indexes: Vec<u16>,
    name: &'a str,
    uuid: Option<&'a str>,
}

/// `GPU 3: Tesla V100-SXM2-32GB (UUID: GPU-...)`; some dumps write `GPU 0,1,2: NVIDIA H100`.
fn gpu(line: &str) -> Option<Named<'_>> {
    let (numbers, rest) = line.trim().strip_prefix("GPU ")?.split_once(':')?;
    let indexes: Option<Vec<u16>> =
        numbers.split(',').take(256).map(|number| number.trim().parse().ok()).collect();
    let (name, after) = rest.split_once("(UUID:").unwrap_or((rest, ""));
    let name = name.trim();
    let uuid = after.split(')').next().map(str::trim).filter(|uuid| uuid.starts_with("GPU-"));
    let is_product = rest.contains("(UUID:") || MAKERS.iter().any(|maker| name.starts_with(maker));
    (is_product && !name.is_empty() && name.len() <= MAX_NAME).then_some(Named {
        indexes: indexes?,
        name,
        uuid,
    })
}

/// The sentence that stands in place of the links.
fn summary(line: &str) -> Option<NvLinkSummary> {
    let line = line.to_ascii_lowercase();
    if line.contains("all links are inactive") {
        Some(NvLinkSummary::AllInactive)
    } else if line.contains("not have or support nvlink") {
        Some(NvLinkSummary::Unsupported)
    } else {
        None
    }
}

/// `Link 3: <inactive>` or `Link 4: 25.781 GB/s`.
fn link(line: &str) -> Option<NvLink> {
    let (number, state) = line.trim().strip_prefix("Link ")?.split_once(':')?;
    let state = state.trim();
    let active = if state.contains("inactive") {
        LinkActivity::Inactive
    } else if state.ends_with("GB/s") || state.eq_ignore_ascii_case("active") {
        LinkActivity::Active
    } else {
        return None;
    };
    Some(NvLink { number: number.trim().parse().ok()?, active })
}

/// How the names of products begin.
const MAKERS: [&str; 5] = ["NVIDIA", "Tesla", "GeForce", "Quadro", "A100"];
/// Longest name that is read.
const MAX_NAME: usize = 96;
