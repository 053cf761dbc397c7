//! Sizes and offsets of the ABI as numbers.
//!
//! Printed by a C program from `infiniband/verbs.h` of Debian's libibverbs-dev 44.0 on x86-64, `active_speed_ex` and
//! the size of `ibv_port_attr` from rdma-core 55.
#![cfg(target_arch = "x86_64")]

use std::mem::{offset_of, size_of};

/// One test a structure: its size, then offsets of fields.
macro_rules! layouts {
    ($($structure:ident $size:literal: $($field:ident $offset:literal),*;)*) => {
        $(#[test]
        #[allow(non_snake_case, reason = "named after the structure")]
        fn $structure() {
            assert_eq!(size_of::<of::$structure>(), $size);
            $(assert_eq!(offset_of!(of::$structure, $field), $offset, stringify!($field));)*
        })*
    };
}

mod of {
    pub(super) use super::super::attributes::*;
    pub(super) use super::super::objects::*;
    pub(super) use super::super::work::*;
}

layouts! {
    Device 664: node_type 16, transport_type 20, name 24, dev_name 88, dev_path 152, ibdev_path 408;
    ContextOps 256: poll_cq 88, post_send 200, post_recv 208;
    Context 328: ops 8, cmd_fd 264, async_fd 268, num_comp_vectors 272, abi_compat 320;
    VerbsContext 648: query_port 0, sz 312, context 320;
    PortAttr 56: gid_tbl_len 12, port_cap_flags 16, pkey_tbl_len 32, lid 34, sm_lid 36, lmc 38, active_width 43, active_speed 44, phys_state 45, link_layer 46, flags 47, port_cap_flags2 48, active_speed_ex 52;
    DeviceAttr 232: max_mr_size 80, max_qp 108, max_qp_wr 112, max_sge 120, max_cqe 132, max_qp_rd_atom 144, max_qp_init_rd_atom 156, vendor_id 96, vendor_part_id 100, phys_port_cnt 227, local_ca_ack_delay 226, max_pkeys 224;
    Wc 48: status 8, opcode 12, vendor_err 16, byte_len 20, imm_data 24, qp_num 28, src_qp 32, wc_flags 36, pkey_index 40, slid 42, sl 44, dlid_path_bits 45;
    Pd 16: ;
    Mr 48: addr 16, length 24, lkey 36, rkey 40;
    Cq 128: handle 24, cqe 28;
    Qp 160: handle 48, qp_num 52, state 56, qp_type 60;
    QpCap 20: ;
    QpInitAttr 64: cap 32, qp_type 52, sq_sig_all 56;
    GlobalRoute 24: flow_label 16, sgid_index 20, hop_limit 21, traffic_class 22;
    AhAttr 32: dlid 24, sl 26, src_path_bits 27, static_rate 28, is_global 29, port_num 30;
    QpAttr 144: path_mtu 8, qkey 16, rq_psn 20, sq_psn 24, dest_qp_num 28, qp_access_flags 32, cap 36, ah_attr 56, alt_ah_attr 88, pkey_index 120, en_sqd_async_notify 124, max_rd_atomic 126, max_dest_rd_atomic 127, min_rnr_timer 128, port_num 129, timeout 130, retry_cnt 131, rnr_retry 132, rate_limit 136;
    Sge 16: ;
    SendWr 128: next 8, sg_list 16, num_sge 24, opcode 28, send_flags 32, imm_data 36, rdma 40;
    RecvWr 32: num_sge 24;
    AsyncEvent 16: event_type 8;
    GidEntry 32: gid_index 16, port_num 20, gid_type 24, ndev_ifindex 28;
}
