//! NVLink: what the matrix shows between GPUs, and the state of single links.

use std::collections::{BTreeMap, BTreeSet};

use crate::topology::assess::{Confidence, Finding, Severity};
use crate::topology::model::{Device, Distance, Gpu, LinkActivity, NvLinkShown, NvLinkSummary};
use crate::topology::words::shortened;

use super::{View, finding};

pub(super) fn find(view: &View<'_>, found: &mut Vec<Finding>) {
    inactive(view, found);
    all_inactive(view, found);
    fabric_state(view, found);
    match view.inventory.matrix.as_ref().map(|matrix| matrix.nvlink) {
        Some(NvLinkShown::Shown) => shown(view, found),
        Some(NvLinkShown::Unknown) => not_shown(view, found),
        None => {}
    }
}

/// Links that are down while others of the same GPU are up, and GPUs with none up.
fn inactive(view: &View<'_>, found: &mut Vec<Finding>) {
    let gpus: Vec<&Gpu> = view.inventory.gpus.iter().filter(|gpu| !gpu.nvlinks.is_empty()).collect();
    let down = |gpu: &Gpu| -> Vec<u16> {
        gpu.nvlinks
            .iter()
            .filter(|link| link.active == LinkActivity::Inactive)
            .map(|link| link.number)
            .collect()
    };
    let all_up = gpus.iter().any(|gpu| down(gpu).is_empty());
    for gpu in &gpus {
        let links = down(gpu);
        if links.is_empty() {
            continue;
        }
        let (total, up) = (gpu.nvlinks.len(), gpu.nvlinks.len() - links.len());
        let soldered = gpu.name.as_deref().is_some_and(|name| name.contains("SXM") || name.contains("HGX"));
        let bridged = gpu.name.as_deref().is_some_and(|name| name.contains("PCIe") || name.contains("NVL"));
        let names: Vec<String> = links.iter().map(u16::to_string).collect();
        let what = format!("{up} of {total} NVLinks are active; inactive: {}", shortened(&names));
        let severe = soldered || (all_up && !bridged);
        let (severity, sure, why) = if severe {
            (
                Severity::Fail,
                Confidence::Likely,
                "every link of this GPU should be up: its peers are reached with less bandwidth",
            )
        } else {
            (
                Severity::Warn,
                Confidence::Assumed,
                "links without a bridge are inactive on PCIe cards; otherwise bandwidth is lost",
            )
        };
        let product = gpu.name.as_deref().map_or_else(String::new, |name| format!(" ({name})"));
        let place = format!("{}{product}", gpu.label);
        let remedy = "nvidia-smi nvlink -e shows their errors; look in dmesg for XID 74; reseat or exchange the part if a reset does not help";
        found.push(finding("nvlink_inactive", severity, sure, place, what, why).with_remedy(remedy));
    }
}

/// The tool says so in one sentence, without the links.
fn all_inactive(view: &View<'_>, found: &mut Vec<Finding>) {
    let gpus: Vec<u16> = (view.inventory.gpus.iter())
        .filter(|gpu| gpu.nvlink_summary == Some(NvLinkSummary::AllInactive))
        .map(|gpu| gpu.index)
        .collect();
    if gpus.is_empty() {
        return;
    }
    let what = "every NVLink is inactive";
    let why = "normal for PCIe cards without a bridge; with NVSwitches the fabric manager is not running or the GPUs were not reset after it";
    found.push(
        finding("nvlink_inactive", Severity::Warn, Confidence::Likely, view.gpus(&gpus), what, why)
            .with_remedy("systemctl status nvidia-fabricmanager; nvidia-smi -q shows the fabric's state"),
    );
}

fn fabric_state(view: &View<'_>, found: &mut Vec<Finding>) {
    for gpu in &view.inventory.gpus {
        let Some(state) = gpu.fabric.as_deref() else { continue };
        if state.starts_with("Completed") && !state.contains("Fail") && !state.contains("Error") {
            continue;
        }
        let what = format!("the registration with the NVLink fabric is not complete: {state}");
        let why = "until it is, CUDA starts on no GPU of an NVSwitch machine";
        let found_one =
            finding("nvlink_fabric", Severity::Fail, Confidence::Likely, gpu.label.clone(), what, why);
        found.push(
            found_one.with_remedy("systemctl status nvidia-fabricmanager; its version must be the driver's"),
        );
    }
}

/// Pairs of GPUs with their number of NVLinks; 0 where a PCIe distance stands instead.
fn pairs(view: &View<'_>) -> BTreeMap<(u16, u16), u16> {
    let mut pairs = BTreeMap::new();
    for (a, b, link) in view.inventory.links.iter() {
        if let (Device::Gpu(a), Device::Gpu(b)) = (a, b)
            && (link.nvlinks.is_some() || link.pcie.is_some())
        {
            pairs.insert((a, b), link.nvlinks.unwrap_or(0));
        }
    }
    pairs
}

