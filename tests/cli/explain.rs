//! explain: the pitfalls in two languages, without any master.

use crate::stage::{quorlock, run};

fn explain(arguments: &[&str]) -> String {
    run(quorlock().arg("explain").args(arguments)).ok().to_owned()
}

fn is_chinese(text: &str) -> bool {
    text.chars().filter(|letter| ('\u{4e00}'..='\u{9fff}').contains(letter)).count() > 5
}

#[test]
fn each_pitfall_has_a_page_in_both_languages() {
    for pitfall in ["1", "2", "3", "4", "5"] {
        let english = explain(&[pitfall]);
        for word in ["Pitfall", "Symptom", "Evidence", "Repair", "quorlock ", "redis-cli "] {
            assert!(english.contains(word), "{word}: {english}");
        }
        let chinese = explain(&[pitfall, "--lang", "zh"]);
        for word in ["坑", "现象", "取证", "修复", "quorlock ", "redis-cli "] {
            assert!(chinese.contains(word), "{word}: {chinese}");
        }
        assert!(is_chinese(&chinese) && !is_chinese(&english));
        assert_eq!(explain(&[&format!("P{pitfall}")]), english);
        let json = run(quorlock().args(["explain", pitfall, "--json"])).json();
        assert!(
            json["id"] == format!("P{pitfall}") && english.contains(json["text"].as_str().unwrap()),
            "{json}"
        );
    }
}

#[test]
fn each_check_of_doctor_is_told_and_all_are_listed() {
    let (english, chinese) = (explain(&[]), explain(&["--lang", "zh"]));
    for nth in 1..=16 {
        let id = format!("D{nth:02}");
        assert!(english.contains(&id) && chinese.contains(&id), "{english}");
        assert!(explain(&[&id]).starts_with(&id) && is_chinese(&explain(&[&id, "--lang", "zh"])));
    }
    assert_eq!(explain(&["d07"]), explain(&["D07"]));
    assert!(english.contains("Pitfall 5") && is_chinese(&chinese));
    let json = run(quorlock().args(["explain", "--json"])).json();
    assert_eq!(json["topics"].as_array().unwrap().len(), 21);
}

#[test]
fn an_unknown_topic_or_language_is_refused_with_what_there_is() {
    run(quorlock().args(["explain", "6"])).fails(2, &["\"6\"", "1 to 5", "D01 to D16"]);
    run(quorlock().args(["explain", "D17"])).fails(2, &["\"D17\""]);
    run(quorlock().args(["explain", "1", "--lang", "fr"])).fails(2, &["--lang", "en", "zh"]);
}

/// Whoever pastes a command from a page gets one that exists.
#[test]
fn every_command_of_ours_in_the_pages_is_understood() {
    for pitfall in ["1", "2", "3", "4", "5"] {
        for lang in ["en", "zh"] {
            let page = explain(&[pitfall, "--lang", lang]);
            let commands: Vec<&str> =
                page.lines().map(str::trim).filter(|line| line.starts_with("quorlock ")).collect();
            assert!(!commands.is_empty(), "{page}");
            for command in commands {
                let ours = command.split('|').next().unwrap().replacen(
                    "quorlock",
                    env!("CARGO_BIN_EXE_quorlock"),
                    1,
                );
                let mut shell = std::process::Command::new("bash");
                shell.env_remove("QUORLOCK_MASTERS").args(["-c", &ours]);
                // It gets as far as looking for masters.
                run(&mut shell).fails(78, &["no masters given"]);
            }
        }
    }
}
