//! Renewal, healing, extending, and how a holder learns of a loss.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use quorlock::testbed::{Data, Fault};
use quorlock::{AcquireError, ExtendError, Redlock, Released, Why};

use crate::fleet::{
    Fleet, Lock, Monitor, SOON, client, contended, eventually, forgiving, ms, pause, policy, run, timed,
};
use crate::proxy::Paths;

// Rules 11 and 12
#[test]
fn a_lock_is_renewed_every_third_of_its_ttl_also_when_a_ttl_was_given() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let guard = client.on("r").ttl(ms(900)).acquire().await.unwrap();
        let mut monitor = Monitor::on(&fleet[0]);
        pause(ms(3_000)).await;
        assert!(guard.is_valid());
        let heard = monitor.commands();
        let renewed = heard.iter().filter(|heard| heard.is("PEXPIRE") && heard.names("r")).count();
        // Ten, give or take what a busy machine does to timers.
        assert!((6..=11).contains(&renewed), "{renewed} renewals in 3 s");
        assert!(heard.iter().all(|heard| !heard.is("SET") && !heard.is("DEL")), "{heard:?}");
        drop(guard);

        let guard = client.on("s").ttl(ms(900)).no_renewal().acquire().await.unwrap();
        pause(ms(1_000)).await;
        assert!(!guard.is_valid(), "only no_renewal switches renewal off");
    });
}

// Rule 8: a renewal only ever raises the remaining time.
#[test]
fn a_renewal_never_lowers_the_remaining_time() {
    run(async {
        let fleet = Fleet::start().await;
        let guard = fleet.client().await.on("r").ttl(ms(900)).acquire().await.unwrap();
        eventually("five keys", SOON, || fleet.backing(&guard) == 5).await;
        for index in 0..5 {
            assert_eq!(fleet.ask(index, &["PEXPIRE", "r", "60000"]).integer(), Some(1));
        }
        pause(ms(1_500)).await;
        assert!(guard.is_valid());
        assert!(fleet.masters().iter().all(|master| master.pttl("r").unwrap() > 50_000));
        guard.extend(ms(2_000)).await.unwrap();
        assert!(fleet.masters().iter().all(|master| master.pttl("r").unwrap() > 50_000));
    });
}

// B28, B80: one lost round
#[test]
fn a_round_held_back_by_all_masters_does_not_lose_the_lock() {
    run(async {
        let fleet = Fleet::start().await;
        let guard = fleet.client().await.on("r").ttl(ms(3_000)).acquire().await.unwrap();
        pause(ms(700)).await;
        (0..5).for_each(|index| assert!(fleet[index].inject(Fault::PauseWrites(ms(1_200))).is_installed()));
        pause(ms(4_500)).await;
        assert!(guard.is_valid());
        eventually("five keys", SOON, || fleet.backing(&guard) == 5).await;
    });
}

// B28, B69
#[test]
fn a_round_of_busy_masters_does_not_lose_the_lock() {
    run(async {
        let fleet = Fleet::start().await;
        let guard = fleet.client().await.on("r").ttl(ms(3_000)).acquire().await.unwrap();
        let busy = keep_busy(&fleet, 3);
        pause(ms(1_500)).await;
        assert!(guard.is_valid());
        drop(busy);
        pause(ms(2_000)).await;
        assert!(guard.is_valid());
        eventually("five keys", SOON, || fleet.backing(&guard) == 5).await;
    });
}

/// The first `masters` run a script without end, until this is dropped.
pub(crate) fn keep_busy(fleet: &Fleet, masters: usize) -> impl Drop + use<'_> {
    struct Busy<'a>(&'a Fleet, usize);
    impl Drop for Busy<'_> {
        fn drop(&mut self) {
            for index in 0..self.1 {
                let _ = self.0[index].command(&["SCRIPT", "KILL"]);
            }
            // The script ends a moment after the kill is answered.
            let limit = Instant::now() + SOON;
            let is_busy = |index: usize| {
                self.0[index]
                    .command(&["PING"])
                    .is_ok_and(|said| said.text().is_some_and(|text| text.starts_with("BUSY")))
            };
            while (0..self.1).any(is_busy) && Instant::now() < limit {
                std::thread::sleep(ms(1));
            }
        }
    }
    for index in 0..masters {
        fleet.tell([index], &["CONFIG", "SET", "lua-time-limit", "30"]);
        let mut wire = fleet[index].wire().unwrap();
        std::thread::spawn(move || wire.command(&["EVAL", "while true do end", "0"]));
        let limit = Instant::now() + SOON;
        while !fleet[index].command(&["PING"]).unwrap().text().unwrap().starts_with("BUSY") {
            assert!(Instant::now() < limit, "never busy");
        }
    }
    Busy(fleet, masters)
}

