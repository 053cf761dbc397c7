//! Whether a device could reach GPU memory, and by which mechanism: the registration path, tried without a GPU.

use std::path::Path;

use rustix::io::Errno;

use super::errno;
use super::protection_domain::ProtectionDomain;
use super::result;

/// What the two mechanisms say, for the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GpuDirect {
    /// DMA-BUF: the driver of the HCA takes a buffer that the GPU's driver exports.
    pub(super) dma_buf: String,
    /// peermem: a module of the GPU's vendor lets `ibv_reg_mr` take GPU addresses.
    pub(super) peermem: &'static str,
}

/// Tries both.
pub(super) fn probe(pd: &ProtectionDomain) -> GpuDirect {
    // SAFETY: the domain lives.
    let refusal = unsafe { result::try_dmabuf(pd.context().symbols(), pd.as_ptr(), pd.context().name()) };
    let dma_buf = match refusal {
        None => "not known: this libibverbs is older than DMA-BUF (rdma-core 34)".to_owned(),
        Some(error) if error.errno == Errno::BADF => "supported by the driver".to_owned(),
        Some(error) => format!("refused by the driver: {}", errno::text(error.errno)),
    };
    GpuDirect { dma_buf, peermem: peermem(Path::new("/sys/module")) }
}

fn peermem(modules: &Path) -> &'static str {
    if modules.join("nvidia_peermem").exists() {
        "nvidia_peermem is loaded"
    } else if modules.join("nv_peer_mem").exists() {
        "nv_peer_mem is loaded"
    } else {
        "no peermem module is loaded"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peermem_is_known_by_its_module() {
        let root = tempfile::tempdir().expect("a folder");
        assert_eq!(peermem(root.path()), "no peermem module is loaded");
        std::fs::create_dir(root.path().join("nvidia_peermem")).expect("a folder");
        assert_eq!(peermem(root.path()), "nvidia_peermem is loaded");
    }
}
