//! Lists that overlap, locked all or none by many at once, in virtual time: each resource has one holder at a time
//! whatever the weather does, and everybody gets his turn.

#[path = "network/mod.rs"]
mod network;
#[path = "splitmix/mod.rs"]
mod splitmix;

use std::cell::{Cell, RefCell};
use std::time::Duration;

use futures::future::{join, join_all};
use network::{NOWHERE, Network, TICK, Weather, millis};
use quorlock::{Hold, Redlock};
use tokio::time::{Instant, sleep, timeout};

const RESOURCES: [&str; 4] = ["a", "b", "c", "d"];
const TTL: Duration = Duration::from_millis(1_000);

/// Shared by all of one run.
struct Dice(Cell<u64>);

impl Dice {
    fn roll(&self, sides: u64) -> u64 {
        let mut state = self.0.get();
        let rolled = splitmix::next(&mut state);
        self.0.set(state);
        rolled % sides
    }

    /// One to three of the resources, in any order, one perhaps twice.
    fn list(&self) -> Vec<&'static str> {
        (0..=self.roll(3)).map(|_| RESOURCES[usize::try_from(self.roll(4)).expect("small")]).collect()
    }

    fn weather(&self) -> Weather {
        let far = Weather::far(self.roll(40), self.roll(40));
        match self.roll(12) {
            0 => Weather::LOST,
            1 => Weather::MUTE,
            2 => Weather::DOWN,
            3 => Weather { unanswered: |act| act.creates(), ..far },
            4 => Weather { lost: |act| act.creates(), ..far },
            5..=7 => far,
            _ => Weather::CALM,
        }
    }
}

/// Who has what, as the holders themselves see it.
#[derive(Default)]
struct Watch {
    holds: RefCell<Vec<Hold>>,
    won: Cell<usize>,
    lost: Cell<usize>,
    failed: Cell<usize>,
    dropped: Cell<usize>,
}

impl Watch {
    fn count(cell: &Cell<usize>) {
        cell.set(cell.get() + 1);
    }

    /// No resource has two holders now.
    fn look(&self, when: &str) {
        self.holds.borrow_mut().retain(Hold::is_valid);
        let holds = self.holds.borrow();
        for resource in RESOURCES {
            let has = |hold: &&Hold| hold.resources().any(|one| one == resource.as_bytes());
            let holders: Vec<&Hold> = holds.iter().filter(has).collect();
            assert!(holders.len() < 2, "{holders:?} at {when}");
        }
    }
}

async fn turns(client: &Redlock, dice: &Dice, watch: &Watch, what: &str) {
    for _ in 0..12 {
        let request = client.lock_all(dice.list()).ttl(TTL).wait(Duration::from_secs(4));
        let patience = if dice.roll(4) == 0 { millis(dice.roll(120)) } else { Duration::from_secs(10) };
        match timeout(patience, request.acquire()).await {
            Err(_) => Watch::count(&watch.dropped),
            Ok(Err(_)) => Watch::count(&watch.failed),
            Ok(Ok(guard)) => {
                Watch::count(&watch.won);
                watch.holds.borrow_mut().push(guard.hold());
                watch.look(what);
                // Now and then for longer than the ttl, so that renewals are what it rests on.
                sleep(millis(if dice.roll(4) == 0 { 900 + dice.roll(2_500) } else { dice.roll(60) })).await;
                if dice.roll(3) == 0 {
                    let _ = guard.extend(millis(900 + dice.roll(900))).await;
                }
                if !guard.is_valid() {
                    Watch::count(&watch.lost);
                }
                if dice.roll(4) > 0 {
                    let _ = guard.release().await;
                }
            }
        }
    }
}

fn run(seed: u64, sum: &Watch) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let (network, dice, watch) = (Network::new(5), Dice(Cell::new(seed)), Watch::default());
        let client = network.client();
        let what = format!("seed {seed}");
        let done = Cell::new(false);
        let contenders = async {
            join_all((0..6).map(|_| turns(&client, &dice, &watch, &what))).await;
            done.set(true);
        };
        let world = async {
            let mut next = Instant::now();
            while !done.get() {
                if Instant::now() >= next {
                    network.set([usize::try_from(dice.roll(5)).expect("small")], dice.weather());
                    next += millis(20 + dice.roll(150));
                }
                watch.look(&what);
                sleep(4 * TICK).await;
            }
        };
        join(contenders, world).await;
        network.set(0..5, Weather::CALM);
        // The longest ttl that anybody asked for, and the last delete.
        sleep(Duration::from_secs(5)).await;
        assert_eq!(network.occupied(), NOWHERE, "{what}");
        let cells = |watch: &Watch| [&watch.won, &watch.lost, &watch.failed, &watch.dropped].map(Cell::get);
        let (now, so_far) = (cells(&watch), cells(sum));
        for (nth, cell) in [&sum.won, &sum.lost, &sum.failed, &sum.dropped].into_iter().enumerate() {
            cell.set(now[nth] + so_far[nth]);
        }
    });
}

#[test]
fn in_any_weather_no_resource_has_two_holders() {
    let sum = Watch::default();
    (0..20).for_each(|seed| run(seed, &sum));
    let [won, lost, failed, dropped] = [&sum.won, &sum.lost, &sum.failed, &sum.dropped].map(Cell::get);
    println!("{won} won, {lost} of them lost, {failed} failed, {dropped} dropped");
    assert!(won > 500 && lost > 20 && failed > 100 && dropped > 100);
}

/// A ring of pairs asked for in both orders, and the whole ring: nobody waits for ever for one who waits for him.
#[test]
fn overlapping_lists_in_opposite_orders_are_all_won() {
    let mut longest = Duration::ZERO;
    for far in [0, 3, 25] {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let network = Network::new(5);
            // The masters are near to some and far from others, so that claims meet in another order at each.
            (0..5).for_each(|master| network.set([master], Weather::far(far * master as u64 / 2, far)));
            let client = network.client();
            let lists: Vec<Vec<&str>> = (0..24)
                .map(|nth| {
                    let pair = [RESOURCES[nth % 4], RESOURCES[(nth + 1) % 4]];
                    match nth % 6 {
                        0 => RESOURCES.to_vec(),
                        1 => RESOURCES.into_iter().rev().collect(),
                        2 | 3 => pair.to_vec(),
                        _ => vec![pair[1], pair[0]],
                    }
                })
                .collect();
            let watch = Watch::default();
            let waits = join_all(lists.iter().map(async |list| {
                let mut longest = Duration::ZERO;
                for _ in 0..4 {
                    let began = Instant::now();
                    let request = client.lock_all(list).wait(Duration::from_secs(120));
                    let guard = request.acquire().await.expect("everybody gets his turn");
                    longest = longest.max(began.elapsed());
                    watch.holds.borrow_mut().push(guard.hold());
                    watch.look("a win");
                    sleep(millis(5)).await;
                    assert!(guard.release().await.is_freed());
                }
                longest
            }));
            longest = longest.max(waits.await.into_iter().max().expect("some"));
        });
    }
    println!("the longest wait: {longest:?}");
}
