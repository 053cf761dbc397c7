//! The RDMA devices of this node.

use std::ffi::{CStr, c_char};
use std::ptr::NonNull;
use std::sync::Arc;

use super::context::Context;
use super::error::VerbError;
use super::result;
use super::sys::constants::NODE_CA;
use super::sys::{Device, Symbols};

/// The devices at one instant. Names and paths stay valid while it lives; opened devices do not need it.
pub(super) struct DeviceList {
    symbols: &'static Symbols,
    list: NonNull<*mut Device>,
    count: usize,
}

/// A device of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeviceName {
    /// The device's name, such as `mlx5_0`.
    pub(super) name: String,
    /// Its name below `/dev/infiniband`, such as `uverbs0`.
    pub(super) uverbs: String,
    /// Whether it speaks InfiniBand or RoCE.
    pub(super) transport: Transport,
}

/// What a device speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    /// InfiniBand or RoCE.
    InfiniBand,
    /// iWARP, usNIC and others, which this backend does not measure.
    Other,
}

impl DeviceList {
    /// Lists the devices.
    ///
    /// # Errors
    /// [`VerbError`], with ENOSYS where the kernel has no RDMA at all.
    pub(super) fn read(symbols: &'static Symbols) -> Result<Self, VerbError> {
        // SAFETY: freed once, in drop.
        let (list, count) = unsafe { result::get_device_list(symbols) }?;
        Ok(Self { symbols, list, count })
    }

    /// What each is called.
    pub(super) fn names(&self) -> Vec<DeviceName> {
        self.devices().iter().map(|device| name_of(*device)).collect()
    }

    /// Opens the device of that name; `None` if there is none.
    ///
    /// # Errors
    /// [`VerbError`] where it is there and does not open.
    pub(super) fn open(&self, name: &str) -> Option<Result<Arc<Context>, VerbError>> {
        let device = *self.devices().iter().find(|device| name_of(**device).name == name)?;
        // SAFETY: the list is not freed yet; the context closes itself.
        let opened = unsafe { result::open_device(self.symbols, device, name) };
        Some(opened.map(|context| Arc::new(Context::new(self.symbols, context, name))))
    }

    fn devices(&self) -> &[*mut Device] {
        // SAFETY: the library made a list of `count` pointers, which lives until drop.
        unsafe { std::slice::from_raw_parts(self.list.as_ptr(), self.count) }
    }
}

impl Drop for DeviceList {
    fn drop(&mut self) {
        // SAFETY: the list is of this library and goes with this value.
        unsafe { result::free_device_list(self.symbols, self.list) };
    }
}

fn name_of(device: *mut Device) -> DeviceName {
    // SAFETY: a device of a list that lives; what follows are plain fields.
    let device = unsafe { &*device };
    DeviceName {
        name: text(&device.name),
        uverbs: text(&device.dev_name),
        transport: match (device.node_type, device.transport_type) {
            (NODE_CA, 0) => Transport::InfiniBand,
            _ => Transport::Other,
        },
    }
}

/// A field of characters up to its final zero.
pub(super) fn text(field: &[c_char]) -> String {
    let bytes: Vec<u8> = field.iter().map(|c| c.cast_unsigned()).collect();
    CStr::from_bytes_until_nul(&bytes).map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}