fn shown(view: &View<'_>, found: &mut Vec<Finding>) {
    let pairs = pairs(view);
    let counts: BTreeSet<u16> = pairs.values().copied().collect();
    let gpus = pairs.keys().flat_map(|(a, b)| [*a, *b]).collect::<BTreeSet<u16>>();
    let all = view.gpus(&gpus.iter().copied().collect::<Vec<_>>());
    let counts: Vec<u16> = counts.into_iter().collect();
    match counts.as_slice() {
        [] => {}
        [0] => {
            let what = "no NVLink between any GPUs";
            let why = "normal for PCIe cards without bridges; a fault only where the GPUs' model has NVLink";
            found.push(finding("nvlink_none", Severity::Info, Confidence::Proven, all, what, why));
        }
        [count] => {
            let all_pairs = gpus.len() * gpus.len().saturating_sub(1) / 2;
            found.push(uniform(*count, gpus.len(), (pairs.len(), all_pairs), all));
        }
        _ => {
            let islands = islands(&gpus, &pairs);
            if let Some(found_one) = left_out(view, &islands, &pairs) {
                found.push(found_one);
                return;
            }
            if islands.len() > 1 && islands.iter().all(|island| is_complete(island, &pairs)) {
                found.push(split(view, &islands));
            } else {
                found.extend(uneven(view, &gpus, &pairs, all));
            }
        }
    }
}

/// Every pair has the same number of links.
fn uniform(count: u16, gpus: usize, (shown, of): (usize, usize), place: String) -> Finding {
    let peers = gpus.saturating_sub(1);
    let total = usize::from(count) * peers;
    // No GPU has more than 18 links: more than that in sum means that all of them go to switches.
    let wiring = if peers <= 1 {
        format!("{count} links")
    } else if total <= MOST_LINKS {
        format!("{peers} peers with {count} links each, {total} links in all: a full mesh without switches")
    } else {
        format!("{count} links to every peer: through NVSwitches")
    };
    if shown < of {
        let what = format!("NV{count} between the {shown} pairs that are shown, of {of}: {wiring}");
        let why = "no pair that is shown lacks links; rows are missing, so nothing is said of the others";
        return finding("nvlink_uniform", Severity::Info, Confidence::Likely, place, what, why);
    }
    let what = format!("NV{count} between all pairs: {wiring}");
    let why = "the mesh is whole; how many links a GPU should have is a matter of its model, and a matrix does not show a domain beyond this node";
    finding("nvlink_uniform", Severity::Info, Confidence::Proven, place, what, why)
}

/// Groups of GPUs that NVLink connects.
fn islands(gpus: &BTreeSet<u16>, pairs: &BTreeMap<(u16, u16), u16>) -> Vec<Vec<u16>> {
    let mut left: BTreeSet<u16> = gpus.clone();
    let mut islands = Vec::new();
    while let Some(first) = left.pop_first() {
        let mut island = vec![first];
        let mut next = 0;
        while let Some(gpu) = island.get(next).copied() {
            next += 1;
            let reached: Vec<u16> =
                left.iter().copied().filter(|other| linked(gpu, *other, pairs) > 0).collect();
            for other in reached {
                left.remove(&other);
                island.push(other);
            }
        }
        island.sort_unstable();
        islands.push(island);
    }
    islands
}

fn linked(a: u16, b: u16, pairs: &BTreeMap<(u16, u16), u16>) -> u16 {
    pairs.get(&(a.min(b), a.max(b))).copied().unwrap_or(0)
}

/// All pairs of an island are connected, with one number of links.
fn is_complete(island: &[u16], pairs: &BTreeMap<(u16, u16), u16>) -> bool {
    let inner = island.iter().flat_map(|a| island.iter().map(move |b| (*a, *b))).filter(|(a, b)| a < b);
    let counts: BTreeSet<u16> = inner.map(|(a, b)| linked(a, b, pairs)).collect();
    counts.len() <= 1 && !counts.contains(&0)
}

