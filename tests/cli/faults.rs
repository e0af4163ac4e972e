//! Masters that are down, frozen, fresh, or will not be spoken to.

use quorlock::testbed::Testbed;

use crate::stage::{Stage, quorlock, run};

#[test]
fn two_of_five_masters_can_be_down_or_frozen() {
    let stage = Stage::new();
    stage.bed[1].freeze().unwrap();
    stage.bed[3].kill().unwrap();
    let json = stage.quorlock(["acquire", "a", "--wait", "50s", "--json"]).json();
    assert_eq!((&json["outcome"], &json["votes"]["granted"]), (&"acquired".into(), &3.into()), "{json}");
    let holder = json["holder"].as_str().unwrap();
    assert_eq!(stage.quorlock(["extend", "a", "--holder", holder, "--ttl", "50s"]).ok(), holder);
    assert_eq!(stage.quorlock(["release", "a", "--holder", holder]).ok(), "released");
    for master in [0, 2, 4] {
        assert_eq!(stage.bed[master].get("a").unwrap(), None);
    }
}

#[test]
fn three_masters_down_are_no_quorum_with_the_reason_of_each() {
    let stage = Stage::new();
    let holder = stage.quorlock(["acquire", "a"]).ok().to_owned();
    for master in 0..3 {
        stage.bed[master].kill().unwrap();
    }
    for wait in ["0s", "300ms"] {
        let ended = stage.quorlock(["acquire", "b", "--wait", wait, "--json"]);
        ended.fails(69, &["no quorum", "refused", "Start or reach"]);
        for master in stage.bed.masters() {
            assert!(ended.err.contains(&master.address().to_string()), "{ended:?}");
        }
        let json = ended.json();
        assert_eq!(json["outcome"], "no_quorum", "{json}");
        assert!(json["votes"]["failed"].as_u64().unwrap() >= 3, "{json}");
    }
    let ended = stage.quorlock(["extend", "a", "--holder", &holder, "--json"]);
    ended.fails(69, &["no quorum", "of 5 masters, 3 needed"]);
    let ended = stage.quorlock(["release", "a", "--holder", &holder, "--json"]);
    ended.fails(69, &["no quorum", "may stay"]);
    assert_eq!(ended.json()["outcome"], "lingering");
    for master in [3, 4] {
        assert_eq!(stage.bed[master].get("a").unwrap(), None, "released where that was possible");
        assert_eq!(stage.bed[master].get("b").unwrap(), None);
    }
}

#[test]
fn fresh_masters_abstain_and_the_error_names_the_quarantine_and_init() {
    let stage = Stage::fresh();
    let ended = stage.quorlock(["acquire", "a", "--wait", "200ms"]);
    ended.fails(69, &["no quorum", "abstains for", "quarantine", "`quorlock init`"]);
    assert!(stage.keys().iter().all(Vec::is_empty));
}

#[cfg(target_os = "linux")]
#[test]
fn init_has_patience_with_masters_that_are_slow_to_connect() {
    let stage = Stage::fresh();
    let network = crate::run::scene::Network::to(&stage);
    // A connection takes several round trips.
    network.slow(std::time::Duration::from_millis(300));
    let init = |more: &[&str]| {
        let mut command = quorlock();
        command.env("QUORLOCK_MASTERS", network.urls()).args(["init", "--master-timeout", "9s"]).args(more);
        run(&mut command)
    };
    init(&["--connect-timeout", "1s"]).fails(69, &["no connection within 1s, the connect timeout"]);
    assert!(init(&[]).ok().starts_with("admitted"));
}

#[test]
fn fresh_masters_vote_by_themselves_after_the_longest_ttl() {
    let stage = Stage::fresh();
    let rules = ["--max-ttl", "4s", "--ttl", "3s", "--wait", "50s"];
    stage.quorlock(["acquire", "a"].into_iter().chain(rules)).ok();
    // Another longest ttl than the fleet's is refused, with both.
    stage.quorlock(["acquire", "a", "--wait", "0s"]).fails(69, &["4000 ms", "60000 ms"]);
}

#[test]
fn a_lock_without_a_ttl_is_busy_for_ever_and_said_so() {
    let stage = Stage::new();
    stage.set(&[1, 2, 3, 4, 5], &["SET", "a", "1"]);
    stage.quorlock(["acquire", "a", "--wait", "500ms"]).fails(75, &["never expires by itself"]);
    assert_eq!(stage.values("a"), vec![Some("1".to_owned()); 5]);
}

#[test]
fn masters_that_want_a_password_get_it_from_the_url_or_the_file() {
    let bed = Testbed::builder().arguments(["--requirepass", "hunter2"]).start().unwrap();
    let urls = |login: &str| {
        let urls: Vec<String> =
            bed.masters().iter().map(|master| format!("redis://{login}{}", master.address())).collect();
        urls
    };
    run(quorlock().env("QUORLOCK_MASTERS", urls(":hunter2@").join(",")).arg("init")).ok();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("q.toml");
    let text = format!("masters = [\"{}\"]\npassword = \"hunter2\"", urls("").join("\", \""));
    std::fs::write(&path, text).unwrap();
    let ended = run(quorlock().arg("--config").arg(&path).args(["acquire", "a", "-vv"]));
    ended.ok();
    assert!(!ended.err.contains("hunter2"), "{ended:?}");
    let ended =
        run(quorlock().env("QUORLOCK_MASTERS", urls("").join(",")).args(["acquire", "b", "--wait", "0s"]));
    ended.fails(69, &["no quorum", "NOAUTH"]);
}

#[test]
fn a_key_out_of_reach_among_several_is_named_by_doctor_to_which_the_error_points() {
    let stage = Stage::new();
    let user = "ACL SETUSER app on >hunter2 ~order:* ~quorlock:* +@all";
    stage.set(&[1, 2, 3, 4, 5], &user.split(' ').collect::<Vec<_>>());
    let urls: Vec<String> = stage.bed.urls().iter().map(|url| url.replace("//", "//app:hunter2@")).collect();
    let as_user = |arguments: &[&str]| {
        run(quorlock()
            .env("QUORLOCK_MASTERS", urls.join(","))
            .args(["--master-timeout", "2s"])
            .args(arguments))
    };
    as_user(&["acquire", "order:1", "order:2"]).ok();
    let ended = as_user(&["acquire", "order:3", "stock:3", "--wait", "0s"]);
    ended.fails(69, &["NOPERM", "`quorlock doctor RESOURCE…`", "the key"]);
    let seen = as_user(&["doctor", "order:3", "stock:3"]);
    assert!(seen.out.contains("this user may not touch the key stock:3"), "{seen:?}");
    assert!(!seen.out.contains("the key order:3"), "{seen:?}");
}
