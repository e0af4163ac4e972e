//! Futures and guards dropped wherever they can be dropped: no key stays longer than the rules say, nothing is renewed,
//! the next one gets the lock, and no task is left over.
//!
//! Each operation, on one resource, on three at once, and fenced in two rounds, is dropped before its first poll, after the first, after the
//! second, until it ends by itself; and at each of the moments at which something is on its way, in several kinds of
//! weather.

#[path = "network/mod.rs"]
mod network;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use network::{
    MASTER_TIMEOUT, NOWHERE, Network, RESOURCE, TTL, Weather, millis, polled, request, request_of_three,
};
use quorlock::protocol::fanout::Act;
use quorlock::{AcquireError, Guard, LockRequest, Redlock, UsingError};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};

const CALM: Weather = Weather::CALM;

/// Five masters near and far; one that is down; one that loses claims' answers; one that loses everything.
fn climates() -> Vec<[Weather; 5]> {
    let near = Weather::far(1, 1);
    let far = Weather::far(3, 9);
    let slow = Weather::far(30, 30);
    let creates = |act: Act| act.creates();
    let deaf = Weather { unanswered: creates, ..near };
    let forgetful = Weather { lost: creates, ..near };
    vec![
        [CALM; 5],
        [near, Weather::far(2, 2), Weather::far(3, 3), Weather::far(5, 5), slow],
        [near, far, slow, Weather::DOWN, Weather::DOWN],
        [near, near, far, deaf, deaf],
        [near, far, deaf, deaf, deaf],
        [far, far, far, forgetful, forgetful],
        [near, near, near, Weather::LOST, Weather::MUTE],
        [Weather::MUTE, Weather::LOST, slow, slow, far],
        [Weather::DOWN, Weather::DOWN, Weather::DOWN, near, near],
        [Weather::far(700, 1), near, near, near, Weather::far(1, 700)],
    ]
}

/// When an operation is dropped.
#[derive(Clone, Copy, Debug)]
enum Until {
    Polls(usize),
    After(Duration),
}

impl Until {
    /// What `future` came to, if it ended by then.
    async fn run<F: Future>(self, future: F) -> Option<F::Output> {
        match self {
            Self::Polls(polls) => polled(future, polls).await,
            Self::After(time) => timeout(time, future).await.ok(),
        }
    }

    fn all() -> impl Iterator<Item = Self> {
        let moments =
            [0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 20, 31, 45, 61, 100, 300, 499, 501, 600, 900, 1_100, 1_500];
        (0..12).map(Self::Polls).chain(moments.map(|after| Self::After(millis(after))))
    }
}

/// Runs `operation` for each climate and moment: on a network and a client of its own.
async fn matrix<F: Future<Output = ()>>(operation: impl Fn(Scene) -> F) {
    let kinds: [(&str, Request); 3] =
        [("one", request), ("three", request_of_three), ("one that is fenced", fenced_request)];
    for (number, request) in kinds {
        for (nth, climate) in climates().into_iter().enumerate() {
            for until in Until::all() {
                let tasks = alive_tasks();
                let network = Network::new(5);
                let client = network.client();
                let what = format!("{until:?} of {number} in climate {nth}");
                network.set_all(&climate);
                network.let_counters_differ();
                operation(Scene { network, client, request, until, what: what.clone() }).await;
                no_task_is_left(tasks, &what).await;
            }
        }
    }
}

fn fenced_request(client: &Redlock) -> LockRequest {
    request(client).fenced()
}

type Request = fn(&Redlock) -> LockRequest;

struct Scene {
    network: Network,
    client: Redlock,
    request: Request,
    until: Until,
    what: String,
}

impl Scene {
    fn request(&self) -> LockRequest {
        (self.request)(&self.client)
    }

