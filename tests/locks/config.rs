//! What a client is told to do, and what it refuses to do; mostly before it asks anybody.

use std::time::Duration;

use quorlock::{AcquireError, ConnectError, EndpointError, ExtendError, Policy, Redlock};

use crate::fleet::{Fleet, Lock, SOON, client, contended, eventually, ms, pause, policy, run};
use crate::secrets::log;

/// Where nobody listens.
const NOWHERE: [&str; 5] = [
    "redis://127.0.0.1:1",
    "redis://127.0.0.1:2",
    "redis://127.0.0.1:3",
    "redis://127.0.0.1:4",
    "redis://127.0.0.1:5",
];

// B74, B76
#[test]
fn a_ttl_that_no_master_could_keep_is_refused_before_any_traffic() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let before = fleet.calls_of_all("set");
        let long =
            [ms(30_001), Duration::from_secs(400 * 86_400), ms(u64::MAX >> 1), ms(u64::MAX), Duration::MAX];
        for ttl in [Duration::ZERO, Duration::from_micros(999), ms(300)].into_iter().chain(long) {
            let error = client.lock("r").ttl(ttl).acquire().await.unwrap_err();
            assert!(matches!(error, AcquireError::Request(_)), "{ttl:?}: {error}");
            assert!(error.to_string().contains(&format!("{ttl:?}")), "{error}");
        }
        assert_eq!(fleet.calls_of_all("set"), before);
        let guard = client.on("r").acquire().await.unwrap();
        for ttl in [Duration::ZERO, Duration::MAX] {
            assert!(matches!(guard.extend(ttl).await, Err(ExtendError::Request(_))));
        }
        assert!(guard.is_valid());
    });
}

// B75, B76, rule 1
#[test]
fn the_masters_get_the_ttl_in_milliseconds() {
    run(async {
        let fleet = Fleet::with(policy().with_max_ttl(Policy::MOST_TTL)).await;
        let client = fleet.client().await;
        for ttl in [Duration::from_micros(500_900), ms(1_000), ms(90_000), ms(3_600_000), Policy::MOST_TTL] {
            let guard = client.lock("r").ttl(ttl).wait(SOON).acquire().await.unwrap();
            let whole = i64::try_from(ttl.as_millis()).unwrap();
            for master in fleet.masters() {
                eventually("the ttl", SOON, || {
                    let left = master.pttl("r").unwrap();
                    left > whole - 400 && left <= whole
                })
                .await;
            }
            assert!(guard.remaining() < ttl && guard.remaining() + ms(500) > ttl.mul_f64(0.99));
            // No timer was cut short.
            assert!(tokio::time::timeout(ms(20), guard.lost()).await.is_err());
            assert!(guard.release().await.is_freed());
        }
    });
}

// B78; issue 2: resources are bytes
#[test]
fn resources_are_bytes_of_any_kind() {
    run(async {
        let fleet = Fleet::with(policy().with_master_timeout(ms(1_400))).await;
        let client = fleet.client().await;
        let mebibyte = vec![b'x'; 1 << 20];
        let names: [&[u8]; 14] = [
            b"\0",
            b"\0\xff\r\n\x80",
            b"a",
            b"a ",
            b"A",
            b" a b ",
            "\u{e9}".as_bytes(),
            "e\u{301}".as_bytes(),
            b"{x}",
            b"p:x:y",
            b"x\ny",
            b"*",
            b"quorloc",
            &mebibyte,
        ];
        let mut guards = Vec::new();
        for name in names {
            let guard = client.lock(name).ttl(ms(2_900)).acquire().await.unwrap();
            assert_eq!(guard.resource(), name);
            eventually("five keys", SOON, || fleet.backing(&guard) == 5).await;
            guards.push(guard);
        }
        assert_eq!(fleet.keys(), names.iter().map(|name| name.to_vec()).collect());
        for guard in guards {
            guard.extend(ms(2_900)).await.unwrap();
            let text = format!("{guard:?}");
            assert!(text.len() < 400 && text.bytes().all(|byte| byte >= b' '), "{text}");
            assert!(guard.release().await.is_freed());
        }
        fleet.nothing_left(SOON).await;
        // And a refusal is as readable.
        fleet.tell(0..5, &["SET", "a\0b\r\n", "c\0d\r\n"]);
        let error = client.on("a\0b\r\n").wait(ms(100)).acquire().await.unwrap_err();
        let text = contended(error).to_string();
        assert!(text.lines().count() == 6 && text.contains(r"c\x00d\r\n"), "{text}");
    });
}

