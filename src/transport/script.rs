//! Acts as Lua arguments, and what the script says as votes.

use std::time::Duration;

use bytes::Bytes;

use crate::protocol::fanout::{Act, Dispatch, Fence};
use crate::protocol::fencing;
use crate::protocol::votes::{Fault, Incumbent, Remaining, Vote};

/// The most keys one call of the script may touch, so that no master is held for a millisecond.
pub(crate) const MOST_KEYS: usize = 64;

/// The most bytes of keys and holders in one call that asks share, for the same end: a script copies each of them several
/// times. So many take some 0.4 ms, four times as many 1.5 ms.
pub(crate) const MOST_BYTES: usize = 32 * 1024;

/// The script that does many acts in one call.
pub(crate) const ACT: &str = include_str!("lua/act.lua");

/// The script for one release, which answers the same.
pub(crate) const RELEASE: &str = include_str!("lua/release.lua");

/// The script for a release and the claim of the same key that follows it.
pub(crate) const PASS: &str = include_str!("lua/pass.lua");

/// The script for many acts in one call, each on several keys, all or none.
pub(crate) const ALL: &str = include_str!("lua/all.lua");

/// The script for the lines of clients that wait.
pub(crate) const LINE: &str = include_str!("lua/line.lua");

/// The hash of a master's fencing counters: a field for each shard, and `run`, the process that knows them all.
pub(crate) const COUNTERS: &str = "quorlock:fence";

/// One letter an act, as `act.lua` reads it; another for those that have to do with a counter.
pub(crate) const fn letter(dispatch: &Dispatch) -> &'static str {
    match (dispatch.act, dispatch.fence) {
        (Act::Claim, None) => "c",
        (Act::Claim, Some(_)) => "C",
        (Act::Watch, None) => "w",
        (Act::Watch, Some(_)) => "W",
        (Act::Raise, _) => "R",
        (Act::Renew, _) => "x",
        (Act::Heal, None) => "h",
        (Act::Heal, Some(_)) => "H",
        (Act::Release, _) => "d",
        (Act::QueueUp, _) => "q",
        (Act::Overtake, _) => "o",
        (Act::Leave, _) => "l",
    }
}

/// Holder, shards and number in one argument, for an act that has to do with counters. `|` is in no holder id.
pub(crate) fn fenced_holder(holder: &[u8], keys: &[Bytes], fence: Fence) -> Vec<u8> {
    let shards: Vec<String> = keys.iter().map(|key| fencing::shard(key).to_string()).collect();
    let shards = shards.join(",");
    let rest = match fence {
        Fence::Propose(number) => format!("|{shards}|{number}"),
        Fence::Raise { seen, to } => format!("|{seen}|{shards}|{to}"),
        Fence::Restore(token) => format!("|{shards}|{token}"),
    };
    [holder, rest.as_bytes()].concat()
}