    /// After a drop at this moment: nothing of ours stays, and the lock can be had.
    async fn nothing_stays(self) {
        let dropped = Instant::now();
        // What was on its way has arrived, and so has the delete behind it.
        sleep(millis(1_500)).await;
        let reachable = |master: &usize| {
            let weather = self.network.weather()[*master];
            !weather.down && !(weather.lost)(Act::Release)
        };
        let keys = self.network.occupied();
        assert!(!keys.iter().any(reachable), "keys on {keys:?} after {}", self.what);
        self.nothing_is_renewed_after(dropped);
        self.network.set(0..5, CALM);
        let guard = match self.request().try_acquire().await {
            Ok(guard) => guard,
            // Where the deletes were lost the ttl has the last word.
            Err(AcquireError::Contended(_)) if keys.len() > 2 => {
                sleep(TTL + millis(1)).await;
                self.request().try_acquire().await.expect("free after the ttl")
            }
            Err(error) => panic!("{error} after {}", self.what),
        };
        assert!(guard.release().await.is_freed());
        sleep(TTL + millis(2)).await;
        assert_eq!(self.network.occupied(), NOWHERE, "after {}", self.what);
    }

    fn nothing_is_renewed_after(&self, dropped: Instant) {
        let late =
            self.network.done().into_iter().find(|done| done.sent > dropped && done.act != Act::Release);
        assert!(late.is_none(), "{late:?} after {}", self.what);
    }

    async fn guard(&self) -> Option<Guard> {
        let weather = self.network.weather();
        self.network.set(0..5, CALM);
        let guard = self.request().try_acquire().await.expect("calm");
        self.network.set_all(&weather);
        Some(guard)
    }
}

fn alive_tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

async fn no_task_is_left(before: usize, what: &str) {
    sleep(3 * MASTER_TIMEOUT).await;
    assert_eq!(alive_tasks(), before, "tasks after {what}");
}

/// How often an operation was dropped, and how often it ended before: both must happen, or nothing is tested.
#[derive(Debug, Default)]
struct Ends {
    dropped: Cell<usize>,
    won: Cell<usize>,
    failed: Cell<usize>,
}

