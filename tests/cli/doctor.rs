//! doctor: each pitfall and each check, provoked on real servers and seen.

use std::process::Command;
use std::time::{Duration, Instant};

use quorlock::testbed::{Fault, Flow, LocalMaster, Proxy, ServerBinary, Testbed};
use serde_json::Value;

use crate::stage::{BOUND, Ended, Stage, end, eventually, plain, quorlock, run, signal, start};

/// Masters that forget nothing, so that a young one is no finding.
const SOUND: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

/// What was found, as a program reads it.
struct Seen {
    code: i32,
    json: Value,
}

impl Seen {
    #[track_caller]
    fn of(ended: &Ended) -> Self {
        Self { code: ended.code, json: ended.json() }
    }

    #[track_caller]
    fn finding(&self, id: &str) -> &Value {
        let findings = self.json["findings"].as_array().unwrap();
        findings
            .iter()
            .find(|finding| finding["id"] == id)
            .unwrap_or_else(|| panic!("no {id}: {}", self.json))
    }

    /// That verdict, and all these words somewhere in what it says.
    #[track_caller]
    fn says(&self, id: &str, verdict: &str, words: &[&str]) -> &Self {
        let finding = self.finding(id);
        assert_eq!(finding["verdict"], verdict, "{finding:#}");
        let text = finding.to_string();
        for word in words {
            let word = word.replace('"', "\\\"");
            assert!(text.contains(&word), "{word:?} is missing: {finding:#}");
        }
        self
    }

    /// The checks that are neither sound nor unchecked.
    fn bad(&self) -> Vec<&str> {
        let findings = self.json["findings"].as_array().unwrap().iter();
        let bad = findings.filter(|finding| finding["verdict"] == "warning" || finding["verdict"] == "error");
        bad.map(|finding| finding["id"].as_str().unwrap()).collect()
    }
}

impl Stage {
    /// Sound masters, and these are admitted.
    fn sound() -> Self {
        let stage = Self { bed: Testbed::builder().arguments(SOUND).start().unwrap() };
        stage.quorlock(["init"]).ok();
        stage
    }

    /// Four sound ones, and a first one with more arguments.
    fn with_first(more: &[&str]) -> Self {
        let binary = ServerBinary::find().unwrap();
        let start = |more: &[&str]| LocalMaster::start(&binary, &[&SOUND[..], more].concat()).unwrap();
        let mut masters = vec![start(more)];
        masters.extend((0..4).map(|_| start(&[])));
        Self { bed: Testbed::from(masters) }
    }

    #[track_caller]
    fn doctor(&self, arguments: &[&str]) -> Seen {
        Seen::of(&self.quorlock(["doctor", "--json"].iter().chain(arguments)))
    }

    /// The beginning of a command to paste for one of the masters, counted from 1.
    fn cli(&self, master: usize) -> String {
        let master = &self.bed[master - 1];
        let is_valkey = master.info().is_ok_and(|info| info.contains_key("valkey_version"));
        format!("{}-cli -h 127.0.0.1 -p {} ", if is_valkey { "valkey" } else { "redis" }, master.port())
    }

    fn settings(&self) -> Vec<String> {
        let all = |master: &LocalMaster| format!("{:?}", master.command(&["CONFIG", "GET", "*"]).unwrap());
        self.bed.masters().iter().map(all).collect()
    }
}

#[test]
fn sound_masters_are_found_sound_in_text_and_in_json() {
    let stage = Stage::sound();
    let holder = stage.acquire_everywhere("a", &["--ttl", "50s"]).ok().to_owned();
    let arguments = ["doctor", "a", "--p99", "8s", "--expect", &holder];
    let ended = stage.quorlock(arguments);
    insta::assert_snapshot!("sound", plain(&stage, ended.ok()));
    assert!(!ended.out.contains('\x1b'), "colours, and no terminal");
    let seen = stage.doctor(&arguments[1..]);
    assert_eq!((seen.code, &seen.json["outcome"], &seen.json["health"]), (0, &"ok".into(), &"ok".into()));
    assert_eq!((&seen.json["up"], &seen.json["needed"]), (&5.into(), &3.into()));
    assert_eq!(seen.bad(), Vec::<&str>::new());
    seen.says("P2", "ok", &["still held by", &holder]).says("P4", "unchecked", &["--monitor 5s"]);
    // Only what nobody could have told without MONITOR.
    let findings = seen.json["findings"].as_array().unwrap();
    assert_eq!(
        findings.iter().filter(|finding| finding["verdict"] == "unchecked").count(),
        1,
        "{findings:#?}"
    );
    assert_eq!(findings.len(), 21);
}

