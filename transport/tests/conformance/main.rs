//! What every backend of the data plane promises, as tests: the same bodies against `tcp` and `sim`, and beside them
//! what only TCP can meet (strangers, broken and silent connections) and only RDMA (one-sided operations, addresses,
//! completions).
//!
//! RDMA runs over the recording library of `tests/fakeverbs`, each test in a process of its own that finds it: see [`fake`].
//!
//! A backend joins by a constructor of [`rig::Rig`] and a line in the table below. Cells run one after the other:
//! a measurement that shares the machine with another test would be judged on luck.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bandwidth;
mod fake;
mod latency;
mod lifecycle;
mod pacing;
mod proxy;
mod rig;
mod tcp_faults;
mod tcp_strangers;
mod verbs_addresses;
mod verbs_completions;
mod verbs_one_sided;

macro_rules! conformance {
    ($backend:ident: $($module:ident::$body:ident),* $(,)?) => {
        mod $backend {
            $(#[test] fn $body() { crate::$module::$body(&crate::rig::Rig::$backend()); })*
        }
    };
    ($($backend:ident),+; $bodies:tt) => { $(conformance!(@ $backend $bodies);)+ };
    (@ $backend:ident { $($bodies:tt)* }) => { conformance!($backend: $($bodies)*); };
}

/// The same for a backend that needs the recording library.
macro_rules! over_fake_verbs {
    ($backend:ident: $($module:ident::$body:ident),* $(,)?) => {
        mod $backend {
            $(#[test] fn $body() {
                crate::fake::over(
                    concat!(stringify!($backend), "::", stringify!($body)),
                    crate::fake::ROCE,
                    || crate::$module::$body(&crate::rig::Rig::$backend()),
                );
            })*
        }
    };
    ($($backend:ident),+; $bodies:tt) => { $(over_fake_verbs!(@ $backend $bodies);)+ };
    (@ $backend:ident { $($bodies:tt)* }) => { over_fake_verbs!($backend: $($bodies)*); };
}

over_fake_verbs!(send, write_imm; {
    bandwidth::both_ends_agree_on_the_bytes_of_the_window,
    bandwidth::marks_grow_and_stay_inside_the_window,
    bandwidth::several_streams_are_one_sample,
    bandwidth::verified_data_is_equal_and_counted,
    latency::every_exchange_of_the_window_is_in_the_histogram,
    latency::percentiles_are_ordered_and_the_largest_stays,
    latency::verified_answers_are_equal,
    lifecycle::evidence_names_device_and_both_addresses,
    lifecycle::a_stop_before_the_start_is_noticed_at_once,
    lifecycle::a_stop_in_the_window_ends_both_ends,
    lifecycle::a_stop_is_noticed_while_the_peer_is_silent,
    lifecycle::a_late_start_is_refused,
    lifecycle::an_end_runs_only_when_armed_and_only_once,
    lifecycle::a_peer_that_left_is_a_failure_of_the_infrastructure,
    lifecycle::a_peer_that_never_runs_costs_no_more_than_the_deadline,
});

conformance!(tcp, sim; {
    bandwidth::both_ends_agree_on_the_bytes_of_the_window,
    bandwidth::marks_grow_and_stay_inside_the_window,
    bandwidth::a_rate_limit_is_not_exceeded,
    bandwidth::several_streams_are_one_sample,
    bandwidth::verified_data_is_equal_and_counted,
    bandwidth::spinning_moves_data_as_blocking_does,
    latency::every_exchange_of_the_window_is_in_the_histogram,
    latency::percentiles_are_ordered_and_the_largest_stays,
    latency::verified_answers_are_equal,
    latency::spinning_times_exchanges_as_blocking_does,
    lifecycle::only_a_destination_tells_where_it_listens,
    lifecycle::evidence_names_device_and_both_addresses,
    lifecycle::a_stop_before_the_start_is_noticed_at_once,
    lifecycle::a_stop_in_the_window_ends_both_ends,
    lifecycle::a_stop_is_noticed_while_the_peer_is_silent,
    lifecycle::a_destination_that_nobody_calls_gives_up_in_time,
    lifecycle::a_destination_that_nobody_calls_can_be_stopped,
    lifecycle::a_call_to_a_port_that_is_closed_fails,
    lifecycle::an_address_that_is_not_ours_is_unsupported,
    lifecycle::a_late_start_is_refused,
    lifecycle::an_end_runs_only_when_armed_and_only_once,
    lifecycle::a_peer_that_left_is_a_failure_of_the_infrastructure,
    lifecycle::a_peer_that_never_runs_costs_no_more_than_the_deadline,
});