// B78; issue 2: empty resource
#[test]
fn names_that_cannot_be_locks_are_refused_before_any_traffic() {
    run(async {
        let client = Redlock::builder().masters(NOWHERE).connect().await.unwrap();
        let huge = vec![b'x'; (16 << 20) + 1];
        let cases: [(&[u8], &str); 3] =
            [(b"", "empty"), (b"quorlock:admitted", "quorlock:admitted"), (&huge, "16777217")];
        for (name, says) in cases {
            let error = client.lock(name).acquire().await.unwrap_err();
            assert!(matches!(error, AcquireError::Request(_)) && error.to_string().contains(says), "{error}");
        }
        for label in ["", "a|b", "a b", "é"] {
            let error = client.lock("r").label(label).acquire().await.unwrap_err();
            assert!(
                matches!(error, AcquireError::Request(_)) && error.to_string().contains("label"),
                "{error}"
            );
            let error = Redlock::builder().masters(NOWHERE).label(label).connect().await.unwrap_err();
            assert!(matches!(error, ConnectError::Request(_)));
        }
    });
}

// B79; issue 2: no masters, a bad list
#[test]
fn a_bad_list_of_masters_is_refused_with_the_entry_and_the_fix() {
    run(async {
        let refused = async |urls: &[&str]| match Redlock::connect(urls).await.unwrap_err() {
            ConnectError::Endpoint(error) => error,
            other => panic!("{other}"),
        };
        let none = refused(&[]).await;
        assert!(matches!(none, EndpointError::NoMasters) && none.to_string().contains("redis://"), "{none}");
        for (bad, says) in [
            ("", "empty"),
            ("redis://", "no host"),
            ("http://x", "http"),
            ("127.0.0.1:6379", "redis://127.0.0.1:6379"),
            ("redis://x:0", "port 0"),
            ("redis://x:70000", "70000"),
            ("redis://::1:6379", "[::1]"),
            ("redis-sentinel://x", "fails over"),
            ("redis-cluster://x", "fails over"),
            ("redis://word@x", "redis://:password@host"),
            ("redis://x/256", "database"),
            ("redis://x?db=1", "db"),
        ] {
            let error = refused(&[NOWHERE[0], NOWHERE[1], bad]).await;
            let text = error.to_string();
            assert!(matches!(error, EndpointError::Bad { position: 3, .. }), "{bad}: {text}");
            assert!(text.starts_with("m3: ") && text.contains(says), "{bad}: {text}");
        }
        let many: Vec<_> = (1..=100).map(|port| format!("redis://127.0.0.1:{port}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        let text = refused(&many).await.to_string();
        assert!(text.contains("100") && text.contains("32"), "{text}");
    });
}

// Rule 15
#[cfg(not(feature = "tls"))]
#[test]
fn tls_that_is_not_built_in_is_refused_and_not_left_out() {
    run(async {
        for scheme in ["rediss", "valkeys"] {
            let error = Redlock::connect([format!("{scheme}://127.0.0.1:1")]).await.unwrap_err();
            let ConnectError::Endpoint(EndpointError::Bad { problem, .. }) = &error else {
                panic!("{error}")
            };
            assert_eq!(problem, &quorlock::BadUrl::TlsNotBuilt { scheme: scheme.into() });
            assert!(error.to_string().contains("--features tls"), "{error}");
        }
    });
}

// B15; issue 2: a master twice under one URL
#[test]
fn one_master_twice_in_the_list_is_refused_with_both_places() {
    run(async {
        for twin in [
            "redis://127.0.0.1:1",
            "valkey://127.0.0.1:1/",
            "redis://127.0.0.1:1/1",
            "redis://u:p@127.0.0.1:1",
        ] {
            let mut urls = NOWHERE;
            urls[3] = twin;
            let error = Redlock::connect(urls).await.unwrap_err();
            let ConnectError::Endpoint(EndpointError::Duplicate { first: 1, second: 4, .. }) = &error else {
                panic!("{error}")
            };
            let text = error.to_string();
            assert!(text.contains("m1 and m4") && text.contains("127.0.0.1:1"), "{text}");
        }
        // The port and the case of a host may be left to the client.
        let error = Redlock::connect(["redis://localhost", "redis://LOCALHOST:6379"]).await.unwrap_err();
        assert!(matches!(error, ConnectError::Endpoint(EndpointError::Duplicate { .. })), "{error}");
    });
}

// Issue 2: one, two or an even number of masters
#[test]
fn small_and_even_fleets_are_allowed_with_a_warning() {
    run(async {
        let fleet = Fleet::start().await;
        for (masters, says) in [(1, "no master may fail"), (2, "no master may fail"), (4, "may_fail=1")] {
            let log = log();
            let mark = log.len();
            let client = client(fleet.builder().masters(fleet.urls().into_iter().take(masters))).await;
            drop(client.on("r").acquire().await.unwrap());
            let text = log.since(mark);
            let number = format!("masters={masters}");
            assert!(text.lines().any(|line| line.contains(says) && line.contains(&number)), "{text}");
            fleet.nothing_left(SOON).await;
        }
    });
}

// Issue 2: password without user
#[test]
fn a_password_alone_is_the_default_users() {
    run(async {
        let fleet = Fleet::start().await;
        fleet.tell(0..5, &["CONFIG", "SET", "requirepass", "p@ss w:rd"]);
        let urls = fleet.urls().into_iter().map(|url| url.replace("redis://", "redis://:p%40ss%20w%3Ard@"));
        let by_url = client(fleet.builder().masters(urls)).await;
        let apart = client(fleet.builder().credentials("default", "p@ss w:rd")).await;
        for client in [by_url, apart] {
            let guard = client.on("r").wait(SOON).acquire().await.unwrap();
            assert!(guard.release().await.is_freed());
        }
    });
}

// B80, B81, rule 1
#[test]
fn a_policy_that_cannot_work_is_refused_with_the_number_and_the_range() {
    run(async {
        let good = Policy::new();
        for (policy, says) in [
            (good.with_drift_ppm(0), "0 ppm"),
            (good.with_drift_ppm(100_001), "100001 ppm"),
            (good.with_master_timeout(Duration::ZERO), "1 ms to 60 s"),
            (good.with_master_timeout(Duration::MAX), "1 ms to 60 s"),
            (good.with_max_ttl(ms(999)), "999ms"),
            (good.with_max_ttl(Duration::MAX), "24 h"),
            (good.with_backoff(Duration::ZERO, ms(1)), "start at 1 ms"),
            (good.with_backoff(ms(2), ms(1)), "2ms to 1ms"),
        ] {
            let builder = Redlock::builder().masters(NOWHERE).policy(policy);
            let error = builder.clone().connect().await.unwrap_err();
            assert!(matches!(error, ConnectError::Policy(_)) && error.to_string().contains(says), "{error}");
            assert!(matches!(builder.init().await, Err(ConnectError::Policy(_))));
        }
    });
}

// B81
#[test]
fn extreme_times_make_nothing_overflow() {
    run(async {
        let fleet = Fleet::start().await;
        for timeout in [Duration::MAX, ms(u64::MAX), Duration::from_secs(1)] {
            let client = client(fleet.builder().connect_timeout(timeout)).await;
            let guard = client.on("r").wait(Duration::MAX).max_hold(Duration::MAX).acquire().await.unwrap();
            assert!(guard.is_valid());
            let waiting = client.on("r").wait(Duration::MAX);
            assert!(tokio::time::timeout(ms(100), waiting.acquire()).await.is_err());
            assert!(guard.release().await.is_freed());
            drop(waiting.acquire().await.unwrap());
            eventually("released", SOON, || fleet.occupied("r") == 0).await;
        }
        let client = fleet.builder().connect_timeout(Duration::ZERO).connect().await.unwrap();
        let _ = client.on("r").try_acquire().await;
        let client = fleet.client().await;
        let guard = client.on("s").max_hold(Duration::ZERO).acquire().await.unwrap();
        let _ = guard.lost().await;
        drop(guard);
        // The shortest pauses there can be are no hot loop either.
        let hasty = fleet.builder().policy(policy().with_backoff(ms(1), ms(1))).connect().await.unwrap();
        fleet.occupy(0..5, "t");
        let refusal = contended(hasty.on("t").wait(ms(500)).acquire().await.unwrap_err());
        assert!((5..=2_500).contains(&refusal.claims()), "{}", refusal.claims());
        pause(ms(50)).await;
    });
}
