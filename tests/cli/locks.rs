//! acquire, extend, release, init.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use quorlock::testbed::LocalMaster;

use crate::stage::{BOUND, Stage, end, eventually, quorlock, run, signal, start};

#[test]
fn acquire_prints_the_holder_and_leaves_the_lock_on_all_five() {
    let stage = Stage::new();
    let ended = stage.acquire_everywhere("order:123", &["--label", "web-3"]);
    let holder = ended.ok();
    assert!(holder.starts_with("web-3/") && ended.out.lines().count() == 1, "{ended:?}");
    for master in stage.bed.masters() {
        let left = master.pttl("order:123").unwrap();
        assert!((1..=30_000).contains(&left), "{left}");
    }
    assert_eq!(ended.err, "");
}

#[test]
fn acquire_says_everything_in_one_object() {
    let stage = Stage::new();
    let json = stage.acquire_everywhere("a", &["--ttl", "20s", "--json"]).json();
    assert_eq!(json["outcome"], "acquired");
    assert_eq!(json["resource"], "a");
    assert_eq!(stage.values("a"), vec![json["holder"].as_str().map(str::to_owned); 5]);
    let validity = json["validity_ms"].as_u64().unwrap();
    assert!((1..=19_798).contains(&validity), "{json}");
    assert_eq!(json["votes"]["granted"], 5, "{json}");
    for none in ["held", "failed", "unknown"] {
        assert_eq!(json["votes"][none], 0, "{json}");
    }
    assert!(json["fence"].is_null() && json.as_object().unwrap().contains_key("fence"));
}

#[test]
fn a_held_lock_is_busy_and_stays_as_it_is() {
    let stage = Stage::new();
    let holder = stage.acquire_everywhere("a", &[]).ok().to_owned();
    for wait in ["0s", "300ms"] {
        let ended = stage.quorlock(["acquire", "a", "--wait", wait, "--json"]);
        ended.fails(75, &["busy", "\"a\"", "held by", "--wait"]);
        let json = ended.json();
        assert_eq!(json["outcome"], "busy", "{json}");
        // Enough to know that it cannot be had.
        assert!(json["votes"]["held"].as_u64().unwrap() >= 3, "{json}");
        assert!(json["holder"].is_null() && json["validity_ms"] == 0, "{json}");
    }
    // Who waits asks whom for.
    stage.quorlock(["acquire", "a", "--wait", "500ms"]).fails(75, &[&holder, "s more"]);
    assert_eq!(stage.values("a"), vec![Some(holder); 5]);
}

#[test]
fn who_waits_gets_the_lock_when_its_ttl_ends() {
    let stage = Stage::new();
    let first = stage.quorlock(["acquire", "a", "--ttl", "2500ms"]).ok().to_owned();
    let second = stage.quorlock(["acquire", "a", "--wait", "50s"]).ok().to_owned();
    assert_ne!(first, second);
}

#[test]
fn extend_gives_more_time_wherever_it_says_so() {
    let stage = Stage::new();
    let holder = stage.acquire_everywhere("a", &["--ttl", "20s"]).ok().to_owned();
    let json = stage.quorlock(["extend", "a", "--holder", &holder, "--ttl", "55s", "--json"]).json();
    assert_eq!((&json["outcome"], json["holder"].as_str()), (&"extended".into(), Some(&*holder)), "{json}");
    let granted = json["votes"]["granted"].as_u64().unwrap();
    assert!(granted >= 3, "{json}");
    let validity = json["validity_ms"].as_u64().unwrap();
    assert!((20_000..55_000).contains(&validity), "{json}");
    let extended = stage.bed.masters().iter().filter(|master| master.pttl("a").unwrap() > 20_000);
    assert_eq!(u64::try_from(extended.count()).unwrap(), granted);
    assert_eq!(stage.quorlock(["extend", "a", "--holder", &holder]).ok(), holder);
}

