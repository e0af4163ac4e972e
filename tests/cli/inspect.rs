//! inspect: what stands there, and what that comes to.

use crate::stage::{Stage, plain};

#[test]
fn a_held_lock_is_shown_master_by_master() {
    let stage = Stage::new();
    let holder = stage.acquire_everywhere("a", &[]).ok().to_owned();
    let ended = stage.quorlock(["inspect", "a"]);
    let shown = ended.ok();
    assert_eq!(shown.lines().count(), 7, "{shown}");
    for (index, master) in stage.bed.masters().iter().enumerate() {
        let line = shown.lines().nth(index + 1).unwrap();
        assert!(line.starts_with(&format!("m{}", index + 1)), "{shown}");
        for word in [&master.address().to_string(), "held", &holder, " s ", "yes"] {
            assert!(line.contains(word), "{word} is missing: {shown}");
        }
    }
    let end = format!("held by {holder} on 5 of 5 masters (3 needed), valid for ");
    assert!(shown.lines().last().unwrap().starts_with(&end), "{shown}");

    let json = stage.quorlock(["inspect", "a", "--json"]).json();
    assert_eq!((&json["outcome"], json["holder"].as_str()), (&"held".into(), Some(&*holder)), "{json}");
    assert_eq!((&json["holding"], &json["needed"]), (&5.into(), &3.into()), "{json}");
    assert!((1..=30_000).contains(&json["validity_ms"].as_u64().unwrap()), "{json}");
    for master in json["masters"].as_array().unwrap() {
        assert_eq!((&master["state"], master["holder"].as_str()), (&"held".into(), Some(&*holder)));
        assert!(
            master["remaining_ms"].as_u64().unwrap() > 0 && master["round_trip_us"].as_u64().unwrap() > 0
        );
        assert!(master["abstains"].is_null() && master["error"].is_null());
    }
}

#[test]
fn every_finding_has_its_sentence() {
    let stage = Stage::new();
    let see = |finding: &str, words: &[&str]| {
        let ended = stage.quorlock(["inspect", "a"]);
        let last = ended.ok().lines().last().unwrap();
        assert!(words.iter().all(|word| last.contains(word)), "{words:?}: {ended:?}");
        let json = stage.quorlock(["inspect", "a", "--json"]).json();
        assert_eq!(json["outcome"], finding);
        json
    };
    see("free", &["free: 3 or more of 5 masters have no key"]);
    stage.set(&[1, 2], &["SET", "a", "x/1", "PX", "60000"]);
    let json = see("leftovers", &["free, with leftovers of an attempt", "on 2 of 5", "gone in", "unless"]);
    assert_eq!((&json["free"], &json["may_be_held"]), (&true.into(), &false.into()), "{json}");
    assert!((1..=60_000).contains(&json["expire_in_ms"].as_u64().unwrap()), "{json}");
    stage.set(&[2], &["SET", "a", "x/1"]);
    assert!(see("leftovers", &["never expires by itself"])["expire_in_ms"].is_null());
    stage.set(&[2, 3], &["SET", "a", "y/2", "PX", "60000"]);
    let json = see("split", &["split: keys of 2 holders", "nobody holds the lock", "gone in"]);
    assert!((1..=60_000).contains(&json["expire_in_ms"].as_u64().unwrap()), "{json}");
    stage.set(&[2, 3], &["SET", "a", "x/1"]);
    see("held", &["held by x/1 on 3 of 5 masters (3 needed), valid for"]);
    stage.set(&[1, 2], &["SET", "a", "x/1"]);
    let json = see("held", &["never expires by itself"]);
    assert_eq!(json["masters"][0]["expires"], false, "{json}");
    // The fencing token is no part of the holder.
    stage.set(&[1, 2], &["SET", "a", "x/1|41", "PX", "60000"]);
    stage.set(&[3], &["SET", "a", "x/1|42", "PX", "60000"]);
    // Each master has a number of its own; the token is what a quorum of them agrees on.
    let json = see("held", &["held by x/1 on 3 of 5 masters (3 needed), valid for"]);
    assert_eq!((&json["holder"], &json["masters"][0]["fence"]), (&"x/1".into(), &41.into()));
    assert!(json["fence"].is_null(), "{json}");
    stage.set(&[3], &["SET", "a", "x/1|41", "PX", "60000"]);
    let json = see("held", &["held by x/1 with fencing token 41 on 3 of 5 masters (3 needed), valid for"]);
    assert_eq!(json["fence"], 41, "{json}");
    for master in stage.bed.masters() {
        master.command(&["DEL", "a"]).unwrap();
        master.command(&["HSET", "a", "field", "1"]).unwrap();
    }
    let json = see("foreign", &["foreign: 5 of 5 masters have a key there that is no string"]);
    assert_eq!(json["masters"][4]["state"], "other_type", "{json}");
}

