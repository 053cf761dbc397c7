//! The RDMA operations that tests are made of.

/// What a work request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// RDMA write: the source puts bytes into the destination's memory, which is not told.
    Write,
    /// RDMA write with immediate: the same, and the destination gets a completion.
    WriteImm,
    /// RDMA read: the initiator takes bytes out of the other end's memory, which is not told.
    Read,
    /// Send and receive.
    Send,
}

/// Whether the end that does not initiate an operation gets to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sides {
    /// It does not: only the initiator can count.
    One,
    /// It gets a completion for each.
    Two,
}

impl Operation {
    /// Whether the other end gets to know of it.
    pub const fn sides(self) -> Sides {
        match self {
            Self::Write | Self::Read => Sides::One,
            Self::WriteImm | Self::Send => Sides::Two,
        }
    }
}
