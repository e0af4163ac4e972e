//! Work under a lock, cancelled when the lock is lost.

use std::pin::pin;

use super::error::UsingError;
use super::guard::{Guard, Hold};
use super::release::Released;

pub(crate) async fn run<F, Fut>(guard: Guard, work: F) -> Result<Fut::Output, UsingError<Fut::Output>>
where
    F: FnOnce(Hold) -> Fut,
    Fut: Future,
{
    let done = {
        let mut work = pin!(work(guard.hold()));
        tokio::select! {
            biased;
            // Looked at first: work that finds its lock gone must not take another step.
            lost = guard.lost() => Err(lost),
            output = &mut work => Ok(output),
        }
    };
    match (done, guard.release().await) {
        (Err(lost), _) => Err(UsingError::Cancelled(lost)),
        (Ok(output), Released::AlreadyLost(lost)) => Err(UsingError::LostMeanwhile { output, lost }),
        (Ok(output), _) => Ok(output),
    }
}