// B28, rule 9
#[test]
fn two_masters_that_restart_empty_are_healed_and_do_not_lose_the_lock() {
    run(async {
        let fleet = Fleet::with(policy().with_max_ttl(ms(1_500))).await;
        let client = fleet.client().await;
        let guard = client.on("r").ttl(ms(1_200)).acquire().await.unwrap();
        eventually("five keys", SOON, || fleet.backing(&guard) == 5).await;
        (0..2).for_each(|index| fleet[index].restart(Data::Empty).unwrap());
        assert_eq!(fleet.backing(&guard), 3);
        pause(ms(500)).await;
        assert_eq!(fleet.backing(&guard), 3, "healed in quarantine");
        eventually("healed", SOON, || fleet.backing(&guard) == 5).await;
        assert!(guard.is_valid());
        eventually("five votes", SOON, || guard.votes() == 5).await;
    });
}

// B29
#[test]
fn a_lost_lock_is_not_renewed_into_somebody_elses() {
    run(async {
        let fleet = Fleet::start().await;
        let (client, rival) = (fleet.client().await, fleet.client().await);
        let guard = client.on("r").ttl(ms(1_200)).acquire().await.unwrap();
        eventually("five keys", SOON, || fleet.backing(&guard) == 5).await;
        (0..5).for_each(|index| assert_eq!(fleet.ask(index, &["DEL", "r"]).integer(), Some(1)));
        let next = rival.on("r").ttl(ms(3_000)).no_renewal().try_acquire().await.unwrap();
        let (lost, took) = timed(guard.lost()).await;
        assert_eq!(lost.why(), Why::Vanished);
        assert!(took < ms(1_200), "{took:?}");
        pause(ms(600)).await;
        assert_eq!(fleet.backing(&next), 5);
        assert!(fleet.masters().iter().all(|master| master.pttl("r").unwrap() <= 2_400));
    });
}

// B29, rule 8: lost is sticky
#[test]
fn a_holder_cut_off_past_its_deadline_never_comes_back() {
    run(async {
        let fleet = Fleet::start().await;
        let paths = Paths::to(&fleet).await;
        let (client, rival) = (client(fleet.builder().masters(paths.urls())).await, fleet.client().await);
        let guard = client.on("r").ttl(ms(900)).acquire().await.unwrap();
        let remaining = guard.remaining();
        paths.0.iter().for_each(|path| path.be_silent(true));
        let (lost, took) = timed(guard.lost()).await;
        assert_eq!(lost.why(), Why::Expired);
        assert!(took <= ms(1_900) && remaining <= ms(900), "{took:?}");
        let next = rival.on("r").ttl(ms(2_900)).no_renewal().wait(SOON).acquire().await.unwrap();
        // It wins as soon as three of the old keys have expired; where the others had not, it has none.
        pause(ms(100)).await;
        let had = fleet.backing(&next);
        assert!(had >= 3, "{had}");
        paths.0.iter().for_each(|path| path.be_silent(false));
        pause(ms(600)).await;
        assert!(!guard.is_valid());
        assert_eq!(fleet.backing(&next), had);
        assert!(matches!(guard.release().await, Released::AlreadyLost(_)));
        pause(ms(300)).await;
        assert_eq!(fleet.backing(&next), had);
    });
}

