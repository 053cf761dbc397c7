//! What an errno of a verb means, in words, and what to do about it.

use rustix::io::Errno;

/// The symbol and number of an errno that verbs return, as manual pages and search engines know it.
pub(super) fn code(errno: Errno) -> String {
    let symbol = match errno {
        Errno::ACCESS => "EACCES",
        Errno::AGAIN => "EAGAIN",
        Errno::BUSY => "EBUSY",
        Errno::FAULT => "EFAULT",
        Errno::HOSTUNREACH => "EHOSTUNREACH",
        Errno::INVAL => "EINVAL",
        Errno::IO => "EIO",
        Errno::MFILE => "EMFILE",
        Errno::NETDOWN => "ENETDOWN",
        Errno::NETUNREACH => "ENETUNREACH",
        Errno::NFILE => "ENFILE",
        Errno::NODATA => "ENODATA",
        Errno::NODEV => "ENODEV",
        Errno::NOENT => "ENOENT",
        Errno::NOMEM => "ENOMEM",
        Errno::NOSPC => "ENOSPC",
        Errno::NOSYS => "ENOSYS",
        Errno::NXIO => "ENXIO",
        Errno::OPNOTSUPP => "EOPNOTSUPP",
        Errno::PERM => "EPERM",
        Errno::PROTONOSUPPORT => "EPROTONOSUPPORT",
        Errno::TIMEDOUT => "ETIMEDOUT",
        _ => "errno",
    };
    format!("{symbol} {}", errno.raw_os_error())
}

/// The kernel's words with the code behind them: `not enough memory (ENOMEM 12)`.
pub(super) fn text(errno: Errno) -> String {
    let system = std::io::Error::from(errno).to_string();
    let words = system.split_once(" (os error").map_or(system.as_str(), |(words, _)| words);
    format!("{} ({})", words.to_lowercase(), code(errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_errno_is_told_in_words_and_as_a_code() {
        assert_eq!(text(Errno::NOMEM), "cannot allocate memory (ENOMEM 12)");
        assert_eq!(text(Errno::OPNOTSUPP), "operation not supported (EOPNOTSUPP 95)");
        assert!(text(Errno::from_raw_os_error(4_000)).ends_with("(errno 4000)"));
    }
}
