//! inspect: what stands there, and what that comes to.

use crate::stage::Stage;

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
    let see = |finding: &str, words: &str| {
        let ended = stage.quorlock(["inspect", "a"]);
        assert!(ended.ok().lines().last().unwrap().contains(words), "{words:?}: {ended:?}");
        assert_eq!(stage.quorlock(["inspect", "a", "--json"]).json()["outcome"], finding);
    };
    see("free", "free");
    stage.set(&[1, 2], &["SET", "a", "x/1", "PX", "60000"]);
    see("free", "an attempt that failed");
    stage.set(&[3], &["SET", "a", "y/2", "PX", "60000"]);
    see("split", "several holders");
    stage.set(&[3], &["SET", "a", "x/1"]);
    see("held", "held by x/1 on 3 of 5 masters (3 needed), valid for");
    stage.set(&[1, 2], &["SET", "a", "x/1"]);
    see("held", "never expires by itself");
    for master in stage.bed.masters() {
        master.command(&["DEL", "a"]).unwrap();
        master.command(&["HSET", "a", "field", "1"]).unwrap();
    }
    see("held", "a key of another type");
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