// B30
#[test]
fn extending_after_the_deadline_fails_at_once_and_writes_nothing() {
    run(async {
        let fleet = Fleet::start().await;
        let (client, rival) = (fleet.client().await, fleet.client().await);
        for other in ["nobody", "a rival", "silence"] {
            let guard = client.on("r").ttl(ms(400)).no_renewal().acquire().await.unwrap();
            pause(ms(450)).await;
            let next = if other == "a rival" { Some(rival.on("r").acquire().await.unwrap()) } else { None };
            if other == "silence" {
                fleet.freeze(0..5);
            }
            let (result, took) = timed(guard.extend(ms(2_900))).await;
            assert!(matches!(result, Err(ExtendError::Lost(lost)) if lost.why() == Why::Expired));
            assert!(took < ms(200), "{took:?}");
            assert!(!guard.is_valid());
            fleet.thaw(0..if other == "silence" { 5 } else { 0 });
            if let Some(next) = next {
                eventually("the rival's keys", SOON, || fleet.backing(&next) == 5).await;
                assert!(next.release().await.is_freed());
            }
            drop(guard);
            eventually("nothing", SOON, || fleet.occupied("r") == 0).await;
        }
    });
}

// B31, rule 8
#[test]
fn a_renewal_that_fails_somewhere_releases_nothing() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let guard = client.on("r").ttl(ms(1_500)).acquire().await.unwrap();
        eventually("five keys", SOON, || fleet.backing(&guard) == 5).await;
        let deleted = |fleet: &Fleet| (0..3).map(|index| fleet.calls(index, "del")).sum::<u64>();
        let before = deleted(&fleet);
        fleet.kill([4]);
        for _ in 0..10 {
            guard.extend(ms(2_000)).await.unwrap();
        }
        fleet.occupy([3], "r");
        for _ in 0..10 {
            guard.extend(ms(2_000)).await.unwrap();
            pause(ms(100)).await;
        }
        assert!(guard.is_valid());
        assert_eq!(deleted(&fleet), before);
        assert_eq!(fleet.holding("r", "somebody"), 1);
        assert_eq!(fleet.backing(&guard), 3);
    });
}

// B32, rule 8
#[test]
fn an_extension_without_a_quorum_leaves_the_lease_as_it_was() {
    run(async {
        let fleet = Fleet::start().await;
        let guard = fleet.client().await.on("r").ttl(ms(3_000)).no_renewal().acquire().await.unwrap();
        fleet.freeze(0..3);
        let before = guard.remaining();
        let error = guard.extend(ms(3_000)).await.unwrap_err();
        let ExtendError::Unconfirmed { remaining, refusal } = error else { panic!("{error}") };
        assert!(remaining <= before && remaining > ms(1_000), "{remaining:?} of {before:?}");
        assert_eq!(refusal.tally().granted().len(), 2);
        assert!(guard.is_valid() && guard.remaining() <= remaining);
        fleet.thaw(0..3);
        let limit = Instant::now() + ms(2_000);
        while guard.extend(ms(3_000)).await.is_err() {
            assert!(guard.is_valid() && Instant::now() < limit, "not extended after the thaw");
            pause(ms(20)).await;
        }
        assert!(guard.remaining() > ms(2_000));
    });
}