#[test]
fn nobody_extends_or_releases_the_lock_of_somebody_else() {
    let stage = Stage::new();
    let holder = stage.acquire_everywhere("a", &["--ttl", "20s"]).ok().to_owned();
    let extend = ["extend", "a", "--holder", "me/1", "--ttl", "60s", "--json"];
    let ended = stage.quorlock(extend);
    ended.fails(1, &["not held", "0 of 5"]);
    assert_eq!(ended.json()["outcome"], "not_held");
    let ended = stage.quorlock(["release", "a", "--holder", "me/1", "--json"]);
    ended.fails(1, &["not held by me/1", "Nothing was deleted"]);
    assert_eq!(ended.json()["outcome"], "not_held");
    assert_eq!(stage.values("a"), vec![Some(holder); 5]);
    assert!(stage.bed.masters().iter().all(|master| master.pttl("a").unwrap() <= 20_000));
}

#[test]
fn release_frees_the_lock_and_the_second_one_finds_nothing() {
    let stage = Stage::new();
    let holder = stage.acquire_everywhere("a", &[]).ok().to_owned();
    let json = stage.quorlock(["release", "a", "--holder", &holder, "--json"]).json();
    assert_eq!(json["outcome"], "released", "{json}");
    assert!(json["votes"]["granted"].as_u64().unwrap() >= 3, "{json}");
    let gone = stage.values("a").iter().filter(|value| value.is_none()).count();
    assert!(gone >= 3);
    for master in stage.bed.masters() {
        master.command(&["DEL", "a"]).unwrap();
    }
    stage.quorlock(["release", "a", "--holder", &holder]).fails(1, &["not held"]);
    stage.quorlock(["extend", "a", "--holder", &holder]).fails(1, &["not held", "has no such key"]);
    assert_eq!(stage.values("a"), vec![None; 5], "extended into being");
}

#[test]
fn release_asks_no_fresh_master_to_vote() {
    let stage = Stage::fresh();
    stage.set(&[1, 2, 3, 4, 5], &["SET", "a", "me/1", "PX", "60000"]);
    assert_eq!(stage.quorlock(["release", "a", "--holder", "me/1"]).ok(), "released");
    for master in stage.bed.masters() {
        assert_eq!(master.keys().unwrap(), Vec::<Vec<u8>>::new());
    }
}

#[test]
fn a_resource_is_bytes() {
    let stage = Stage::new();
    let odd = OsStr::from_bytes(b"sp ace\n\xff\x80");
    let holder = stage.quorlock([OsStr::new("acquire"), odd]).ok().to_owned().into_bytes();
    let has = |master: &&LocalMaster| master.get(odd.as_bytes()).unwrap().as_ref() == Some(&holder);
    assert!(stage.bed.masters().iter().filter(has).count() >= 3);
    let json = stage.quorlock([OsStr::new("inspect"), odd, OsStr::new("--json")]).json();
    assert_eq!(json["outcome"], "held", "{json}");
}

#[test]
fn masters_come_from_the_option_then_the_variable_then_the_file() {
    let stage = Stage::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("quorlock.toml");
    let list = stage.bed.urls().join("\", \"");
    std::fs::write(&file, format!("masters = [\"{list}\"]\nmaster_timeout = \"400ms\"\nlabel = \"file\""))
        .unwrap();
    let inspect = |command: &mut std::process::Command| {
        run(command.args(["inspect", "a", "--json"])).json()["outcome"].as_str().unwrap().to_owned()
    };
    let nowhere = "redis://127.0.0.1:1";
    assert_eq!(inspect(quorlock().arg("--config").arg(&file)), "free");
    assert_eq!(inspect(quorlock().arg("--config").arg(&file).env("QUORLOCK_MASTERS", "")), "free");
    assert_eq!(inspect(quorlock().arg("--config").arg(&file).env("QUORLOCK_MASTERS", nowhere)), "no_quorum");
    assert_eq!(inspect(&mut stage.command(["--masters", nowhere])), "no_quorum");
    assert_eq!(
        inspect(quorlock().env("QUORLOCK_MASTERS", nowhere).args(["--masters", &stage.urls()])),
        "free"
    );
    let holder = run(quorlock().arg("--config").arg(&file).args(["acquire", "a"]));
    assert!(holder.ok().starts_with("file/"), "{holder:?}");
}

