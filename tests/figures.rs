//! The figures of the feature `metrics`, exactly, in virtual time.

#[path = "network/mod.rs"]
mod network;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use network::{Network, TTL, Weather, locked, millis};
use quorlock::testbed::{Data, LocalMaster, Testbed};
use quorlock::{Guard, Redlock};
use tokio::time::sleep;

/// Remembers every series; those of gauges as the bits of a float.
#[derive(Clone, Default)]
struct Figures {
    counters: Arc<Mutex<BTreeMap<String, Arc<AtomicU64>>>>,
    gauges: Arc<Mutex<BTreeMap<String, Arc<AtomicU64>>>>,
}

impl Figures {
    fn series(key: &Key) -> String {
        let labels = key.labels().map(|label| format!(" {}={}", label.key(), label.value()));
        std::iter::once(key.name().to_owned()).chain(labels).collect()
    }

    /// The counters that are not zero.
    fn counted(&self) -> Vec<(String, u64)> {
        let counters = locked(&self.counters);
        counters.iter().map(|(series, count)| (series.clone(), count.load(Ordering::Relaxed))).collect()
    }

    fn gauge(&self, series: &str) -> f64 {
        locked(&self.gauges).get(series).map_or(0.0, |bits| f64::from_bits(bits.load(Ordering::Relaxed)))
    }

    fn held(&self) -> f64 {
        self.gauge("quorlock_held")
    }
}

impl Recorder for Figures {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(locked(&self.counters).entry(Self::series(key)).or_default().clone())
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(locked(&self.gauges).entry(Self::series(key)).or_default().clone())
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

// Case B95: counters keep exact numbers
#[tokio::test(start_paused = true)]
async fn figures_are_exact() {
    let figures = Figures::default();
    let _on_this_thread = metrics::set_default_local_recorder(&figures);
    let network = Network::new(5);
    let client = network.client();
    let mut guards = Vec::new();
    for nth in 0..10 {
        guards.push(client.lock(format!("order:{nth}")).ttl(TTL).acquire().await.expect("free"));
    }
    let unrenewed = client.lock("order:10").ttl(TTL).no_renewal().acquire().await.expect("free");
    unrenewed.extend(TTL).await.expect("confirmed");
    client.lock("order:0").try_acquire().await.expect_err("held");
    assert_eq!(figures.held(), 11.0);
    assert!(unrenewed.release().await.is_freed());
    assert_eq!(figures.held(), 10.0);
    // The first renewal is due before the period is over, the second a slot of 125 ms later at the earliest.
    sleep(TTL / 3 + millis(100)).await;
    let of = |series: &str| {
        figures.counted().iter().find(|(known, _)| known == series).map_or(0, |(_, count)| *count)
    };
    assert_eq!(of("quorlock_renewals_total outcome=confirmed"), 11, "ten renewals and an extension");

    // One master short of a quorum: no round is confirmed before all ten are lost.
    network.set(0..3, Weather::LOST);
    for guard in &guards {
        guard.lost().await;
    }
    client.lock("order:11").try_acquire().await.expect_err("no quorum");
    assert_eq!(figures.held(), 0.0);
    assert!(of("quorlock_renewals_total outcome=not confirmed") >= 10);
    let before = of("quorlock_renewals_total outcome=confirmed");
    drop(guards);
    network.set(0..3, Weather::CALM);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(of("quorlock_renewals_total outcome=confirmed"), before);
    let others: Vec<_> = figures
        .counted()
        .into_iter()
        .filter(|(series, _)| !series.starts_with("quorlock_renewals"))
        .collect();
    let expected = [
        ("quorlock_at_risk_total", 10),
        ("quorlock_claims_total outcome=busy", 1),
        ("quorlock_claims_total outcome=no quorum", 1),
        ("quorlock_claims_total outcome=won", 11),
        ("quorlock_lost_total why=expired", 10),
    ];
    assert_eq!(others, expected.map(|(series, count)| (series.to_owned(), count)));
}

/// A guard that outlives the client's tasks ends with them in the figures, too.
#[test]
fn nothing_is_held_once_the_runtime_is_gone() {
    let figures = Figures::default();
    let _on_this_thread = metrics::set_default_local_recorder(&figures);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("one");
    let guard: Guard = runtime.block_on(async {
        let client = Network::new(5).client();
        let guard = client.lock("order:1").ttl(TTL).acquire().await.expect("free");
        sleep(millis(10)).await;
        guard
    });
    assert_eq!(figures.held(), 1.0);
    drop(runtime);
    drop(guard);
    assert_eq!(figures.held(), 0.0);
}

#[tokio::test]
async fn masters_that_vote_are_told() {
    let figures = Figures::default();
    let _on_this_thread = metrics::set_default_local_recorder(&figures);
    let bed = Testbed::start(5).expect("five masters");
    Redlock::builder().masters(bed.urls()).init().await.expect("fresh");
    let votes = || -> Vec<f64> {
        let of = |master: &LocalMaster| {
            figures.gauge(&format!("quorlock_master_votes master={}", master.address()))
        };
        bed.masters().iter().map(of).collect()
    };
    let eventually = async |expected: [f64; 5]| {
        for _ in 0..1_000 {
            if votes() == expected {
                return;
            }
            sleep(millis(10)).await;
        }
        panic!("{:?} and not {expected:?}", votes());
    };
    let client = Redlock::connect(bed.urls()).await.expect("five masters");
    eventually([1.0; 5]).await;
    let second = Redlock::connect(bed.urls()).await.expect("five masters");
    eventually([2.0; 5]).await;
    let _ = second.close().await;
    eventually([1.0; 5]).await;
    bed[1].kill().expect("a process");
    eventually([1.0, 0.0, 1.0, 1.0, 1.0]).await;
    // It is connected again, and in quarantine.
    bed[1].restart(Data::Empty).expect("restarted");
    sleep(millis(1_500)).await;
    assert_eq!(votes(), [1.0, 0.0, 1.0, 1.0, 1.0]);
    let _ = client.close().await;
    assert_eq!(votes(), [0.0; 5]);
}