/// A rival that tries without end, and whether it ever got in.
struct Rival {
    got_in: Arc<AtomicBool>,
    tried: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Rival {
    fn on(client: &Redlock, key: &str, holder_is_valid: impl Fn() -> bool + Send + 'static) -> Self {
        let (got_in, tried) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (request, flag, count) = (client.on(key).ttl(ms(1_000)), got_in.clone(), tried.clone());
        let task = tokio::spawn(async move {
            loop {
                let guard = request.try_acquire().await;
                count.fetch_add(1, Ordering::Relaxed);
                if guard.is_ok() {
                    assert!(!holder_is_valid(), "two holders at once");
                    flag.store(true, Ordering::Relaxed);
                }
                drop(guard);
                pause(ms(20)).await;
            }
        });
        Self { got_in, tried, task }
    }

    async fn end(self) -> (bool, usize) {
        assert!(!self.task.is_finished(), "the rival found two holders");
        self.task.abort();
        (self.got_in.load(Ordering::Relaxed), self.tried.load(Ordering::Relaxed))
    }
}

// B33, rules 9 and 14; issue 2: "killing and restarting all masters empty, each after the previous one was
// readmitted and healed, never loses a renewed lock"
#[test]
fn masters_restarted_empty_one_after_another_do_not_lose_the_lock() {
    run(async {
        let fleet = Fleet::with(forgiving()).await;
        let (client, rival) = (fleet.client().await, fleet.client().await);
        let guard = client.on("r").ttl(ms(1_500)).acquire().await.unwrap();
        let hold = guard.hold();
        let rival = Rival::on(&rival, "r", move || hold.is_valid());
        for index in 0..5 {
            eventually("five votes", SOON, || guard.votes() == 5 && fleet.backing(&guard) == 5).await;
            fleet[index].restart(Data::Empty).unwrap();
            eventually("the restart is noticed", SOON, || guard.votes() == 4).await;
            assert!(guard.is_valid(), "lost after restart {index}");
        }
        eventually("five votes", SOON, || guard.votes() == 5 && fleet.backing(&guard) == 5).await;
        assert!(guard.is_valid());
        let (got_in, tried) = rival.end().await;
        assert!(!got_in && tried > 50, "{tried} tries");
    });
}

// B106, rules 10 and 14; issue 2: "done faster, the holder is told by its deadline; in no case does a second one enter
// before"
#[test]
fn masters_restarted_empty_at_once_lose_the_lock_before_a_rival_can_have_it() {
    run(async {
        let fleet = Fleet::with(forgiving()).await;
        let (client, rival) = (fleet.client().await, fleet.client().await);
        let guard = client.on("r").ttl(ms(1_500)).acquire().await.unwrap();
        eventually("five keys", SOON, || fleet.backing(&guard) == 5).await;
        let hold = guard.hold();
        let rival = Rival::on(&rival, "r", move || hold.is_valid());
        for index in 0..5 {
            fleet[index].restart(Data::Empty).unwrap();
        }
        let deadline = guard.remaining();
        let (lost, took) = timed(guard.lost()).await;
        assert!(matches!(lost.why(), Why::Vanished | Why::Expired), "{lost}");
        assert!(took < deadline + ms(500), "{took:?} of {deadline:?}");
        // And in the end the masters vote again.
        eventually("the rival got in", SOON, || rival.got_in.load(Ordering::Relaxed)).await;
        assert!(!guard.is_valid());
        rival.end().await;
    });
}

// B35, rules 1 and 3
#[test]
fn an_extension_counts_from_its_sending() {
    run(async {
        let fleet = Fleet::with(policy().with_master_timeout(ms(900))).await;
        let paths = Paths::to(&fleet).await;
        let client = client(fleet.builder().masters(paths.urls())).await;
        let guard = client.on("r").ttl(ms(1_500)).no_renewal().acquire().await.unwrap();
        paths.0.iter().for_each(|path| path.delay_replies(ms(300)));
        guard.extend(ms(2_500)).await.unwrap();
        let remaining = guard.remaining();
        assert!(remaining <= ms(2_500 - 300 - 27) && remaining > ms(1_500), "{remaining:?}");
        let error = guard.extend(ms(800)).await.unwrap_err();
        assert!(matches!(error, ExtendError::Request(_)), "{error}");
        assert!(guard.is_valid());
    });
}

// B36
#[test]
fn an_extension_by_less_than_is_left_changes_nothing() {
    run(async {
        let fleet = Fleet::start().await;
        let guard = fleet.client().await.on("r").ttl(ms(2_500)).no_renewal().acquire().await.unwrap();
        eventually("five keys", SOON, || fleet.backing(&guard) == 5).await;
        let before = guard.remaining();
        guard.extend(ms(500)).await.unwrap();
        assert!(guard.remaining() + ms(300) > before);
        assert!(fleet.masters().iter().all(|master| master.pttl("r").unwrap() > 1_500));
        while guard.is_valid() {
            let keys = fleet.backing(&guard);
            assert!(keys >= 3 || !guard.is_valid(), "valid with {keys} keys");
            pause(ms(10)).await;
        }
        assert!(fleet.occupied("r") >= 3 || !guard.is_valid());
    });
}

// B36: the watchdog goes on with the ttl of the latest extension.
#[test]
fn a_renewed_lock_survives_an_extension_by_less_than_is_left() {
    run(async {
        let fleet = Fleet::start().await;
        let guard = fleet.client().await.on("r").ttl(ms(3_000)).acquire().await.unwrap();
        guard.extend(ms(600)).await.unwrap();
        for _ in 0..30 {
            pause(ms(150)).await;
            assert!(guard.is_valid(), "the renewals came too late for the shorter ttl");
        }
    });
}

// B37, rule 11
#[test]
fn nothing_is_renewed_after_the_guard_is_gone() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        for n in 0..150_u64 {
            let request = client.on(format!("r{n}")).ttl(ms(350));
            let task = tokio::spawn(async move {
                let guard = request.acquire().await.unwrap();
                pause(ms(n % 4)).await;
                if n % 3 == 0 {
                    let _ = guard.release().await;
                } else if n % 3 == 1 {
                    drop(guard);
                } else {
                    std::future::pending::<()>().await;
                }
            });
            if n % 3 == 2 {
                pause(ms(n % 4)).await;
                task.abort();
            } else {
                task.await.unwrap();
            }
        }
        fleet.nothing_left(ms(2_000)).await;
        pause(ms(400)).await;
        let mut monitors: Vec<_> = fleet.masters().iter().map(Monitor::on).collect();
        pause(ms(800)).await;
        for monitor in &mut monitors {
            let heard = monitor.commands();
            assert!(!heard.iter().any(|heard| heard.is("SET") || heard.is("PEXPIRE")), "{heard:?}");
        }
    });
}

