//! What scenarios are written with: the executable, its processes, meshes of them, and the questions to a report.

pub(crate) mod dns;
pub(crate) mod exclusive;
pub(crate) mod fabric;
pub(crate) mod mesh;
pub(crate) mod process;
pub(crate) mod program;
pub(crate) mod report;
pub(crate) mod site;
pub(crate) mod waiting;
