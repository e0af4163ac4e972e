//! Promises of the public types that the compiler can check.

#![cfg(feature = "client")]

use std::error::Error;
use std::fmt::Debug;
use std::time::Duration;

use quorlock::protocol::policy::PolicyError;
use quorlock::protocol::quorum::{Quorum, QuorumError};
use quorlock::protocol::request::RequestError;
use quorlock::protocol::votes::Tally;
use quorlock::{
    AcquireError, CloseReport, ConnectError, ExtendError, Guard, Hold, HolderId, LockRequest, Lost, Policy,
    Redlock, Refusal, Released, UsingError, Why,
};

const fn is_shared<T: Send + Sync + Debug + 'static>() {}
const fn is_cheap<T: Clone>() {}
const fn is_compared<T: PartialEq + Eq>() {}
const fn is_error<T: Error + Send + Sync + 'static>() {}
fn is_sent<T: Send>(future: T) -> T {
    future
}

const _: () = {
    is_shared::<Redlock>();
    is_shared::<LockRequest>();
    is_shared::<Guard>();
    is_shared::<Hold>();
    is_shared::<HolderId>();
    is_shared::<Refusal>();
    is_shared::<Released>();
    is_shared::<CloseReport>();
    is_shared::<Policy>();
    is_shared::<Tally>();
    is_shared::<Quorum>();

    is_cheap::<Redlock>();
    is_cheap::<LockRequest>();
    is_cheap::<Hold>();
    is_cheap::<HolderId>();
    is_cheap::<AcquireError>();
    is_cheap::<ConnectError>();

    is_compared::<HolderId>();
    is_compared::<Released>();
    is_compared::<Lost>();
    is_compared::<Why>();
    is_compared::<CloseReport>();
    is_compared::<Policy>();

    is_error::<AcquireError>();
    is_error::<ExtendError>();
    is_error::<ConnectError>();
    is_error::<Lost>();
    is_error::<UsingError<String>>();
    is_error::<RequestError>();
    is_error::<PolicyError>();
    is_error::<QuorumError>();
};

#[cfg(feature = "fred")]
const _: () = {
    is_shared::<quorlock::Builder>();
    is_shared::<quorlock::Inspection>();
    is_error::<quorlock::BadUrl>();
    is_error::<quorlock::EndpointError>();
    is_error::<quorlock::InitError>();
};

#[cfg(feature = "tls")]
const _: () = {
    is_shared::<quorlock::Tls>();
    is_error::<quorlock::TlsError>();
};

/// Two guards of one lock would be two releases of it. Where `Guard` were `Clone`, both impls would apply to it, and
/// the compiler could not infer which one is meant.
const _: () = {
    trait Ambiguous<Which> {
        const FINE: () = ();
    }
    struct IfAny;
    struct IfClone;
    impl<T> Ambiguous<IfAny> for T {}
    impl<T: Clone> Ambiguous<IfClone> for T {}
    <Guard as Ambiguous<_>>::FINE
};

/// Never run: the futures can be spawned on a runtime of many threads, and a guard can move into a task.
#[allow(dead_code, reason = "compiling it is the test")]
async fn every_future_is_send(redlock: Redlock, guard: Guard, hold: Hold, holder: HolderId) {
    let request = redlock.lock("order:1");
    let _ = is_sent(request.acquire()).await;
    let _ = is_sent(request.try_acquire()).await;
    let _ = is_sent(request.using(async |_| 7)).await;
    let _ = is_sent(request.using(|hold| async move { hold.lost().await })).await;
    let _ = is_sent(hold.lost()).await;
    let _ = is_sent(guard.lost()).await;
    let _ = is_sent(guard.extend(Duration::from_secs(1))).await;
    let _ = is_sent(redlock.extend_as("order:1", &holder, Duration::from_secs(1))).await;
    let _ = is_sent(redlock.release_as("order:1", &holder)).await;
    let _ = is_sent(redlock.close()).await;
    let _ = is_sent(guard.release()).await;
}

/// Never run: a task of its own may acquire, hold and release, which needs futures that borrow nothing outside.
#[allow(dead_code, reason = "compiling it is the test")]
fn a_whole_life_fits_into_a_task(redlock: Redlock) {
    const fn is_task<T: Send + 'static>(_: &T) {}
    let life = async move {
        if let Ok(guard) = redlock.lock(b"\0\xff").ttl(Duration::from_secs(9)).acquire().await {
            let hold = guard.hold();
            let watch = async move { hold.lost().await };
            is_task(&watch);
            watch.await;
            let _ = guard.release().await;
        }
    };
    is_task(&life);
}

/// Never run: what the work made is handed back when the lock was lost meanwhile, also if it is neither `Clone` nor
/// `Debug`.
#[allow(dead_code, reason = "compiling it is the test")]
async fn the_output_survives_the_loss(request: LockRequest) -> Option<Vec<Box<dyn FnOnce() + Send>>> {
    match request.using(|_| async { Vec::new() }).await {
        Ok(output) | Err(UsingError::LostMeanwhile { output, .. }) => Some(output),
        Err(_) => None,
    }
}

#[test]
fn errors_read_as_sentences_and_lead_to_their_source() {
    let error = ConnectError::from(QuorumError::NoMasters);
    assert!(error.to_string().contains("no masters"));
    let error: Box<dyn Error + Send + Sync> = AcquireError::from(RequestError::EmptyResource).into();
    assert!(error.to_string().contains("the resource is empty"));
    assert!(!AcquireError::Closed.is_retryable());
}

// B107
#[test]
fn the_front_page_promises_no_more_than_a_lease_can() {
    let page = include_str!("../README.md");
    // As a reader has it, whatever the width of lines.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (first, _) = page.split_once("## Try it").expect("the first screen ends there");
    let first = words(first);
    for said in [
        "It is a lease, not a mutex",
        "Not promised",
        "side effects after the validity ended",
        "A process can be paused",
        "wall clock is stepped forward",
        "a master that restarted",
        "`guard.is_valid()` right before each effect",
        "`FLUSHALL`, `SWAPDB`, `REPLICAOF`, eviction",
    ] {
        assert!(first.contains(said), "the first screen does not say: {said}");
    }
    assert!(!words(page).to_lowercase().contains("exactly once"));
}