// B38, rule 12
#[test]
fn a_release_during_a_renewal_leaves_nothing() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        for after in [50, 90, 100, 110, 120, 150] {
            let guard = client.on("r").ttl(ms(350)).wait(SOON).acquire().await.unwrap();
            pause(ms(after)).await;
            let hold = guard.hold();
            let _ = guard.release().await;
            assert_eq!(hold.lost().await.why(), Why::Released);
        }
        let guard = client.on("r").ttl(ms(3_000)).acquire().await.unwrap();
        pause(ms(700)).await;
        (0..5).for_each(|index| assert!(fleet[index].inject(Fault::PauseWrites(ms(800))).is_installed()));
        pause(ms(400)).await;
        let hold = guard.hold();
        let (released, took) = timed(guard.release()).await;
        assert!(took < ms(1_000), "{took:?}");
        if let Released::Lingering { on, .. } = &released {
            assert!(on.len() >= 3, "{released:?}");
        }
        assert!(!matches!(released, Released::AlreadyLost(_)), "{released:?}");
        assert_eq!(hold.lost().await.why(), Why::Released);
        fleet.nothing_left(ms(2_500)).await;
        pause(ms(300)).await;
        fleet.nothing_left(ms(0)).await;
    });
}

// B39: on one thread the holder starves its own renewal; it must not believe in its lock afterwards.
#[test]
fn a_holder_that_starved_its_own_renewal_knows_at_its_first_look() {
    let fleet = std::cell::OnceCell::new();
    run(async {
        let _ = fleet.set(Fleet::start().await);
    });
    let fleet: &Fleet = fleet.get().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (guard, next) = runtime.block_on(async {
        let guard = fleet.client().await.on("r").ttl(ms(600)).acquire().await.unwrap();
        let rival = std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    let own = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                    let next = own.block_on(async {
                        let request = fleet.client().await.on("r").ttl(ms(3_000)).no_renewal().wait(SOON);
                        request.acquire().await.unwrap()
                    });
                    (own, next)
                })
                .join()
                .unwrap()
        });
        assert!(!guard.is_valid());
        let (lost, took) = timed(guard.lost()).await;
        assert_eq!(lost.why(), Why::Expired);
        assert!(took < ms(100), "{took:?}");
        pause(ms(300)).await;
        (guard, rival)
    });
    assert_eq!(fleet.backing(&next.1), 5);
    drop(guard);
}