#[test]
fn all_kinds_of_keys_are_told_apart_in_one_table() {
    let stage = Stage::new();
    let holder = "web-3:1842/0f2c3a4b-1111-4222-8333-123456789abc";
    stage.set(&[1], &["SET", "a", &format!("{holder}|17"), "PX", "60000"]);
    stage.set(&[2], &["SET", "a", "1"]);
    stage.set(&[3], &["SET", "a", "d41d8cd98f00b204e9800998ecf8427e", "PX", "60000"]);
    stage.set(&[4], &["HSET", "a", "field", "1"]);
    stage.bed[4].kill().unwrap();
    let ended = stage.quorlock(["inspect", "a"]);
    insta::assert_snapshot!("kinds", plain(&stage, ended.ok()));
    assert!(ended.ok().contains(holder));
    let json = stage.quorlock(["inspect", "a", "--json"]).json();
    let pretty = serde_json::to_string_pretty(&json).unwrap();
    insta::assert_snapshot!("kinds_json", plain(&stage, &pretty));
}

#[test]
fn a_key_that_may_be_held_where_nobody_can_look_is_told() {
    let stage = Stage::new();
    stage.set(&[1, 2], &["SET", "a", "x/1", "PX", "60000"]);
    stage.bed[4].kill().unwrap();
    let ended = stage.quorlock(["inspect", "a"]);
    assert!(
        ended.ok().lines().last().unwrap().starts_with("cannot tell: if the masters that are not seen"),
        "{ended:?}"
    );
    assert_eq!(stage.quorlock(["inspect", "a", "--json"]).json()["may_be_held"], true);
}

#[test]
fn masters_that_cannot_be_seen_are_named_and_two_of_five_are_no_quorum() {
    let stage = Stage::new();
    stage.bed[0].kill().unwrap();
    stage.bed[1].kill().unwrap();
    let ended = stage.quorlock(["inspect", "a"]);
    assert!(ended.ok().contains("unseen") && ended.ok().contains("refused"), "{ended:?}");
    stage.bed[2].kill().unwrap();
    let ended = stage.quorlock(["inspect", "a", "--json"]);
    assert_eq!(ended.code, 69, "{ended:?}");
    let json = ended.json();
    assert_eq!((&json["outcome"], &json["masters"][0]["state"]), (&"no_quorum".into(), &"unseen".into()));
    assert!(json["masters"][0]["error"].as_str().unwrap().contains("refused"), "{json}");
}

#[test]
fn fresh_masters_abstain_and_looking_writes_nothing() {
    let stage = Stage::fresh();
    let ended = stage.quorlock(["inspect", "a"]);
    assert_eq!(ended.ok().matches("not admitted").count(), 5, "{ended:?}");
    for master in stage.bed.masters() {
        assert_eq!(master.keys().unwrap(), Vec::<Vec<u8>>::new());
    }
    // A claimer asks for votes, and so begins the quarantine.
    stage.quorlock(["acquire", "a", "--wait", "0s"]).fails(69, &[]);
    let json = stage.quorlock(["inspect", "a", "--json"]).json();
    let abstains = json["masters"].as_array().unwrap().iter().map(|master| &master["abstains"]);
    let left = abstains.filter_map(|abstains| abstains["quarantined_ms"].as_u64()).max().unwrap();
    assert!((1..=60_602).contains(&left), "{json}");
}