/// GPUs without NVLink beside an island that only switches can connect: bridges join four GPUs at most.
fn left_out(view: &View<'_>, islands: &[Vec<u16>], pairs: &BTreeMap<(u16, u16), u16>) -> Option<Finding> {
    let largest = islands.iter().max_by_key(|island| island.len())?;
    let (first, second) = (largest.first()?, largest.get(1)?);
    let links = usize::from(linked(*first, *second, pairs)) * (largest.len() - 1);
    let switched = largest.len() > MOST_BRIDGED || links > MOST_LINKS;
    let alone: Vec<u16> = islands.iter().filter(|island| island.len() == 1).flatten().copied().collect();
    if !switched || alone.is_empty() {
        return None;
    }
    let place = view.gpus(&alone);
    let what = format!(
        "{place} has no NVLink to the {} GPUs that NVLink connects ({})",
        largest.len(),
        view.gpus(largest)
    );
    let why = "NVSwitches connect all GPUs of a node: this one has lost its links, and everything to it goes over PCIe";
    let remedy = "nvidia-smi nvlink -s and nvidia-smi -q (Fabric) for this GPU; restart the fabric manager and reset the GPU; then exchange it";
    Some(finding("nvlink_left_out", Severity::Fail, Confidence::Likely, place, what, why).with_remedy(remedy))
}

fn split(view: &View<'_>, islands: &[Vec<u16>]) -> Finding {
    let names: Vec<String> = islands.iter().map(|island| format!("{{{}}}", view.gpus(island))).collect();
    let what = format!("NVLink connects the GPUs within {} islands: {}", islands.len(), names.join(", "));
    let across = view.inventory.links.iter().any(|(a, b, link)| match (a, b) {
        (Device::Gpu(_), Device::Gpu(_)) => link.pcie == Some(Distance::Sys),
        (Device::Gpu(_) | Device::Hca(_), Device::Gpu(_) | Device::Hca(_)) => false,
    });
    let way = if across { "across sockets" } else { "over PCIe" };
    let largest = islands.iter().map(Vec::len).max().unwrap_or(0);
    let why = format!(
        "as bridges are built, no fault; but tensor parallelism over more than {largest} GPUs runs {way}"
    );
    finding("nvlink_islands", Severity::Warn, Confidence::Proven, names.join(", "), what, why)
        .with_remedy(format!("keep groups that talk most within an island: at most {largest} GPUs"))
}

/// A mesh that is not regular: name the GPUs that have fewer links than the most usual number.
fn uneven(
    view: &View<'_>,
    gpus: &BTreeSet<u16>,
    pairs: &BTreeMap<(u16, u16), u16>,
    all: String,
) -> Option<Finding> {
    let total = |gpu: u16| -> u32 { gpus.iter().map(|other| u32::from(linked(gpu, *other, pairs))).sum() };
    let rows: Vec<&Gpu> = view.inventory.gpus.iter().filter(|gpu| gpus.contains(&gpu.index)).collect();
    let most = rows.iter().map(|gpu| total(gpu.index)).max()?;
    let fewer: Vec<u16> = rows.iter().map(|gpu| gpu.index).filter(|gpu| total(*gpu) < most).collect();
    let whole = pairs.len() == gpus.len() * gpus.len().saturating_sub(1) / 2;
    let (severity, sure, what) = match (fewer.is_empty(), whole) {
        (true, _) => (
            Severity::Info,
            Confidence::Likely,
            "pairs have different numbers of NVLinks, but each GPU as many in all: a mesh without switches"
                .to_owned(),
        ),
        (false, false) => (
            Severity::Info,
            Confidence::Unknown,
            "pairs have different numbers of NVLinks; rows are missing, so what that means cannot be told"
                .to_owned(),
        ),
        (false, true) => (
            Severity::Warn,
            Confidence::Likely,
            format!("{} have fewer NVLinks than the others", view.gpus(&fewer)),
        ),
    };
    let why = "the pair with the fewest links sets the pace inside the node";
    let place = if fewer.is_empty() { all } else { view.gpus(&fewer) };
    Some(
        finding("nvlink_uneven", severity, sure, place, what, why)
            .with_remedy("nvidia-smi nvlink -s shows each link's state"),
    )
}

fn not_shown(view: &View<'_>, found: &mut Vec<Finding>) {
    let gpus: Vec<u16> = view.inventory.gpus.iter().map(|gpu| gpu.index).collect();
    let other = view.inventory.matrix.as_ref().is_some_and(|matrix| !matrix.unknown_words.is_empty());
    if gpus.len() < 2
        || other
        || view.inventory.gpus.iter().any(|gpu| !gpu.nvlinks.is_empty() || gpu.nvlink_summary.is_some())
    {
        return;
    }
    let what = "the matrix does not show whether there is NVLink";
    let why = "it may be the -mp form, which leaves NVLink out; or the GPUs are passed through to a VM; or NVLink is down; or there is none";
    found.push(
        finding("nvlink_not_shown", Severity::Info, Confidence::Unknown, view.gpus(&gpus), what, why)
            .with_remedy("nvidia-smi nvlink -s tells"),
    );
}

/// GPUs that a bridge connects at most (H200 NVL).
const MOST_BRIDGED: usize = 4;
/// Links of the largest GPUs (H100, B200).
const MOST_LINKS: usize = 18;
