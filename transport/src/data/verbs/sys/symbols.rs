//! The functions of `libibverbs.so.1`, looked up when the library is loaded.
//!
//! `dlsym` gives the default version of a symbol, which for all of these is `IBVERBS_1.1` or the version that brought
//! the symbol. Those of 1.0, which take other structures, are hidden and are never found.

use std::ffi::{c_char, c_int, c_void};

use thiserror::Error;

use super::attributes::{AsyncEvent, DeviceAttr, Gid, GidEntry, PortAttr, QpAttr, QpInitAttr};
use super::objects::{Context, Cq, Device, Mr, Pd, Qp};

/// Declares the table and the code that fills it.
macro_rules! symbols {
    (required { $($name:ident = $symbol:literal: $signature:ty;)* } optional { $($may:ident = $may_symbol:literal: $may_signature:ty;)* }) => {
        /// The loaded functions. Those in an `Option` came later than the library's first version.
        pub(crate) struct Symbols {
            $(pub(crate) $name: $signature,)*
            $(pub(crate) $may: Option<$may_signature>,)*
        }

        impl Symbols {
            fn find(library: &libloading::Library) -> Result<Self, LoadError> {
                Ok(Self {
                    // SAFETY: the signature is that of verbs.h for this symbol.
                    $($name: unsafe { library.get::<$signature>($symbol) }
                        .map(|found| *found)
                        .map_err(|source| LoadError::Symbol { symbol: $symbol, source })?,)*
                    // SAFETY: as above.
                    $($may: unsafe { library.get::<$may_signature>($may_symbol) }.ok().map(|found| *found),)*
                })
            }
        }
    };
}

symbols! {
    required {
        get_device_list = "ibv_get_device_list": unsafe extern "C" fn(*mut c_int) -> *mut *mut Device;
        free_device_list = "ibv_free_device_list": unsafe extern "C" fn(*mut *mut Device);
        open_device = "ibv_open_device": unsafe extern "C" fn(*mut Device) -> *mut Context;
        close_device = "ibv_close_device": unsafe extern "C" fn(*mut Context) -> c_int;
        query_device = "ibv_query_device": unsafe extern "C" fn(*mut Context, *mut DeviceAttr) -> c_int;
        query_port = "ibv_query_port": unsafe extern "C" fn(*mut Context, u8, *mut PortAttr) -> c_int;
        query_gid = "ibv_query_gid": unsafe extern "C" fn(*mut Context, u8, c_int, *mut Gid) -> c_int;
        query_pkey = "ibv_query_pkey": unsafe extern "C" fn(*mut Context, u8, c_int, *mut u16) -> c_int;
        alloc_pd = "ibv_alloc_pd": unsafe extern "C" fn(*mut Context) -> *mut Pd;
        dealloc_pd = "ibv_dealloc_pd": unsafe extern "C" fn(*mut Pd) -> c_int;
        reg_mr = "ibv_reg_mr": unsafe extern "C" fn(*mut Pd, *mut c_void, usize, c_int) -> *mut Mr;
        dereg_mr = "ibv_dereg_mr": unsafe extern "C" fn(*mut Mr) -> c_int;
        create_cq = "ibv_create_cq": unsafe extern "C" fn(*mut Context, c_int, *mut c_void, *mut c_void, c_int) -> *mut Cq;
        destroy_cq = "ibv_destroy_cq": unsafe extern "C" fn(*mut Cq) -> c_int;
        create_qp = "ibv_create_qp": unsafe extern "C" fn(*mut Pd, *mut QpInitAttr) -> *mut Qp;
        modify_qp = "ibv_modify_qp": unsafe extern "C" fn(*mut Qp, *mut QpAttr, c_int) -> c_int;
        destroy_qp = "ibv_destroy_qp": unsafe extern "C" fn(*mut Qp) -> c_int;
        get_async_event = "ibv_get_async_event": unsafe extern "C" fn(*mut Context, *mut AsyncEvent) -> c_int;
        ack_async_event = "ibv_ack_async_event": unsafe extern "C" fn(*mut AsyncEvent);
        event_type_str = "ibv_event_type_str": unsafe extern "C" fn(u32) -> *const c_char;
    }
    optional {
        query_gid_ex = "_ibv_query_gid_ex": unsafe extern "C" fn(*mut Context, u32, u32, *mut GidEntry, u32, usize) -> c_int;
        reg_dmabuf_mr = "ibv_reg_dmabuf_mr": unsafe extern "C" fn(*mut Pd, u64, usize, u64, c_int, c_int) -> *mut Mr;
    }
}

impl Symbols {
    /// Loads the library by the loader's normal search.
    ///
    /// # Errors
    /// [`LoadError`] where the library or one of its functions is missing.
    pub(crate) fn load() -> Result<Self, LoadError> {
        // SAFETY: libibverbs' initialisers set up its own state only.
        let library =
            unsafe { libloading::Library::new(LIBRARY) }.map_err(|source| LoadError::Library { source })?;
        let symbols = Self::find(&library)?;
        // Drivers keep threads and handlers in it, and every function pointer above points into it: it stays.
        std::mem::forget(library);
        Ok(symbols)
    }
}

/// Why the library cannot be used.
#[derive(Debug, Error)]
pub(crate) enum LoadError {
    /// The loader does not find it, or refuses it.
    #[error("{LIBRARY} could not be loaded: {source}")]
    Library {
        /// What the loader says.
        source: libloading::Error,
    },
    /// It lacks a function that every version has had since 2006.
    #[error("{LIBRARY} lacks {symbol}: {source}")]
    Symbol {
        /// The function.
        symbol: &'static str,
        /// What the loader says.
        source: libloading::Error,
    },
}

/// The library's name for the loader; `.1` is its only ABI so far.
const LIBRARY: &str = "libibverbs.so.1";