// B40, rule 11
#[test]
fn max_hold_ends_a_hold_that_could_be_renewed() {
    run(async {
        let fleet = Fleet::start().await;
        let (client, rival) = (fleet.client().await, fleet.client().await);
        let began = Instant::now();
        let guard = client.on("r").ttl(ms(900)).max_hold(ms(1_500)).acquire().await.unwrap();
        let waiting = tokio::spawn(async move { rival.on("r").wait(SOON).acquire().await });
        let lost = guard.lost().await;
        let held = began.elapsed();
        assert_eq!(lost.why(), Why::MaxHold);
        assert!(held >= ms(1_490) && held < ms(2_500), "{held:?}");
        assert!(!guard.is_valid());
        drop(waiting.await.unwrap().unwrap());
        assert!(began.elapsed() < ms(1_500 + 900 + 2_000), "{:?}", began.elapsed());
    });
}

// B41, rule 10
#[test]
fn the_holder_is_told_at_the_deadline_not_later_and_not_before() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let mut guards = Vec::new();
        for ttl in [900, 1_200, 1_500, 1_800] {
            guards.push(client.on(format!("r{ttl}")).ttl(ms(ttl)).acquire().await.unwrap());
        }
        fleet.freeze(0..3);
        // Answers on their way may still raise the deadline.
        pause(ms(50)).await;
        let mut tasks = Vec::new();
        for guard in guards {
            tasks.push(tokio::spawn(async move {
                let deadline = Instant::now() + guard.remaining();
                let lost = guard.lost().await;
                let now = Instant::now();
                assert!(!guard.is_valid() && guard.remaining() == Duration::ZERO);
                assert_eq!(lost.why(), Why::Expired);
                assert!(now + ms(5) >= deadline, "told {:?} before the deadline", deadline - now);
                now.saturating_duration_since(deadline)
            }));
        }
        let mut late = Vec::new();
        for task in tasks {
            late.push(task.await.unwrap());
        }
        // A busy machine may hold up one of them.
        late.sort();
        assert!(late[0] <= ms(150) && late[1] <= ms(150) && late[3] <= ms(1_000), "{late:?}");
    });
}

// B41 with masters that are gone
#[test]
fn the_holder_is_told_in_time_that_three_masters_died() {
    run(async {
        let fleet = Fleet::start().await;
        let guard = fleet.client().await.on("r").ttl(ms(900)).acquire().await.unwrap();
        fleet.kill([0, 2, 4]);
        let (lost, took) = timed(guard.lost()).await;
        assert_eq!(lost.why(), Why::Expired);
        assert!(took < ms(1_900), "{took:?}");
    });
}

// B91
#[test]
fn one_guard_can_be_extended_again_and_again() {
    run(async {
        let fleet = Fleet::start().await;
        let guard = fleet.client().await.on("r").ttl(ms(900)).no_renewal().acquire().await.unwrap();
        for _ in 0..8 {
            pause(ms(400)).await;
            let before = guard.remaining();
            guard.extend(ms(900)).await.unwrap();
            assert!(guard.remaining() > before);
        }
        assert!(guard.release().await.is_freed());
    });
}

// Rule 12: leases due together travel together.
#[test]
fn renewals_of_many_locks_travel_together() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let mut guards = Vec::new();
        for n in 0..100 {
            guards.push(client.on(format!("r{n}")).ttl(ms(2_400)).acquire().await.unwrap());
        }
        let before = (fleet.calls(0, "evalsha"), fleet.calls(0, "pexpire"));
        pause(ms(2_000)).await;
        let (calls, renewed) = (fleet.calls(0, "evalsha") - before.0, fleet.calls(0, "pexpire") - before.1);
        assert!(renewed >= 150, "{renewed} renewals");
        assert!(calls * 4 <= renewed, "{renewed} renewals in {calls} calls");
        assert!(guards.iter().all(|guard| guard.is_valid()));
    });
}

// B55, rule 16: a held lock stays held for a waiter whose patience ends first.
#[test]
fn a_renewed_lock_outlasts_many_of_its_ttls() {
    run(async {
        let fleet = Fleet::start().await;
        let (client, rival) = (fleet.client().await, fleet.client().await);
        let guard = client.on("r").ttl(ms(400)).acquire().await.unwrap();
        let error = rival.on("r").wait(ms(3_000)).acquire().await.unwrap_err();
        assert!(matches!(error, AcquireError::Contended(_)), "{error}");
        contended(error);
        assert!(guard.is_valid());
    });
}