impl Ends {
    fn count(&self, end: &Cell<usize>) {
        end.set(end.get() + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_acquire_leaves_nothing() {
    let ends = Ends::default();
    matrix(async |scene| {
        match scene.until.run(scene.request().wait(millis(700)).acquire()).await {
            None => ends.count(&ends.dropped),
            Some(Err(_)) => ends.count(&ends.failed),
            Some(Ok(guard)) => {
                ends.count(&ends.won);
                drop(guard);
            }
        }
        scene.nothing_stays().await;
    })
    .await;
    assert!(ends.dropped.get() > 50 && ends.won.get() > 50 && ends.failed.get() > 5, "{ends:?}");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_leaves_nothing() {
    let ends = Ends::default();
    matrix(async |scene| {
        // Free again after a third of a second, so that some drops fall into the claims that win.
        scene.network.lock_by_another(RESOURCE, Some(millis(333)));
        match scene.until.run(scene.request().wait(millis(800)).acquire()).await {
            None => ends.count(&ends.dropped),
            Some(Err(_)) => ends.count(&ends.failed),
            Some(Ok(guard)) => {
                ends.count(&ends.won);
                drop(guard);
            }
        }
        scene.nothing_stays().await;
    })
    .await;
    assert!(ends.dropped.get() > 50 && ends.won.get() > 20 && ends.failed.get() > 5, "{ends:?}");
}

/// The same, and the client goes with it: its tasks finish what is under way.
#[tokio::test(start_paused = true)]
async fn a_client_dropped_with_its_acquire_leaves_nothing() {
    matrix(async |scene| {
        let Scene { network, client, request, until, what } = scene;
        let ended = until.run(request(&client).wait(millis(700)).acquire()).await;
        drop((ended, client));
        let dropped = Instant::now();
        sleep(millis(1_500)).await;
        let reachable = |master: &usize| {
            let weather = network.weather()[*master];
            !weather.down && !(weather.lost)(Act::Release)
        };
        let keys = network.occupied();
        assert!(!keys.iter().any(reachable), "keys on {keys:?} after {what}");
        let late = network.done().into_iter().find(|done| done.sent > dropped && done.act != Act::Release);
        assert!(late.is_none(), "{late:?} after {what}");
        sleep(TTL).await;
        assert_eq!(network.occupied(), NOWHERE, "after {what}");
    })
    .await;
}

/// A release is on its way from the first poll on; before that, dropping it drops the guard.
#[tokio::test(start_paused = true)]
async fn a_dropped_release_is_a_release() {
    let ends = Ends::default();
    matrix(async |scene| {
        let Some(guard) = scene.guard().await else { return };
        match scene.until.run(guard.release()).await {
            None => ends.count(&ends.dropped),
            Some(released) if released.is_freed() => ends.count(&ends.won),
            Some(_) => ends.count(&ends.failed),
        }
        scene.nothing_stays().await;
    })
    .await;
    assert!(ends.dropped.get() > 30 && ends.won.get() > 50 && ends.failed.get() > 5, "{ends:?}");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_using_drops_the_work_and_leaves_nothing() {
    /// Counts the work that is alive.
    struct Working<'a>(&'a Cell<usize>);
    impl Drop for Working<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() - 1);
        }
    }
    let (ends, working) = (Ends::default(), Cell::new(0));
    matrix(async |scene| {
        let work = async |_| {
            working.set(working.get() + 1);
            let _working = Working(&working);
            sleep(millis(40)).await;
            sleep(millis(60)).await;
        };
        match scene.until.run(scene.request().wait(millis(700)).using(work)).await {
            None => ends.count(&ends.dropped),
            Some(Ok(())) => ends.count(&ends.won),
            Some(Err(UsingError::NotAcquired(_))) => ends.count(&ends.failed),
            Some(Err(error)) => panic!("{error} after {}", scene.what),
        }
        assert_eq!(working.get(), 0, "work goes on after {}", scene.what);
        scene.nothing_stays().await;
    })
    .await;
    assert!(ends.dropped.get() > 50 && ends.won.get() > 30 && ends.failed.get() > 5, "{ends:?}");
}

/// A dropped extension changes nothing for the guard; what it confirmed counts, and dropping the guard ends it all.
#[tokio::test(start_paused = true)]
async fn a_dropped_extension_leaves_the_guard_as_it_is() {
    let ends = Ends::default();
    matrix(async |scene| {
        let Some(guard) = scene.guard().await else { return };
        let remaining = guard.remaining();
        match scene.until.run(guard.extend(2 * TTL)).await {
            None => ends.count(&ends.dropped),
            Some(Ok(())) => {
                ends.count(&ends.won);
                assert!(guard.remaining() > TTL, "{:?} after {}", guard.remaining(), scene.what);
            }
            Some(Err(_)) => ends.count(&ends.failed),
        }
        assert!(guard.is_valid() && guard.remaining() > remaining - millis(1_600), "after {}", scene.what);
        drop(guard);
        // Deletes that are lost leave keys to the longer ttl.
        let dropped = Instant::now();
        sleep(millis(1_500)).await;
        scene.nothing_is_renewed_after(dropped);
        sleep(2 * TTL).await;
        scene.nothing_stays().await;
    })
    .await;
    assert!(ends.dropped.get() > 50 && ends.won.get() > 50 && ends.failed.get() > 5, "{ends:?}");
}

/// From the first poll on, a dropped close goes on; before that nothing has happened. The guards' ends come after it.
#[tokio::test(start_paused = true)]
async fn a_dropped_close_leaves_nothing() {
    let ends = Ends::default();
    matrix(async |scene| {
        let Some(guard) = scene.guard().await else { return };
        let began = !matches!(scene.until, Until::Polls(0));
        match scene.until.run(scene.client.close()).await {
            None => ends.count(&ends.dropped),
            Some(report) if report.released == 1 => ends.count(&ends.won),
            Some(report) => {
                ends.count(&ends.failed);
                assert_eq!(report.lingering, 1, "{report:?} after {}", scene.what);
            }
        }
        assert_eq!(guard.is_valid(), !began, "after {}", scene.what);
        if began {
            let refused = scene.request().try_acquire().await;
            assert!(matches!(refused, Err(AcquireError::Closed)), "{refused:?} after {}", scene.what);
        }
        drop(guard);
        let dropped = Instant::now();
        sleep(millis(1_500)).await;
        scene.nothing_is_renewed_after(dropped);
        let executes = |master: &usize| {
            let weather = scene.network.weather()[*master];
            !weather.down && !(weather.lost)(Act::Release)
        };
        let keys = scene.network.occupied();
        assert!(!keys.iter().any(executes), "keys on {keys:?} after {}", scene.what);
        sleep(TTL).await;
        assert_eq!(scene.network.occupied(), NOWHERE, "after {}", scene.what);
    })
    .await;
    assert!(ends.dropped.get() > 50 && ends.won.get() > 50 && ends.failed.get() > 5, "{ends:?}");
}

/// `lost` and the holds only look.
#[tokio::test(start_paused = true)]
async fn a_dropped_wait_for_the_loss_changes_nothing() {
    let network = Network::new(5);
    let client = network.client();
    let guard = request(&client).acquire().await.expect("calm");
    let hold = guard.hold();
    for polls in 0..5 {
        assert!(polled(hold.lost(), polls).await.is_none());
        assert!(timeout(TTL, guard.lost()).await.is_err());
    }
    assert!(guard.is_valid());
    assert!(guard.release().await.is_freed());
    assert!(!hold.is_valid());
}

#[tokio::test(start_paused = true)]
async fn the_last_guard_keeps_the_client_alive() {
    let tasks = alive_tasks();
    let network = Network::new(5);
    let client = network.client();
    let guard = request(&client).acquire().await.expect("calm");
    drop(client);
    sleep(5 * TTL).await;
    assert!(guard.is_valid(), "renewed without the client");
    drop(guard);
    sleep(millis(1)).await;
    assert_eq!(network.keys_of(RESOURCE), NOWHERE);
    no_task_is_left(tasks, "the guard").await;
}

#[tokio::test(start_paused = true)]
async fn a_guard_dropped_in_a_thread_gives_the_lock_back() {
    let network = Network::new(5);
    let client = network.client();
    let guard = request(&client).acquire().await.expect("calm");
    std::thread::spawn(move || drop(guard)).join().expect("dropping does not panic outside a runtime");
    sleep(millis(1)).await;
    assert_eq!(network.keys_of(RESOURCE), NOWHERE);
    assert!(request(&client).try_acquire().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_guard_dropped_while_unwinding_gives_the_lock_back() {
    let network = Network::new(5);
    let client = network.client();
    let guard = request(&client).acquire().await.expect("calm");
    let unwound = catch_unwind(AssertUnwindSafe(move || {
        let _guard = guard;
        std::panic::resume_unwind(Box::new("the work"));
    }));
    assert!(unwound.is_err());
    sleep(millis(1)).await;
    assert_eq!(network.keys_of(RESOURCE), NOWHERE);
    // The same in a task, with the whole scoped use unwound.
    let (tasks, scoped) = (alive_tasks(), client.clone());
    let task = async move {
        request(&scoped).using(async |_| std::panic::resume_unwind(Box::new("the work"))).await
    };
    #[allow(clippy::disallowed_methods, reason = "joined on the next line")]
    let joined: Result<Result<(), _>, _> = tokio::spawn(task).await;
    assert!(joined.is_err_and(|error| error.is_panic()));
    sleep(millis(1)).await;
    assert_eq!(network.keys_of(RESOURCE), NOWHERE);
    assert_eq!(alive_tasks(), tasks);
}

/// Without the runtime nobody can send a delete; nothing panics, the guard knows, and the ttl ends the lock.
#[test]
fn a_guard_that_outlives_its_runtime_is_dropped_in_peace() {
    let runtime = |paused| {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().start_paused(paused).build().expect("a runtime")
    };
    let first = runtime(true);
    let (client, guard, hold) = first.block_on(async {
        let network = Network::new(5);
        let client = network.client();
        let guard = request(&client).acquire().await.expect("calm");
        let hold = guard.hold();
        (client, guard, hold)
    });
    drop(first);
    let _ = (hold.is_valid(), hold.remaining(), format!("{guard:?}"));
    drop(guard);
    assert!(!hold.is_valid(), "given back, as far as the holder is concerned");
    // From another runtime every call ends, too.
    runtime(true).block_on(async {
        let refused = request(&client).try_acquire().await;
        assert!(matches!(refused, Err(AcquireError::NoQuorum(_))), "{refused:?}");
        let _ = hold.lost().await;
        let report = client.close().await;
        assert_eq!((report.released, report.lost), (0, 0));
    });
    drop((client, hold));
}
