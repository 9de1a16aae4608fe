//! The limit of open files; connections count as files, too.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::limits::WANTED_OPEN_FILES;

/// Raises the limit of open files as far as wanted and allowed, and returns it.
#[must_use]
pub fn raise_open_file_limit() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(u64::MAX);
    let soft = limit.current.unwrap_or(u64::MAX);
    let wanted = WANTED_OPEN_FILES.min(hard);
    let raised = Rlimit {
        current: Some(wanted),
        maximum: limit.maximum,
    };
    let now = if wanted > soft && setrlimit(Resource::Nofile, raised).is_ok() {
        wanted
    } else {
        soft
    };
    usize::try_from(now).unwrap_or(usize::MAX)
}
