//! list: which locks there are, over all masters.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::stage::{Ended, Stage, plain};

const HOLDER: &str = "web-3:1842/0f2c3a4b-1111-4222-8333-123456789abc";

fn locks(ended: &Ended) -> Vec<Value> {
    let object = ended.json();
    assert_eq!(object["outcome"], "listed", "{ended:?}");
    object["locks"].as_array().unwrap().clone()
}

#[test]
fn locks_are_listed_with_holder_votes_and_remaining_time() {
    let stage = Stage::new();
    let all = [1, 2, 3, 4, 5];
    stage.set(&all, &["SET", "order:1", HOLDER, "PX", "60000"]);
    stage.set(&all[..3], &["SET", "order:2", &format!("{HOLDER}|17"), "PX", "60000"]);
    stage.set(&all, &["SET", "stuck", "1"]);
    stage.set(&all[..2], &["SET", "left over", HOLDER, "PX", "60000"]);
    stage.set(&all, &["HSET", "a hash", "field", "1"]);
    let ended = stage.quorlock(["list"]);
    insta::assert_snapshot!("list", plain(&stage, ended.ok()));
    assert!(ended.err.contains("1 without a ttl") && ended.err.contains("quorlock explain 3"), "{ended:?}");
    assert!(ended.ok().contains(HOLDER) && !ended.out.contains("quorlock:") && !ended.out.contains("a hash"));

    let listed = locks(&stage.quorlock(["list", "--json"]));
    let names: Vec<&str> = listed.iter().map(|line| line["resource"].as_str().unwrap()).collect();
    assert_eq!(names, ["left over", "order:1", "order:2", "stuck"]);
    let text: Vec<String> = listed.iter().map(|line| serde_json::to_string_pretty(line).unwrap()).collect();
    insta::assert_snapshot!("list_json", plain(&stage, &text.join("\n")));

    let listed = locks(&stage.quorlock(["list", "order:*", "--json"]));
    assert_eq!(listed.len(), 2);
    assert!((1..=60_000).contains(&listed[0]["remaining_ms"].as_u64().unwrap()), "{listed:?}");
    let none = stage.quorlock(["list", "nobody:*"]);
    assert!(none.ok().is_empty() && none.err.contains("no string keys match"), "{none:?}");
}

#[test]
fn a_long_list_ends_with_a_notice() {
    let stage = Stage::new();
    for nth in 0..700 {
        stage.set(&[1 + nth % 5], &["SET", &format!("k{nth:04}"), HOLDER, "PX", "60000"]);
    }
    let all = stage.quorlock(["list", "--json"]);
    assert_eq!(locks(&all).len(), 700);
    assert_eq!((&all.json()["complete"], all.err.as_str()), (&true.into(), ""));
    let some = stage.quorlock(["list", "--json", "--limit", "100"]);
    assert_eq!(locks(&some).len(), 100);
    assert_eq!(some.json()["complete"], false);
    assert!(some.err.contains("more than these 100") && some.err.contains("--limit"), "{some:?}");
}

#[test]
fn masters_are_searched_gently() {
    let stage = Stage::new();
    let fill = "for i = 1, 5000 do redis.call('SET', 'k' .. i, ARGV[1], 'PX', 60000) end return 1";
    stage.set(&[1], &["EVAL", fill, "0", HOLDER]);
    stage.set(&[1], &["CONFIG", "RESETSTAT"]);
    let began = Instant::now();
    // No key is looked at, so that only the search takes time.
    let ended = stage.quorlock(["list", "nobody:*", "--json"]);
    let took = began.elapsed();
    assert_eq!(locks(&ended), Vec::<Value>::new());
    let info = stage.bed[0].info().unwrap();
    let calls = |command: &str| -> Option<usize> {
        let stats = info.get(&format!("cmdstat_{command}"))?;
        stats.strip_prefix("calls=")?.split(',').next()?.parse().ok()
    };
    // 250 keys a call, or hardly more, and 10 ms between two calls.
    let scans = calls("scan").unwrap();
    assert!((15..=40).contains(&scans), "{scans}");
    assert!(
        took >= Duration::from_millis(10) * u32::try_from(scans - 1).unwrap(),
        "{took:?} for {scans} calls"
    );
    assert_eq!((calls("keys"), calls("getrange")), (None, None));
    assert_eq!(locks(&stage.quorlock(["list", "--json", "--limit", "10000"])).len(), 5000);
}

#[test]
fn odd_names_and_long_values_do_no_harm() {
    let stage = Stage::new();
    let long = "x".repeat(100_000);
    stage.set(&[1, 2, 3], &["SET", "sp ace\n", &long, "PX", "60000"]);
    stage.set(&[1, 2, 3], &["SET", "empty", "", "PX", "60000"]);
    let ended = stage.quorlock(["list"]);
    let shown: Vec<&str> = ended.ok().lines().collect();
    assert_eq!(shown.len(), 3, "{ended:?}");
    assert!(shown[1].starts_with("empty") && shown[2].starts_with(r"sp ace\n"), "{ended:?}");
    assert!(ended.out.len() < 10_000, "the whole value was shown");
}

#[test]
fn masters_that_cannot_be_searched_are_named_and_two_are_no_quorum() {
    let stage = Stage::new();
    stage.set(&[1, 2, 3, 4, 5], &["SET", "a", HOLDER, "PX", "60000"]);
    stage.set(&[1], &["ACL", "SETUSER", "default", "-scan"]);
    stage.bed[1].kill().unwrap();
    let ended = stage.quorlock(["list", "--json"]);
    assert_eq!(locks(&ended)[0]["outcome"], "held", "{ended:?}");
    for word in [&stage.bed[0].address().to_string(), "+scan", &stage.bed[1].address().to_string(), "refused"]
    {
        assert!(ended.err.contains(word), "{word}: {ended:?}");
    }
    let unseen = ended.json()["unseen"].clone();
    assert_eq!(unseen.as_array().unwrap().len(), 2, "{unseen}");
    assert!(unseen[0]["why"].as_str().unwrap().contains("+scan"), "{unseen}");
    stage.bed[2].kill().unwrap();
    let ended = stage.quorlock(["list", "--json"]);
    assert_eq!((ended.code, ended.json()["outcome"].as_str()), (69, Some("no_quorum")), "{ended:?}");
    assert_eq!(ended.json()["locks"][0]["resource"], "a", "{ended:?}");
    stage.quorlock(["list"]).fails(69, &["no quorum", "2 of 5"]);
}
