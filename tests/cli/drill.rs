//! drill: the rehearsal.

use serde_json::Value;

use crate::stage::{Ended, Stage, end, eventually, is_named_by_a_process, quorlock, run, signal, start};

fn runs(ended: &Ended) -> Vec<Value> {
    ended.json()["runs"].as_array().unwrap().clone()
}

fn number(run: &Value, field: &str) -> u64 {
    run[field].as_u64().unwrap_or_else(|| panic!("{field}: {run}"))
}

#[test]
fn work_longer_than_the_ttl_is_entered_twice_unless_renewed_and_never_past_the_fence() {
    // A variable that is set for other commands is no wish to rehearse there.
    let ended = run(quorlock()
        .env("QUORLOCK_MASTERS", "redis://127.0.0.1:1")
        .args(["drill", "--ttl", "1500ms", "--rounds", "1", "--p99", "2s", "--json"]));
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(ended.json()["outcome"], "ok", "{ended:?}");
    let runs = runs(&ended);
    assert_eq!(runs.len(), 12);
    for of in &runs {
        assert_eq!((number(of, "entries"), number(of, "double_fenced")), (3, 0), "{of}");
        if of["renewed"] == true {
            assert_eq!(number(of, "double_unfenced"), 0, "{of}");
        } else if of["work_percent"] == 150 {
            // Each but the first enters while the one before is at work.
            assert!(number(of, "double_unfenced") > 0 && number(of, "refused") > 0, "{of}");
        }
    }
    let kinds = |frozen: bool| runs.iter().filter(|of| of["frozen"] == frozen).count();
    assert_eq!((kinds(false), kinds(true)), (6, 6));
    let choose = &ended.json()["choose"];
    assert_eq!((number(choose, "ttl_ms"), number(choose, "renew_every_ms")), (6_000, 2_000), "{choose}");
    assert!(ended.err.contains("m2 frozen") && ended.err.contains("five masters of its own"), "{ended:?}");
}

#[test]
fn on_a_fleet_it_takes_names_of_its_own_freezes_nobody_and_leaves_nothing() {
    let stage = Stage::new();
    stage.set(&[1, 2, 3, 4, 5], &["SET", "order:1", "somebody's", "PX", "600000"]);
    let mut command = quorlock();
    command.env("QUORLOCK_MASTERS", stage.urls());
    let ended = run(command.args([
        "drill",
        "--on-fleet",
        "--rounds",
        "1",
        "--contenders",
        "2",
        "--ttl",
        "2s",
        "--measure",
        "2",
        "--",
        "sleep",
        "0.1",
    ]));
    for words in ["150 % of the ttl", "renewed", "all well", "--ttl 3s", "the longest of 2 runs", ".fenced()"]
    {
        assert!(ended.ok().contains(words), "{words}: {ended:?}");
    }
    assert!(!ended.out.contains("frozen"), "{ended:?}");
    for words in ["quorlock-drill:", "freezes no master", "runs the command 2 times"] {
        assert!(ended.err.contains(words), "{words}: {ended:?}");
    }
    eventually("nothing is left", || {
        stage.keys().iter().all(|keys| keys.iter().all(|key| key.as_slice() == b"order:1"))
    });
    assert_eq!(stage.values("order:1"), vec![Some("somebody's".to_owned()); 5]);
}

#[test]
fn what_cannot_be_rehearsed_is_refused_before_anything_is_started() {
    let drill = |arguments: &[&str]| run(quorlock().arg("drill").args(arguments));
    drill(&["--masters", "redis://127.0.0.1:1"]).fails(2, &["--masters", "--on-fleet"]);
    drill(&["--on-fleet"]).fails(78, &["no masters given"]);
    drill(&["--ttl", "100ms"]).fails(2, &["ttl", "100ms"]);
    drill(&["--contenders", "1"]).fails(2, &["--contenders"]);
    drill(&["--p99", "0s"]).fails(2, &["--p99"]);
    drill(&["--p99", "1s", "--", "true"]).fails(2, &["--p99"]);
    drill(&["--", "/nowhere/at/all"]).fails(2, &["/nowhere/at/all"]);
    drill(&["--", "sh", "-c", "exit 3"]).fails(1, &["sh", "3"]);
}

#[test]
fn an_interrupted_drill_leaves_no_process_and_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = quorlock();
    command.args(["drill", "--ttl", "20s"]).env("TMPDIR", folder.path());
    let drill = start(&mut command);
    eventually("its masters are up", || is_named_by_a_process(folder.path()));
    signal(&drill, "-INT");
    let ended = end(drill, crate::stage::BOUND);
    assert_eq!(ended.code, 130, "{ended:?}");
    eventually("all of it is gone", || {
        !is_named_by_a_process(folder.path()) && std::fs::read_dir(folder.path()).unwrap().count() == 0
    });
}