#[test]
fn a_sick_fleet_is_told_in_text_and_in_json() {
    let stage = Stage::sound();
    stage.set(&[2], &["REPLICAOF", "127.0.0.1", &stage.bed[0].port().to_string()]);
    stage.set(&[3], &["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    stage.bed[3].kill().unwrap();
    stage.set(&[1, 3, 5], &["SET", "stuck", "1"]);
    eventually("the replica is attached", || stage.bed[0].info().unwrap()["connected_slaves"] == "1");
    eventually("the replica is a replica", || stage.bed[1].info().unwrap()["master_link_status"] == "up");
    let ended = stage.quorlock(["doctor", "stuck", "it's new"]);
    assert_eq!(ended.code, 3, "{ended:?}");
    insta::assert_snapshot!("sick", plain(&stage, &ended.out));
    let json = stage.quorlock(["doctor", "stuck", "it's new", "--json"]);
    let pretty = serde_json::to_string_pretty(&json.json()).unwrap();
    insta::assert_snapshot!("sick_json", plain(&stage, &pretty));
}

#[test]
fn doctor_inspect_and_list_change_nothing() {
    let stage = Stage::sound();
    stage.set(&[1, 2, 3], &["SET", "a", "1"]);
    stage.set(&[2], &["SET", "b", "x/1", "PX", "60000"]);
    stage.set(&[3], &["HSET", "c", "field", "1"]);
    let (keys, settings) = (stage.keys(), stage.settings());
    let changes = || -> Vec<String> {
        stage
            .bed
            .masters()
            .iter()
            .map(|master| master.info().unwrap()["rdb_changes_since_last_save"].clone())
            .collect()
    };
    let before = changes();
    for master in stage.bed.masters() {
        master.command(&["CONFIG", "RESETSTAT"]).unwrap();
    }
    assert_eq!(stage.quorlock(["doctor", "a", "b", "c", "--monitor", "300ms"]).code, 3);
    stage.quorlock(["doctor"]);
    stage.quorlock(["inspect", "a"]).ok();
    stage.quorlock(["list"]).ok();
    const READS: [&str; 18] = [
        "hello",
        "client|id",
        "client|setinfo",
        "client|list",
        "info",
        "exists",
        "time",
        "get",
        "getrange",
        "pttl",
        "eval",
        "hmget",
        "scan",
        "config|get",
        "slowlog|get",
        "command|info",
        "monitor",
        "ping",
    ];
    for master in stage.bed.masters() {
        for (field, _) in master.info().unwrap().iter().filter(|(field, _)| field.starts_with("cmdstat_")) {
            let command = field.trim_start_matches("cmdstat_");
            assert!(READS.contains(&command) || command == "config|resetstat", "{command} was given");
        }
    }
    assert_eq!((stage.keys(), changes(), stage.settings()), (keys, before, settings));
}

// B105
#[test]
fn the_exit_code_is_the_health_of_the_fleet() {
    let stage = Stage::sound();
    for (down, code, health, outcome) in [
        (0, 0, "ok", "ok"),
        (1, 1, "degraded", "warnings"),
        (2, 3, "no_spare", "errors"),
        (3, 4, "no_quorum", "no_quorum"),
        (4, 4, "no_quorum", "no_quorum"),
    ] {
        if down > 0 {
            stage.bed[down].kill().unwrap();
        }
        let seen = stage.doctor(&[]);
        assert_eq!(seen.code, code, "{down} down: {:?}", seen.bad());
        assert_eq!((&seen.json["health"], &seen.json["outcome"]), (&health.into(), &outcome.into()));
        assert_eq!(seen.json["up"], 5 - down);
        if down > 0 {
            let (verdict, master) =
                (if down == 1 { "warning" } else { "error" }, stage.bed[down].address().to_string());
            seen.says("D01", verdict, &[&master, "refused", &format!("{}PING", stage.cli(down + 1))]);
        }
    }
}

// B104, B105: "total time <= 2*(connect timeout)+1 s even with two blackholed nodes"
#[test]
fn masters_that_keep_silent_are_named_in_time() {
    let stage = Stage::sound();
    let frozen = [stage.bed[1].injected(Fault::Freeze), stage.bed[3].injected(Fault::Freeze)];
    let mut command = quorlock();
    let began = Instant::now();
    let ended = run(command.env("QUORLOCK_MASTERS", stage.urls()).args(["doctor", "a", "--json"]));
    let took = began.elapsed();
    let seen = Seen::of(&ended);
    assert_eq!(seen.code, 3);
    for master in [1, 3] {
        seen.says("D01", "error", &[&stage.bed[master].address().to_string(), "no connection within 1s"]);
    }
    // 3 s are promised; the machine may be busy.
    assert!(took.as_secs() < 8, "{took:?}");
    drop(frozen);
}

// B105: "slow node named with its latency"
#[test]
fn a_master_that_answers_late_is_named_with_how_late() {
    let stage = Stage::sound();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let path = runtime.block_on(Proxy::start(stage.bed[0].url())).unwrap();
    path.set_both(Flow::new().delayed(Duration::from_millis(80)));
    let urls = format!("{},{}", path.url(), stage.bed.urls()[1..].join(","));
    let seen = Seen::of(&run(quorlock().env("QUORLOCK_MASTERS", urls).args([
        "doctor",
        "--json",
        "--master-timeout",
        "300ms",
    ])));
    seen.says("D01", "warning", &["m1 ", "a round trip took", "more than half", "--master-timeout"]);
    assert!(seen.json["masters"][0]["round_trip_us"]["p50"].as_u64().unwrap() >= 160_000, "{}", seen.json);
    drop((path, runtime));
}

// Pitfall 1
#[test]
fn a_constant_value_at_a_lock_is_an_error() {
    let stage = Stage::sound();
    stage.set(&[1, 2, 3], &["SET", "a", "1", "PX", "60000"]);
    let seen = stage.doctor(&["a"]);
    seen.says("P1", "error", &["a", "\"1\"", "quorlock explain 1"]);
    assert_eq!((seen.code, seen.bad()), (3, vec!["P1"]));
    // A string key that nobody called a lock may be anything.
    stage.set(&[1, 2, 3, 4, 5], &["SET", "b", "x"]);
    stage.doctor(&[]).says("P1", "warning", &["\"1\""]);
    // One value at two locks is nobody's own.
    let value = "0f2c3a4b-1111-4222-8333-123456789abc";
    stage.set(&[1, 2, 3], &["SET", "c", value, "PX", "60000"]);
    stage.set(&[1, 2, 3], &["SET", "d", value, "PX", "60000"]);
    stage.doctor(&["c", "d"]).says("P1", "warning", &[value, "another lock"]);
    stage.doctor(&["c"]).says("P1", "ok", &[]);
}

// Pitfall 2, D15
#[test]
fn a_ttl_is_judged_against_the_work() {
    let stage = Stage::sound();
    let p2 = |arguments: &[&str], verdict: &str, words: &[&str]| {
        stage.doctor(arguments).says("P2", verdict, words);
    };
    p2(&["--p99", "10s"], "ok", &[]);
    p2(&["--p99", "11s"], "warning", &["2.7 times", "--ttl 33s"]);
    p2(&["--p99", "31s"], "error", &["1 in 100", "unless it is renewed", "max_ttl"]);
    p2(&["--p99", "19s", "--ttl", "15s"], "error", &["--ttl 57s"]);
    p2(&[], "unchecked", &["--p99"]);
    stage.set(&[1, 2, 3], &["SET", "a", "web:1/0f2c3a4b-1111-4222-8333-123456789abc", "PX", "7000"]);
    p2(&["a", "--p99", "8s"], "warning", &["is it renewed?"]);
    stage.doctor(&["--ttl", "61s"]).says("D15", "error", &["61s", "60s"]);
    stage.doctor(&["--ttl", "10s"]).says("D15", "warning", &["one try", "--ttl 12s"]);
}

// Pitfalls 2 and 5
#[test]
fn who_lost_a_lock_is_told_whether_it_is_gone_or_somebody_elses() {
    let stage = Stage::sound();
    let mine = stage.acquire_everywhere("a", &["--ttl", "50s"]).ok().to_owned();
    let expect = |holder: &str, verdict: &str, words: &[&str]| {
        let seen = stage.doctor(&["a", "--expect", holder]);
        seen.says("P2", verdict, words);
        assert_eq!(seen.code, if verdict == "ok" { 0 } else { 3 });
    };
    expect(&mine, "ok", &["still held by", "5 masters"]);
    expect("web:9/other", "error", &["not yours any more: held by", &mine, "quorlock explain 5"]);
    for nth in 0..3 {
        stage.bed[nth].command(&["DEL", "a"]).unwrap();
    }
    expect(&mine, "error", &["lost: only 2 masters"]);
    stage.quorlock(["release", "a", "--holder", &mine]);
    eventually("it is released", || stage.values("a").iter().all(Option::is_none));
    expect(&mine, "error", &["gone: no master has that holder's key"]);
}

// Pitfall 3, D07
#[test]
fn a_key_without_a_ttl_is_found_and_the_fix_frees_it() {
    let stage = Stage::sound();
    stage.set(&[1, 2, 3], &["SET", "a b", "web:1 x"]);
    let seen = stage.doctor(&["a b"]);
    let fix = "quorlock release 'a b' --holder 'web:1 x'   # if its holder is gone";
    seen.says("P3", "error", &["a b", "never expires", fix]).says("D07", "warning", &["m1, m2, m3", fix]);
    assert_eq!(seen.code, 3);
    // As a shell takes it.
    let paste = |fix: &str| {
        let mut shell = Command::new("bash");
        let pasted = fix.replacen("quorlock", env!("CARGO_BIN_EXE_quorlock"), 1);
        assert_eq!(run(shell.env("QUORLOCK_MASTERS", stage.urls()).args(["-c", &pasted])).ok(), "released");
    };
    paste(fix);
    stage.set(&[1, 2, 3], &["SET", "-x", "-1"]);
    let seen = stage.doctor(&["--", "-x"]);
    paste(seen.finding("P3")["fix"][0].as_str().unwrap());
    eventually("it is released", || stage.values("-x").iter().all(Option::is_none));
    stage.doctor(&["a b"]).says("P3", "ok", &[]).says("D07", "ok", &[]);
    for nth in 0..7 {
        stage.set(&[1], &["SET", &format!("k{nth}"), "x"]);
    }
    stage.doctor(&[]).says("D07", "warning", &["k0", "k4", "2 more without a ttl", "quorlock list"]);
}

// D07
#[test]
fn a_master_full_of_other_keys_is_not_searched_for_minutes() {
    let stage = Stage::sound();
    let fill = "for i = 1, 150000 do redis.call('HSET', 'h' .. i, 'f', '1') end return 1";
    stage.set(&[1], &["EVAL", fill, "0"]);
    let seen = stage.doctor(&[]);
    seen.says(
        "D07",
        "warning",
        &["m1 ", "150002 keys without a ttl, too many", "took longer than 3.00 s", "quorlock list"],
    );
    assert_eq!(seen.code, 1);
}

// D02, D16, pitfall 5
#[test]
fn replicas_and_masters_that_have_them_are_found() {
    let stage = Stage::sound();
    let port = stage.bed[0].port().to_string();
    stage.set(&[3], &["REPLICAOF", "127.0.0.1", &port]);
    eventually("it is attached", || stage.bed[0].info().unwrap()["connected_slaves"] == "1");
    let seen = stage.doctor(&[]);
    let master = format!("127.0.0.1:{port}");
    seen.says("D02", "error", &[&master, "which is m1", &format!("{}REPLICAOF NO ONE", stage.cli(3))]);
    seen.says("D16", "warning", &["1 replica attached", &stage.bed[2].port().to_string()]);
    seen.says("P5", "error", &["D02", "D16", "quorlock explain 5"]);
    assert_eq!((seen.code, &seen.json["health"]), (3, &"degraded".into()));
}

// B104
#[test]
fn a_master_that_waits_for_replicas_is_found() {
    let stage = Stage::with_first(&["--min-replicas-to-write", "1"]);
    let seen = stage.doctor(&[]);
    let fix = format!("{}CONFIG SET min-replicas-to-write 0", stage.cli(1));
    seen.says("D16", "error", &["m1 ", "NOREPLICAS", &fix]);
}

// D03, B104
#[test]
fn one_server_under_two_names_is_found() {
    let stage = Stage::sound();
    let urls = format!("{},redis://localhost:{}", stage.bed.urls()[..4].join(","), stage.bed[0].port());
    let ended = run(quorlock().env("QUORLOCK_MASTERS", urls).args(["doctor", "--json"]));
    let seen = Seen::of(&ended);
    seen.says("D03", "error", &["m5 localhost", "the same server as m1 127.0.0.1"]);
    assert_eq!((seen.code, &seen.json["up"]), (3, &4.into()));
}

// D04, B104
#[test]
fn fleets_that_are_none_are_found() {
    let stage = Stage::sound();
    let doctor = |urls: &str| {
        Seen::of(&run(quorlock().env("QUORLOCK_MASTERS", urls).args([
            "doctor",
            "--json",
            "--master-timeout",
            "2s",
        ])))
    };
    let urls = stage.bed.urls();
    let four = doctor(&urls[..4].join(","));
    four.says("D04", "warning", &["even number"]);
    assert_eq!(four.code, 1);
    let one = doctor(&urls[0]);
    one.says("D04", "error", &["no safer than on one server"]);
    assert_eq!((one.code, &one.json["health"]), (3, &"no_spare".into()));
    doctor(&format!("{},{}/1", urls[..4].join(","), urls[4])).says(
        "D04",
        "warning",
        &["database 0", "m5 with 1", "exclude nobody"],
    );
}

// D04, B104
#[test]
fn a_member_of_a_cluster_and_a_sentinel_are_found() {
    let free_port = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    // Its own choice, ten thousand above the other port, may be none.
    let bus = free_port().to_string();
    let stage = Stage::with_first(&["--cluster-enabled", "yes", "--cluster-port", &bus]);
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("sentinel.conf");
    std::fs::write(&config, format!("dir {}\nbind 127.0.0.1\n", folder.path().display())).unwrap();
    let port = free_port();
    let mut sentinel = Command::new(ServerBinary::find().unwrap().path())
        .arg(&config)
        .args(["--port", &port.to_string(), "--sentinel"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    eventually("it listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    let urls = format!("{},redis://127.0.0.1:{port}", stage.bed.urls()[..4].join(","));
    let ended =
        run(quorlock().env("QUORLOCK_MASTERS", urls).args(["doctor", "--json", "--master-timeout", "2s"]));
    sentinel.kill().unwrap();
    sentinel.wait().unwrap();
    let seen = Seen::of(&ended);
    seen.says("D04", "error", &["m1 ", "a member of a cluster", "m5 ", "a Sentinel"]).says("D02", "ok", &[]);
    assert_eq!((seen.code, &seen.json["up"]), (3, &3.into()));
}

// D05, pitfall 5, B106
#[test]
fn masters_that_may_have_forgotten_are_found() {
    let stage = Stage::fresh();
    let seen = stage.doctor(&[]);
    let words = ["no client has asked it to vote", "0 vote, 3 are needed", "quorlock init"];
    seen.says("D05", "error", &words).says("P5", "error", &["D05"]);
    assert_eq!((seen.code, &seen.json["masters"][0]["abstains"]), (3, &"never_admitted".into()));
    stage.quorlock(["init"]).ok();
    let seen = stage.doctor(&[]);
    let fix = format!("{}CONFIG SET appendonly yes", stage.cli(2));
    seen.says("D05", "warning", &["less than a longest ttl ago", "other libraries", &fix]).says(
        "P5",
        "warning",
        &[],
    );
    assert_eq!(seen.code, 1);
    // The fix mends it.
    for nth in 1..=5 {
        stage.set(&[nth], &["CONFIG", "SET", "appendonly", "yes"]);
        stage.set(&[nth], &["CONFIG", "SET", "appendfsync", "always"]);
    }
    assert_eq!(stage.doctor(&[]).says("D05", "ok", &[]).code, 0);
    // A restart, and a claimer: the quarantine runs.
    stage.bed[0].restart(quorlock::testbed::Data::Empty).unwrap();
    stage.quorlock(["acquire", "a"]).ok();
    let seen = stage.doctor(&[]);
    seen.says("D05", "warning", &["m1 ", "abstains for"]);
    assert!(seen.json["masters"][0]["abstains"]["quarantined_ms"].as_u64().unwrap() > 0, "{}", seen.json);
}

// D05, B104: MISCONF
#[test]
fn a_master_that_cannot_write_its_snapshot_is_found() {
    let stage = Stage::with_first(&["--save", "3600 1", "--appendonly", "no"]);
    std::fs::remove_dir_all(stage.bed[0].directory()).unwrap();
    let _ = stage.bed[0].command(&["SAVE"]);
    let _ = stage.bed[0].command(&["BGSAVE"]);
    eventually("the snapshot failed", || stage.bed[0].info().unwrap()["rdb_last_bgsave_status"] == "err");
    stage.doctor(&[]).says("D05", "error", &["m1 ", "MISCONF", &format!("{}INFO persistence", stage.cli(1))]);
}

// D06, B104, B108
#[test]
fn a_master_that_evicts_locks_is_found() {
    let stage = Stage::with_first(&["--maxmemory-policy", "volatile-ttl"]);
    stage.quorlock(["init"]).ok();
    let fix = format!("{}CONFIG SET maxmemory-policy noeviction", stage.cli(1));
    stage.doctor(&[]).says("D06", "warning", &["m1 ", "volatile-ttl", &fix]);
    stage.set(&[1], &["CONFIG", "SET", "maxmemory", "100mb"]);
    let seen = stage.doctor(&[]);
    seen.says("D06", "error", &["100 MB", "may be evicted"]);
    assert_eq!((seen.code, seen.bad()), (3, vec!["D06"]));
    stage.set(&[1], &["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    stage.set(&[1], &["CONFIG", "SET", "maxmemory", "1"]);
    stage.doctor(&[]).says("D06", "warning", &["OOM"]);
}

// D08, D09
#[test]
fn foreign_keys_split_votes_and_leftovers_are_found() {
    let stage = Stage::sound();
    stage.set(&[1, 2, 3], &["HSET", "h", "field", "1"]);
    stage.set(&[1, 2], &["SET", "s", "a:1/0f2c3a4b-1111-4222-8333-123456789abc", "PX", "60000"]);
    stage.set(&[3], &["SET", "s", "b:1/0f2c3a4b-1111-4222-8333-123456789abc", "PX", "60000"]);
    stage.set(&[1], &["SET", "l", "a:1/0f2c3a4b-1111-4222-8333-123456789abc", "PX", "60000"]);
    let seen = stage.doctor(&["h", "s", "l", "free"]);
    seen.says("D08", "error", &["h", "Redisson", &format!("{}TYPE h", stage.cli(2))]);
    seen.says(
        "D09",
        "error",
        &["foreign: 3 of 5", "split: keys of 2 holders", "leftovers", "quorlock inspect s"],
    );
    let split = stage.doctor(&["s"]);
    split.says("D09", "warning", &[]);
    assert_eq!((split.code, split.bad()), (1, vec!["D09"]));
    assert_eq!(stage.doctor(&["l", "free"]).says("D09", "ok", &["leftovers"]).code, 0);
}

// D10
#[test]
fn a_clock_that_is_wrong_and_one_that_steps_are_found() {
    let stage = Stage { bed: Testbed::builder().clocks().arguments(SOUND).start().unwrap() };
    stage.quorlock(["init"]).ok();
    stage.doctor(&[]).says("D10", "ok", &[]);
    assert!(stage.bed[1].inject(Fault::ClockStep(5_000)).is_installed());
    let seen = stage.doctor(&[]);
    seen.says("D10", "warning", &["m2 ", "ahead of the others", "chronyc tracking"]);
    let ahead = seen.json["masters"][1]["clock_ahead_ms"].as_i64().unwrap();
    assert!((4_900..=5_100).contains(&ahead), "{ahead}");
    assert!(stage.bed[1].inject(Fault::ClockStep(-120_000)).is_installed());
    stage.doctor(&[]).says("D10", "error", &["behind the others"]);

    // Repeated, a step shows although the clock ends up right.
    let watching = start(&mut stage.command(["doctor", "--json", "--watch", "2s"]));
    eventually("it looked once", || {
        let stats = stage.bed[1].command(&["INFO", "commandstats"]).unwrap().text().unwrap();
        stats.lines().any(|line| line.starts_with("cmdstat_time:calls=4,"))
    });
    assert!(stage.bed[1].inject(Fault::ClockStep(0)).is_installed());
    eventually("it looked again and again", || {
        let stats = stage.bed[1].command(&["INFO", "commandstats"]).unwrap().text().unwrap();
        stats.lines().any(|line| line.starts_with("cmdstat_time:calls=6,"))
    });
    signal(&watching, "-TERM");
    let ended = end(watching, BOUND);
    assert_eq!(ended.code, 143, "{ended:?}");
    let looks: Vec<Value> = ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(looks.len() >= 2, "{ended:?}");
    let later = Seen { code: 0, json: looks[1].clone() };
    later.says("D10", "error", &["m2 ", "gained", "stepped"]);
}

// D11
#[test]
fn a_master_that_stalled_is_found() {
    let stage = Stage::with_first(&["--enable-debug-command", "local"]);
    stage.set(&[1], &["DEBUG", "SLEEP", "1.2"]);
    let seen = Seen::of(&run(quorlock().env("QUORLOCK_MASTERS", stage.urls()).args([
        "doctor",
        "--json",
        "--master-timeout",
        "1s",
    ])));
    seen.says("D11", "warning", &["m1 ", "1.20 s", &format!("{}SLOWLOG GET 10", stage.cli(1))]);
}

// D12
#[test]
fn connections_that_are_cut_watched_or_too_many_are_found() {
    let stage = Stage::with_first(&["--timeout", "30", "--maxclients", "10"]);
    stage.quorlock(["init"]).ok();
    let mut wires: Vec<_> = (0..8).map(|_| stage.bed[0].wire().unwrap()).collect();
    assert!(wires[0].command(&["MONITOR"]).unwrap().is_ok());
    let seen = stage.doctor(&[]);
    let fix = format!("{}CONFIG SET timeout 0", stage.cli(1));
    seen.says(
        "D12",
        "warning",
        &["of 10 connections", "idle for 30 s", "1 connection listening by MONITOR", &fix],
    );
    assert_eq!((seen.code, seen.bad()), (1, vec!["D12"]));
}

// D13, B104: needs no CONFIG permission
#[test]
fn a_user_with_few_rights_is_told_which_are_missing_and_what_was_not_checked() {
    let stage = Stage::sound();
    let client = "~* +set +get +del +pttl +pexpire +eval +evalsha +script|load +hmget +hset +exists +info +hello +client|id";
    let as_user = |rights: &str| {
        for master in stage.bed.masters() {
            let words: Vec<&str> = ["ACL", "SETUSER", "app", "reset", "on", ">hunter2"]
                .into_iter()
                .chain(rights.split(' '))
                .collect();
            assert!(master.command(&words).unwrap().is_ok());
        }
        let urls: Vec<String> =
            stage.bed.urls().iter().map(|url| url.replace("//", "//app:hunter2@")).collect();
        let mut command = quorlock();
        command.env("QUORLOCK_MASTERS", urls.join(",")).args([
            "--master-timeout",
            "2s",
            "doctor",
            "a",
            "--json",
        ]);
        let ended = run(&mut command);
        assert!(!ended.out.contains("hunter2") && !ended.err.contains("hunter2"), "{ended:?}");
        Seen::of(&ended)
    };
    let told = format!("{client} +client|caching +client|tracking");
    let seen = as_user(&told);
    seen.says(
        "D13",
        "warning",
        &["in no order", "ACL SETUSER your-user +zadd +zrange +zrank +zremrangebyrank"],
    );
    let client = &format!("{client} +zadd +zrange +zrank +zremrangebyrank");
    let seen = as_user(&format!("{client} +client|caching +client|tracking"));
    assert_eq!((seen.code, seen.bad()), (0, Vec::<&str>::new()));
    seen.says("D13", "ok", &["hgetall, time: no fencing tokens"]);
    let seen = as_user(client);
    seen.says("D13", "warning", &["polling", "ACL SETUSER your-user +client|caching +client|tracking"]);
    assert_eq!((seen.code, seen.bad()), (1, vec!["D13"]));
    for (id, right) in [
        ("D10", "+time"),
        ("D11", "+slowlog|get"),
        ("D12", "+client|list"),
        ("D12", "+config|get"),
        ("D14", "+command|info"),
    ] {
        let fix = format!("{}--askpass ACL SETUSER your-user {right} ", stage.cli(1));
        seen.says(id, "unchecked", &["NOPERM", &fix]);
    }
    stage.set(&[1], &["SET", "a", "web:1/0f2c3a4b-1111-4222-8333-123456789abc"]);
    as_user(client).says("D07", "warning", &["3 keys without a ttl", "+scan +getrange"]);
    let seen = as_user(&client.replace(" +pexpire", "").replace(" +script|load", ""));
    seen.says("D13", "error", &["pexpire, script|load", "ACL SETUSER your-user +pexpire +script|load"]);
    assert_eq!(seen.code, 3);
    as_user(&client.replace(" +eval ", " ")).says("D13", "error", &["+eval"]);
    // Keys are another matter than commands: of several, the one that is out of reach is named.
    let some = as_user(&told.replace("~*", "~other:* ~quorlock:*"));
    some.says("D13", "error", &["this user may not touch the key a", "ACL SETUSER your-user '~a'"]);
    assert!(!some.finding("D13").to_string().contains("pexpire"), "{}", some.finding("D13"));
    let all = as_user("~* +@all");
    assert_eq!(all.finding("D12")["verdict"], "ok");
    // Not even INFO: nothing is known of it.
    let none = as_user("~* +hello +client|id");
    none.says("D01", "error", &["NOPERM", "+info"]);
    assert_eq!(none.code, 4);
}

// D15
#[test]
fn another_longest_ttl_than_the_fleets_is_found_where_it_is() {
    let stage = Stage::sound();
    stage.doctor(&[]).says("D15", "ok", &["longest ttl of the fleet 60.0 s"]);
    stage.set(&[2], &["HSET", "quorlock:admitted", "max_ttl", "20000"]);
    let seen = stage.doctor(&[]);
    seen.says("D15", "error", &["longest ttl is 20.0 s, not the 60.0 s given here", "--max-ttl 20s"]);
    assert_eq!(seen.finding("D15")["notes"].as_array().unwrap().len(), 1);
    assert_eq!(seen.bad(), ["D15"]);
}

// D15, pitfall 2
#[test]
fn a_lock_that_nobody_renews_is_told_from_one_that_was() {
    let stage = Stage::sound();
    let holder = "web:1/0f2c3a4b-1111-4222-8333-123456789abc";
    let left = |millis: &str| stage.set(&[1, 2, 3, 4, 5], &["SET", "a", holder, "PX", millis]);
    // What is told without --ttl would be a guess.
    left("55000");
    assert_eq!(stage.doctor(&["a"]).finding("D15")["notes"].as_array().unwrap().len(), 0);
    stage.doctor(&["a", "--ttl", "60s"]).says("D15", "ok", &["taken or last renewed"]);
    left("15000");
    let seen = stage.doctor(&["a", "--ttl", "60s"]);
    seen.says("D15", "warning", &["a", "due each 20.0 s: nobody renews it", "quorlock explain 2"]);
    stage.doctor(&["a", "--ttl", "10s"]).says("D15", "warning", &["held with a longer one", "--ttl 1"]);
}

// D14
#[test]
fn the_software_is_named() {
    let stage = Stage::sound();
    let info = stage.bed[0].info().unwrap();
    let version = info.get("valkey_version").unwrap_or(&info["redis_version"]);
    stage.doctor(&[]).says("D14", "ok", &[version]);
}

/// Whether MONITOR runs on all masters.
fn is_listened_to(stage: &Stage) -> bool {
    let is_watched = |master: &LocalMaster| {
        let clients = master.command(&["CLIENT", "LIST"]).unwrap().text().unwrap();
        clients.contains(" flags=O")
    };
    stage.bed.masters().iter().all(is_watched)
}

// Pitfalls 1 to 4, by MONITOR; and quorlock's own ways are right
#[test]
fn those_who_lock_badly_are_overheard_and_quorlock_is_not_blamed() {
    let stage = Stage::sound();
    let listening = start(&mut stage.command(["doctor", "--json", "--monitor", "6s"]));
    eventually("it listens", || is_listened_to(&stage));
    let (mut a, mut b) = (stage.bed[0].wire().unwrap(), stage.bed[0].wire().unwrap());
    for line in [
        "a SET bare v NX PX 60000",
        "b DEL bare",
        "a SETNX halves v",
        "a EXPIRE halves 60",
        "a SET steps v NX PX 60000",
        "a GET steps",
        "b SET steps w NX PX 60000",
        "a DEL steps",
        "a SET blind v NX PX 60000",
        "b PEXPIRE blind 60000",
        "a SET careful v NX PX 60000",
        "a WATCH careful",
        "a GET careful",
        "a MULTI",
        "a DEL careful",
        "a EXEC",
        "a SET cache v",
        "a GET cache",
        "a DEL cache",
    ] {
        let (who, command) = line.split_once(' ').unwrap();
        let wire = if who == "a" { &mut a } else { &mut b };
        wire.command(&command.split(' ').collect::<Vec<_>>()).unwrap();
    }
    let script =
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
    a.command(&["SET", "scripted", "v", "NX", "PX", "60000"]).unwrap();
    a.command(&["EVAL", script, "1", "scripted", "v"]).unwrap();
    let holder = stage.quorlock(["acquire", "ours"]).ok().to_owned();
    stage.quorlock(["extend", "ours", "--holder", &holder, "--ttl", "50s"]).ok();
    stage.quorlock(["release", "ours", "--holder", &holder]).ok();
    let ended = end(listening, BOUND);
    assert!(ended.err.contains("MONITOR runs on 5 masters for 6s"), "{ended:?}");
    let seen = Seen::of(&ended);
    assert_eq!(seen.code, 3);
    let blamed = |id: &str| -> Vec<&str> {
        let notes = seen.finding(id)["notes"].as_array().unwrap().iter();
        notes
            .filter(|note| note["verdict"] == "error")
            .map(|note| note["subject"].as_str().unwrap())
            .collect()
    };
    assert_eq!(blamed("P1"), ["bare"]);
    assert_eq!(blamed("P2"), ["blind"]);
    assert_eq!(blamed("P3"), ["halves"]);
    assert_eq!(blamed("P4"), ["steps"]);
    seen.says("P3", "error", &["1 time, of which 1 got one by a second command"]);
    seen.says(
        "P4",
        "error",
        &[
            "released by GET, then DEL, 1 time, of which somebody else claimed it in between 1 time",
            "quorlock explain 4",
        ],
    );
}

/// The most memory that a running process ever had, in kB.
fn peak(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

#[test]
fn a_busy_master_fills_neither_the_time_nor_the_memory_of_who_listens() {
    let stage = Stage::sound();
    let mut command = stage.command(["doctor", "--json", "--monitor", "20s"]);
    let listening = start(&mut command);
    eventually("it listens", || is_listened_to(&stage));
    let flood =
        "for i = 1, 400000 do redis.call('SET', 'k' .. i % 10000, ARGV[1], 'NX', 'PX', 60000) end return 1";
    let flooding = stage.bed[0].wire().unwrap();
    flooding.set_patience(BOUND).unwrap();
    let mut flooding = flooding;
    flooding.command(&["EVAL", flood, "0", &"v".repeat(20)]).unwrap();
    let mut most = 0;
    eventually("it has heard enough of that one", || {
        most = most.max(peak(listening.id()).unwrap_or(0));
        let clients = stage.bed[0].command(&["CLIENT", "LIST"]).unwrap().text().unwrap();
        !clients.contains(" flags=O")
    });
    let ended = end(listening, BOUND);
    Seen::of(&ended).says(
        "P4",
        "unchecked",
        &["m1 ", "listening ended after 200000 commands", "were not followed"],
    );
    assert!(most > 0 && most < 80_000, "{most} kB");
}

#[test]
fn without_the_right_to_listen_it_says_so() {
    let stage = Stage::sound();
    for master in stage.bed.masters() {
        master.command(&["ACL", "SETUSER", "default", "-monitor"]).unwrap();
    }
    let seen = stage.doctor(&["--monitor", "300ms"]);
    seen.says("P4", "unchecked", &["cannot listen", "NOPERM", "+monitor"]);
    assert_eq!(seen.code, 0);
}

#[test]
fn what_cannot_be_asked_is_refused_before_any_traffic() {
    let nowhere =
        |arguments: &[&str]| run(quorlock().env("QUORLOCK_MASTERS", "redis://127.0.0.1:1").args(arguments));
    nowhere(&["doctor", "--expect", "h"]).fails(2, &["RESOURCE"]);
    nowhere(&["doctor", ""]).fails(2, &["resource is empty"]);
    nowhere(&["doctor", "--p99", "8"]).fails(2, &["--p99", "8s"]);
    nowhere(&["doctor", "--p99", "0s"]).fails(2, &["--p99"]);
    nowhere(&["doctor", "--monitor", "5m"]).fails(2, &["--monitor", "60s"]);
    nowhere(&["doctor", "--watch", "1ms"]).fails(2, &["--watch", "100ms"]);
    run(quorlock().args(["doctor"])).fails(78, &["no masters given", "QUORLOCK_MASTERS"]);
}

#[cfg(feature = "tls")]
#[test]
fn masters_behind_tls_are_examined_and_the_fix_says_tls() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(path("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(path("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let (binary, (cert, key)) = (ServerBinary::find().unwrap(), (path("cert.pem"), path("key.pem")));
    let mut urls = Vec::new();
    let masters: Vec<LocalMaster> = (0..3)
        .map(|_| {
            let port =
                std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
            urls.push(format!("'rediss://127.0.0.1:{port}'"));
            let tls = [
                "--tls-port",
                &port,
                "--tls-cert-file",
                &cert,
                "--tls-key-file",
                &key,
                "--tls-ca-cert-file",
                &cert,
            ];
            let more = ["--tls-auth-clients", "no", "--maxmemory-policy", "allkeys-lru"];
            LocalMaster::start(&binary, &[&SOUND[..], &tls, &more].concat()).unwrap()
        })
        .collect();
    let config = path("q.toml");
    std::fs::write(
        &config,
        format!("masters = [{}]\nca = 'cert.pem'\nmaster_timeout = '2s'", urls.join(", ")),
    )
    .unwrap();
    let seen = Seen::of(&run(quorlock().args(["--config", &config, "doctor", "--json"])));
    seen.says("D01", "ok", &["3 of 3 answer"]).says(
        "D06",
        "warning",
        &[" --tls CONFIG SET maxmemory-policy noeviction"],
    );
    std::fs::write(&config, format!("masters = [{}]\nmaster_timeout = '2s'", urls.join(", "))).unwrap();
    let seen = Seen::of(&run(quorlock().args(["--config", &config, "doctor", "--json"])));
    seen.says("D01", "error", &["ertificate"]);
    assert_eq!(seen.code, 4);
    drop(masters);
}
