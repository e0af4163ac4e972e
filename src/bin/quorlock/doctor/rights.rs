//! D13: what this user may do.

use quorlock::Survey;

use super::finding::{Finding, Verdict};
use super::locks::Look;
use super::masters::seen;
use super::paste::{cli, word};
use super::servers::unchecked;

/// Without them waiting is by polling.
const TO_BE_TOLD: [&str; 2] = ["client|caching", "client|tracking"];
/// Without them all who wait for a lock get into each other's way.
const TO_STAND_IN_LINE: [&str; 4] = ["zadd", "zrange", "zrank", "zremrangebyrank"];
/// Nobody misses them who wants no tokens.
const TO_FENCE: [&str; 2] = ["hgetall", "time"];

pub(crate) fn check(survey: &Survey, looks: &[Look]) -> Finding {
    let mut finding = Finding::of("D13", "this user may give all commands that a lock needs");
    for (name, master, facts) in seen(survey) {
        let missing = match &facts.missing_rights {
            Ok(missing) => missing,
            Err(untold) => {
                unchecked(&mut finding, &name, master, "its ACL", untold);
                continue;
            }
        };
        let of = |wanted: &dyn Fn(&&str) -> bool| -> Vec<&str> {
            missing.iter().map(String::as_str).filter(wanted).collect()
        };
        let all_but = [&TO_BE_TOLD[..], &TO_STAND_IN_LINE, &TO_FENCE].concat();
        let needed = of(&|right| !all_but.contains(right));
        let kinds = [
            (Verdict::Error, needed, ""),
            (Verdict::Warning, of(&|right| TO_BE_TOLD.contains(right)), ": its clients wait by polling"),
            (
                Verdict::Warning,
                of(&|right| TO_STAND_IN_LINE.contains(right)),
                ": its clients wait in no order",
            ),
            (Verdict::Ok, of(&|right| TO_FENCE.contains(right)), ": no fencing tokens (--fence)"),
        ];
        for (verdict, lacking, then) in kinds.into_iter().filter(|(_, lacking, _)| !lacking.is_empty()) {
            finding.note(verdict, &name, format!("this user may not: {}{then}", lacking.join(", ")));
            if verdict > Verdict::Ok {
                let rights = lacking.iter().map(|right| format!("+{right}")).collect::<Vec<_>>().join(" ");
                finding.fix(cli(master, &format!("ACL SETUSER your-user {rights}")));
            }
        }
        // What a master says of several keys does not tell which of them is meant.
        let nth = survey.masters.iter().position(|other| std::ptr::eq(other, master)).unwrap_or_default();
        for look in looks {
            let said = look.inspection.sightings.get(nth).map(|sighting| &sighting.key);
            if matches!(said, Some(Err(why)) if why.starts_with("NOPERM") && why.contains("key")) {
                finding.note(
                    Verdict::Error,
                    &name,
                    format!("this user may not touch the key {}", look.shown),
                );
                let right = word(&[b"~", &look.resource[..]].concat());
                finding.fix(cli(master, &format!("ACL SETUSER your-user {right}")));
            }
        }
    }
    finding
}