#[test]
fn init_admits_fresh_masters_and_refuses_known_ones() {
    let stage = Stage::fresh();
    let json = stage.quorlock(["init", "--json"]).json();
    assert_eq!(json["outcome"], "admitted");
    assert_eq!(json["masters"].as_array().unwrap().len(), 5);
    stage.quorlock(["acquire", "a"]).ok();
    let ended = stage.quorlock(["init", "--json"]);
    ended.fails(1, &["no master was admitted", "belongs to a fleet already", "quorlock:admitted"]);
    assert_eq!(ended.json()["outcome"], "not_admitted");
    // Another exit code where it may help to try again.
    stage.bed[4].kill().unwrap();
    stage.quorlock(["init"]).fails(69, &["no master was admitted", "refused"]);
}

#[test]
fn the_usual_ttl_is_no_longer_than_the_fleets_longest() {
    let stage = Stage::fresh();
    stage.quorlock(["init", "--max-ttl", "20s"]).ok();
    let holder = stage.quorlock(["acquire", "a", "--max-ttl", "20s"]).ok().to_owned();
    let left = stage.bed[0].pttl("a").unwrap();
    assert!((10_000..=20_000).contains(&left), "{left}");
    stage.quorlock(["extend", "a", "--max-ttl", "20s", "--holder", &holder]).ok();
    stage.quorlock(["run", "b", "--max-ttl", "20s", "--", "true"]).ok();
    // One that was asked for is not made shorter.
    stage.quorlock(["acquire", "c", "--max-ttl", "20s", "--ttl", "30s"]).fails(2, &["30s", "20s"]);
    // Without the fleet's, it is named where to give it.
    stage.quorlock(["acquire", "a", "--wait", "0s"]).fails(69, &["20000 ms", "60000 ms", "--max-ttl"]);
}

#[test]
fn a_signal_ends_a_wait_and_leaves_nothing() {
    let stage = Stage::new();
    let holder = stage.acquire_everywhere("a", &["--ttl", "60s"]).ok().to_owned();
    for (name, code) in [("-INT", 130), ("-TERM", 143)] {
        let waiting = start(stage.command(["acquire", "a", "--wait", "10m"]).env("RUST_BACKTRACE", "0"));
        // It is connected, so it has its signals caught.
        eventually("it waits", || {
            let clients = stage.bed[0].command(&["CLIENT", "LIST"]).unwrap().text().unwrap();
            clients.lines().filter(|line| !line.contains("cmd=client")).count() > 0
        });
        signal(&waiting, name);
        let ended = end(waiting, BOUND);
        ended.fails(code, &["interrupted", "not held"]);
        assert_eq!(ended.out, "");
    }
    assert_eq!(stage.values("a"), vec![Some(holder); 5]);
}

#[test]
fn several_resources_are_one_lock_with_one_id() {
    let stage = Stage::new();
    let json = stage.acquire_everywhere("a", &["b", "a", "--ttl", "20s", "--json"]).json();
    assert_eq!(json["resources"], serde_json::json!(["a", "b"]), "{json}");
    assert!(json.get("resource").is_none(), "{json}");
    let holder = json["holder"].as_str().unwrap().to_owned();
    assert_eq!((stage.values("a"), stage.values("b")), (stage.values("b"), vec![Some(holder.clone()); 5]));

    let ended = stage.quorlock(["acquire", "c", "b", "--wait", "0s", "--json"]);
    ended.fails(75, &["\"c\" and \"b\" granted by 0", &format!("\"b\" held by {holder} for")]);
    assert_eq!(ended.json()["resources"], serde_json::json!(["c", "b"]), "{ended:?}");
    assert_eq!(stage.values("c"), vec![None; 5]);

    let json = stage.quorlock(["extend", "b", "a", "--holder", &holder, "--ttl", "55s", "--json"]).json();
    assert_eq!((&json["outcome"], &json["resources"]), (&"extended".into(), &serde_json::json!(["b", "a"])));
    let extended = stage
        .bed
        .masters()
        .iter()
        .filter(|master| ["a", "b"].iter().all(|key| master.pttl(key).unwrap() > 20_000));
    assert!(extended.count() >= 3);

    let ended = stage.quorlock(["release", "c", "d", "--holder", &holder]);
    ended.fails(1, &["\"c\", \"d\" are not held by"]);
    let json = stage.quorlock(["release", "a", "b", "--holder", &holder, "--json"]).json();
    assert_eq!((&json["outcome"], &json["resources"]), (&"released".into(), &serde_json::json!(["a", "b"])));
    let free = |key| stage.values(key).iter().filter(|value| value.is_none()).count();
    assert!(free("a") >= 3 && free("b") >= 3);
}

