//! Where fencing tokens come from.

use quorlock::{Guard, LockRequest};

pub(crate) fn ask(request: LockRequest) -> LockRequest {
    request.fenced()
}

/// 0 from a lock that is over before it could be used: then nobody takes it for a token.
pub(crate) fn token(guard: &Guard) -> u64 {
    guard.fence().map_or(0, |token| token.as_u64())
}
