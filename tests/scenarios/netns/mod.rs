//! Tier 2: meshes over real addresses in network namespaces. Needs root; tests/netns/run.sh builds and runs it.

mod absent_nodes;
mod clocks;
mod coordinator_cut_off;
mod coordinator_dies;
mod death_in_a_round;
mod elections_under_load;
mod electors_lose_state;
mod hang_in_a_round;
mod partition;
mod rails;
mod service;
mod slow_rail;
mod sound;
mod without_key;
mod workers;
