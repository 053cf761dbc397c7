//! Tier 2: meshes over real addresses in network namespaces. Needs root; tests/netns/run.sh builds and runs it.

mod sound;