/// The number that came with a grant, to a claim that is fenced or of a place in line.
pub(crate) fn number(said: Said<'_>) -> Option<u64> {
    let Said::Text([b'+', digits @ ..]) = said else { return None };
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// What the script said about one key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Said<'a> {
    Number(i64),
    Text(&'a [u8]),
    Nonsense,
}

pub(crate) fn vote(said: Said<'_>) -> Vote {
    match said {
        Said::Number(1) => Vote::Granted,
        Said::Number(0) => Vote::Absent,
        Said::Number(2) => Vote::Held(Incumbent::default()),
        Said::Text([b'=', told @ ..]) => incumbent(told).map_or_else(|| nonsense(&said), Vote::Held),
        Said::Text(b"~") => Vote::Failed(Fault::Uncounted("its counters are not looked after yet".into())),
        Said::Text([b'!', words @ ..]) => refusal(&String::from_utf8_lossy(words)),
        _ => nonsense(&said),
    }
}

/// What `all.lua` said of `keys`: `<nth>=<pttl> <holder>` names the one in the way.
pub(crate) fn vote_on_all(said: Said<'_>, keys: &[Bytes]) -> Vote {
    let Said::Text(text) = said else { return vote(said) };
    let Some(equals) = text.iter().position(|byte| *byte == b'=') else { return vote(said) };
    let (nth, told) = text.split_at(equals);
    let nth = std::str::from_utf8(nth).ok().and_then(|nth| nth.parse::<usize>().ok());
    let Some(key) = nth.and_then(|nth| keys.get(nth.checked_sub(1)?)) else {
        return if text.starts_with(b"!") { vote(said) } else { nonsense(&said) };
    };
    match vote(Said::Text(told)) {
        Vote::Held(held) => Vote::Held(Incumbent { resource: Some(key.as_ref().into()), ..held }),
        _ => nonsense(&said),
    }
}

/// `<pttl> <holder>`; an empty holder is a key of another type.
fn incumbent(told: &[u8]) -> Option<Incumbent> {
    let space = told.iter().position(|byte| *byte == b' ')?;
    let (pttl, holder) = (&told[..space], &told[space + 1..]);
    let remaining = match std::str::from_utf8(pttl).ok()?.parse::<i64>().ok()? {
        -1 => Remaining::Forever,
        pttl => Remaining::For(Duration::from_millis(u64::try_from(pttl).unwrap_or(0))),
    };
    let holder = (!holder.is_empty()).then(|| holder.into());
    Some(Incumbent { holder, remaining, ..Incumbent::default() })
}

/// First words of errors that mean: nothing of this command was applied (fred.md section 8).
const DEFINITE_REFUSALS: [&str; 16] = [
    "NOAUTH",
    "WRONGPASS",
    "READONLY",
    "LOADING",
    "OOM",
    "NOSCRIPT",
    "BUSY",
    "MISCONF",
    "WRONGTYPE",
    "MOVED",
    "ASK",
    "CLUSTERDOWN",
    "NOPERM",
    "NOREPLICAS",
    "MASTERDOWN",
    "DENIED",
];

/// An error of one command. What is not a definite refusal may have been applied (rule 7).
pub(crate) fn refusal(words: &str) -> Vote {
    let fault = Fault::Refused(words.trim_end().into());
    if is_one_of(words, &DEFINITE_REFUSALS) || words.starts_with("ERR unknown command") {
        Vote::Failed(fault)
    } else {
        Vote::Unknown(fault)
    }
}

/// An error of a whole batch: only these say that the script did not run at all.
pub(crate) fn batch_refusal(words: &str) -> Vote {
    let fault = Fault::Refused(words.trim_end().into());
    if is_one_of(words, &["NOSCRIPT", "NOAUTH", "NOPERM", "LOADING", "BUSY"])
        || words.starts_with("ERR unknown command")
    {
        Vote::Failed(fault)
    } else {
        Vote::Unknown(fault)
    }
}

/// Whether the words say that this connection leads to no master any more, or not yet.
pub(crate) fn closes_link(words: &str) -> bool {
    is_one_of(words, &["READONLY", "LOADING", "MASTERDOWN", "NOAUTH"])
}

pub(crate) fn is_one_of(words: &str, first_words: &[&str]) -> bool {
    words.split_whitespace().next().is_some_and(|first| first_words.contains(&first))
}

fn nonsense(said: &Said<'_>) -> Vote {
    let what = match said {
        Said::Number(number) => number.to_string(),
        Said::Text(text) => crate::protocol::request::printable(text),
        Said::Nonsense => "neither number nor text".to_owned(),
    };
    Vote::Unknown(Fault::Unintelligible(what.into()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_a_plain_yes_is_a_grant() {
        assert_eq!(vote(Said::Number(1)), Vote::Granted);
        for number in [-2, -1, 0, 2, 3, i64::MAX] {
            assert_ne!(vote(Said::Number(number)), Vote::Granted);
        }
        for text in ["", "1", "OK", "=", "=x", "=-1", "=5 ", "=5 web/1", "!", "!OOM x", "!ERR x", "\u{fffd}"]
        {
            assert_ne!(vote(Said::Text(text.as_bytes())), Vote::Granted, "{text}"); // case B73
        }
    }

    #[test]
    fn a_refusal_tells_who_and_how_long() {
        let told = |text: &str| vote(Said::Text(text.as_bytes()));
        let held = |holder: Option<&str>, remaining| {
            let holder = holder.map(|holder| holder.as_bytes().into());
            Vote::Held(Incumbent { holder, remaining, ..Incumbent::default() })
        };
        let for_millis = |millis| Remaining::For(Duration::from_millis(millis));
        assert_eq!(told("=1500 web-3:1842/x y"), held(Some("web-3:1842/x y"), for_millis(1500)));
        assert_eq!(told("=-1 lock"), held(Some("lock"), Remaining::Forever));
        assert_eq!(told("=-2 "), held(None, for_millis(0)));
        assert!(matches!(told("=soon lock"), Vote::Unknown(Fault::Unintelligible(_))));
    }

    #[test]
    fn a_refusal_of_several_names_the_one_in_the_way() {
        let keys = [Bytes::from("a"), Bytes::from("b")];
        let told = |text: &str| vote_on_all(Said::Text(text.as_bytes()), &keys);
        let held = told("2=1500 web-3:1842/x=y");
        assert_eq!(held.to_string(), r#""b" held by web-3:1842/x=y for 1.5 s more"#);
        assert!(matches!(told("!OOM used memory = much"), Vote::Failed(_)));
        assert_eq!(vote_on_all(Said::Number(1), &keys), Vote::Granted);
        for nonsense in
            ["", "2", "=1500 x", "0=1500 x", "3=1500 x", "-1=1500 x", "2=x", "2!OOM", "1=", "2=!OOM"]
        {
            assert!(matches!(told(nonsense), Vote::Unknown(Fault::Unintelligible(_))), "{nonsense}");
        }
    }

    #[test]
    fn what_is_not_surely_refused_may_have_been_applied() {
        assert!(matches!(refusal("OOM command not allowed"), Vote::Failed(_)));
        assert!(matches!(refusal("READONLY You can't write"), Vote::Failed(_)));
        assert!(matches!(refusal("ERR unknown command 'SET'"), Vote::Failed(_)));
        for words in ["", "ERR", "ERR Error running script", "OOMPH", "EXECABORT", "soon LOADING"] {
            assert!(matches!(refusal(words), Vote::Unknown(_)), "{words}");
        }
        assert!(matches!(batch_refusal("OOM command not allowed"), Vote::Unknown(_)));
        assert!(matches!(batch_refusal("BUSY Redis is busy"), Vote::Failed(_)));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

        #[test]
        fn no_nonsense_is_a_grant(number: i64, text: Vec<u8>, words in "(?s).{0,40}", mark in "[=!]?") {
            prop_assert_eq!(vote(Said::Number(number)) == Vote::Granted, number == 1);
            let marked = [mark.as_bytes(), &text].concat();
            for text in [text.as_slice(), &marked, words.as_bytes()] {
                let on_all = vote_on_all(Said::Text(text), &[Bytes::from("a"), Bytes::from("b")]);
                prop_assert!(!matches!(on_all, Vote::Granted | Vote::Absent), "{:?} for {:?}", on_all, text);
                let said = vote(Said::Text(text));
                prop_assert!(!matches!(said, Vote::Granted | Vote::Absent), "{:?} for {:?}", said, text);
                // Only a text with its mark says that somebody else has the key, or that nothing was applied.
                let held = matches!(said, Vote::Held(_));
                prop_assert!(!held || text.starts_with(b"="), "{:?} for {:?}", said, text);
                let failed = matches!(said, Vote::Failed(_));
                prop_assert!(!failed || text.starts_with(b"!") || text == b"~", "{:?} for {:?}", said, text);
            }
            for said in [refusal(&words), batch_refusal(&words)] {
                prop_assert!(matches!(said, Vote::Failed(_) | Vote::Unknown(_)), "{:?}", said);
            }
            // What refuses a whole batch refuses one command.
            let (whole, one) = (batch_refusal(&words), refusal(&words));
            prop_assert!(!matches!(whole, Vote::Failed(_)) || matches!(one, Vote::Failed(_)), "{:?}", words);
        }
    }
}