#[test]
fn acquire_with_a_fence_prints_a_token_that_rises_and_inspect_shows_it() {
    let stage = Stage::new();
    let mut last = 0;
    for _ in 0..3 {
        let json = stage.quorlock(["acquire", "a", "--fence", "--json", "--wait", "50s"]).json();
        let (holder, token) = (json["holder"].as_str().unwrap().to_owned(), json["fence"].as_u64().unwrap());
        assert!(token > last, "{token} after {last}");
        last = token;
        let seen = stage.quorlock(["inspect", "a", "--json"]).json();
        assert_eq!(
            (seen["holder"].as_str(), seen["fence"].as_u64()),
            (Some(&*holder), Some(token)),
            "{seen}"
        );
        let shown = stage.quorlock(["inspect", "a"]);
        let end = format!("held by {holder} with fencing token {token} on ");
        assert!(shown.ok().contains(&end), "{shown:?}");
        let extended = stage.quorlock(["extend", "a", "--holder", &holder, "--ttl", "55s", "--json"]).json();
        assert!(extended["fence"].is_null(), "another process's token: {extended}");
        stage.quorlock(["release", "a", "--holder", &holder]).ok();
    }
    let ended = stage.quorlock(["acquire", "a", "--fence", "--wait", "50s"]);
    let (holder, token) = ended.ok().split_once(' ').unwrap();
    assert!(token.parse::<u64>().unwrap() > last, "{ended:?}");
    assert!(stage.quorlock(["acquire", "a", "--wait", "500ms"]).err.contains(holder));
}

#[test]
fn masters_that_forgot_together_are_named_until_fence_floor_says_where_to_go_on() {
    let stage = Stage::new();
    let first = stage.quorlock(["acquire", "a", "--fence", "--json", "--wait", "50s"]).json();
    let holder = first["holder"].as_str().unwrap();
    stage.quorlock(["release", "a", "--holder", holder]).ok();
    for index in 0..3 {
        stage.bed[index].command(&["DEL", "quorlock:fence"]).unwrap();
    }
    stage
        .quorlock(["acquire", "a", "--fence", "--wait", "0s"])
        .fails(69, &["together", "m1", "m2", "m3", "quorlock fence-floor", "without --fence"]);
    stage.quorlock(["fence-floor", "5"]).fails(2, &["too low"]);
    let set = stage.quorlock(["fence-floor", "--json"]).json();
    assert_eq!((&set["outcome"], set["raised"].as_array().unwrap().len()), (&"raised".into(), 3), "{set}");
    let next = stage.quorlock(["acquire", "a", "--fence", "--json", "--wait", "50s"]).json();
    assert!(next["fence"].as_u64() > first["fence"].as_u64(), "{next} after {first}");
    assert!(next["fence"].as_u64() > set["floor"].as_u64(), "{next} after {set}");
    assert!(stage.quorlock(["fence-floor"]).ok().contains("no floor was set"));
}

#[test]
fn run_with_a_fence_gives_the_command_a_token_and_without_one_none() {
    let stage = Stage::new();
    let fence = |more: &[&str]| {
        let tell = ["--", "sh", "-c", "echo \"token ${QUORLOCK_FENCE:-none}\""];
        let words = ["run", "a", "--wait", "50s"].iter().chain(more).chain(&tell);
        let ended = run(stage.command(words).env("QUORLOCK_FENCE", "3"));
        ended.ok().trim_start_matches("token ").to_owned()
    };
    let tokens: Vec<u64> = (0..3).map(|_| fence(&["--fence"]).parse().unwrap()).collect();
    assert!(tokens[0] < tokens[1] && tokens[1] < tokens[2], "{tokens:?}");
    assert_eq!(fence(&[]), "none");
    let events =
        run(&mut stage.command(["run", "a", "--wait", "50s", "--fence", "--json", "--", "true"])).err;
    let acquired: serde_json::Value = serde_json::from_str(events.lines().next().unwrap()).unwrap();
    assert!(acquired["fence"].as_u64().unwrap() > tokens[2], "{events}");
}
