//! `railmesh topo` as a person runs it, and the conclusions from a collection of real captures where there is one.

mod command;
mod corpus;
