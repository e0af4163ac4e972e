//! What fred gives back, as a vote: the table of fred.md section 8.

use ::fred::error::{Error, ErrorKind};
use ::fred::types::Value;
use bytes::Bytes;

use crate::protocol::fanout::{Act, Dispatch, Fence};
use crate::protocol::votes::{Fault, Incumbent, Vote};
use crate::transport::script::{self, Said};

/// The answer to a plain `SET … NX`.
pub(super) fn plain_claim(reply: Result<Value, Error>) -> Vote {
    match reply {
        Ok(Value::Null) => Vote::Held(Incumbent::default()),
        Ok(value) if value.as_bytes() == Some(b"OK") => Vote::Granted,
        Ok(value) => Vote::Unknown(Fault::Unintelligible(format!("{:?}", value.kind()).into())),
        Err(error) => fault(&error, script::refusal),
    }
}

/// The answer to a compare-and-delete that travelled alone.
pub(super) fn lone_release(reply: Result<Value, Error>) -> Vote {
    match reply {
        Ok(said) => one(Act::Release, &said),
        Err(error) => fault(&error, script::refusal),
    }
}

/// The answer to a batch of `count` acts: a list of as many answers, or the same vote for all.
pub(super) fn batch(reply: Result<Value, Error>, count: usize) -> Result<Vec<Value>, Vote> {
    match reply {
        Ok(Value::Array(said)) if said.len() == count => Ok(said),
        Ok(Value::Array(said)) => {
            let what = format!("{} answers to {count} questions", said.len());
            Err(Vote::Unknown(Fault::Unintelligible(what.into())))
        }
        Ok(value) => Err(Vote::Unknown(Fault::Unintelligible(format!("{:?}", value.kind()).into()))),
        Err(error) => Err(fault(&error, script::batch_refusal)),
    }
}

/// The number that the key of a fenced claim took, or of those who stand before one in line. Such acts have no other yes.
pub(super) fn number(dispatch: &Dispatch, said: &Value) -> Option<u64> {
    match (dispatch.act, dispatch.fence) {
        (Act::QueueUp, _) | (_, Some(Fence::Propose(_))) => script::number(read(said)),
        _ => None,
    }
}

/// One answer.
pub(super) fn one(act: Act, said: &Value) -> Vote {
    sound(act, script::vote(read(said)))
}

/// One answer out of a batch, for an act on several keys.
pub(super) fn on_all(act: Act, said: &Value, keys: &[Bytes]) -> Vote {
    sound(act, script::vote_on_all(read(said), keys))
}

fn read(said: &Value) -> Said<'_> {
    match said {
        Value::Integer(number) => Said::Number(*number),
        value => value.as_bytes().map_or(Said::Nonsense, Said::Text),
    }
}

fn sound(act: Act, vote: Vote) -> Vote {
    match vote {
        // Only renewals and releases may find the key missing; a claim that says so is nonsense.
        Vote::Absent if matches!(act, Act::Claim | Act::Watch | Act::Heal) => {
            Vote::Unknown(Fault::Unintelligible("no such key, after SET".into()))
        }
        vote => vote,
    }
}

/// Whether the master did not know the script.
pub(super) fn is_noscript(reply: &Result<Value, Error>) -> bool {
    matches!(reply, Err(error) if script::is_one_of(error.details(), &["NOSCRIPT"]))
}

/// Whether the user may not touch one of the keys, for which the master refuses a call with all its keys.
pub(super) fn is_forbidden_key(reply: &Result<Value, Error>) -> bool {
    let is = |words: &str| script::is_one_of(words, &["NOPERM"]) && words.contains("key");
    matches!(reply, Err(error) if is(error.details()))
}

/// Whether nothing came back in time.
pub(super) fn is_timeout(reply: &Result<Value, Error>) -> bool {
    matches!(reply, Err(error) if *error.kind() == ErrorKind::Timeout)
}

/// A reason in one line, for a connection that could not be made.
pub(super) fn reason(error: &Error) -> String {
    match error.kind() {
        ErrorKind::Timeout => "no answer in time".to_owned(),
        _ => in_words(error.details()).to_owned(),
    }
}

/// fred tells errors of the system as `Os { code: 111, kind: ConnectionRefused, message: "Connection refused" }`.
fn in_words(details: &str) -> &str {
    let message = || details.strip_prefix("Os {")?.split_once("message: \"")?.1.strip_suffix("\" }");
    message().unwrap_or_else(|| details.trim_end())
}

fn fault(error: &Error, server_said: impl Fn(&str) -> Vote) -> Vote {
    let words = error.details();
    match error.kind() {
        ErrorKind::Timeout => Vote::Unknown(Fault::TimedOut),
        // fred refused to send, as the connection was already known to be gone.
        ErrorKind::Canceled if words == "Connection closed unexpectedly." => {
            Vote::Failed(Fault::NotConnected("the connection was lost".into()))
        }
        ErrorKind::IO | ErrorKind::Canceled => Vote::Unknown(Fault::Broken(in_words(words).into())),
        ErrorKind::Protocol | ErrorKind::Parse | ErrorKind::NotFound => {
            Vote::Unknown(Fault::Unintelligible(words.trim_end().into()))
        }
        _ => server_said(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(kind: ErrorKind, words: &'static str) -> Result<Value, Error> {
        Err(Error::new(kind, words))
    }

    #[test]
    fn only_ok_is_a_grant_and_only_nil_is_a_refusal() {
        assert_eq!(plain_claim(Ok(Value::from("OK"))), Vote::Granted);
        assert_eq!(plain_claim(Ok(Value::Null)), Vote::Held(Incumbent::default()));
        for nonsense in [Value::from("QUEUED"), Value::from(1), Value::Array(vec![]), Value::from(true)] {
            assert!(matches!(plain_claim(Ok(nonsense)), Vote::Unknown(_)));
        }
    }

    #[test]
    fn an_error_is_certain_only_where_the_table_says_so() {
        for words in ["NOAUTH Authentication required.", "OOM x", "MISCONF x", "NOPERM x", "READONLY x"] {
            assert!(matches!(plain_claim(error(ErrorKind::Unknown, words)), Vote::Failed(_)), "{words}");
        }
        for (kind, words) in [
            (ErrorKind::Timeout, "Request timed out."),
            (ErrorKind::IO, "Connection closed."),
            (ErrorKind::Canceled, "canceled"),
            (ErrorKind::Protocol, "nonsense"),
            (ErrorKind::Unknown, "ERR something new"),
            (ErrorKind::Unknown, "Failed to send command to router."),
        ] {
            assert!(matches!(plain_claim(error(kind, words)), Vote::Unknown(_)), "{words}");
        }
    }

    #[test]
    fn errors_of_the_system_are_told_in_words() {
        let words = r#"Os { code: 111, kind: ConnectionRefused, message: "Connection refused" }"#;
        assert_eq!(reason(&Error::new(ErrorKind::IO, words)), "Connection refused");
        assert_eq!(reason(&Error::new(ErrorKind::IO, "Os { odd")), "Os { odd");
    }

    #[test]
    fn a_batch_is_judged_key_by_key_or_not_at_all() {
        let three = || Value::Array(vec![Value::from(1), Value::from("!OOM x"), Value::from(2)]);
        let said = batch(Ok(three()), 3).expect("as many answers as questions");
        assert_eq!(one(Act::Release, &said[0]), Vote::Granted);
        assert!(matches!(one(Act::Claim, &said[1]), Vote::Failed(_)));
        assert!(matches!(one(Act::Renew, &said[2]), Vote::Held(_)));
        assert!(matches!(one(Act::Claim, &Value::from(0)), Vote::Unknown(_)));
        assert!(matches!(batch(Ok(three()), 4), Err(Vote::Unknown(_))));
        assert!(matches!(batch(error(ErrorKind::Unknown, "BUSY x"), 1), Err(Vote::Failed(_))));
        assert!(matches!(batch(error(ErrorKind::Unknown, "OOM x"), 1), Err(Vote::Unknown(_))));
        assert!(is_noscript(&error(ErrorKind::Unknown, "NOSCRIPT No matching script.")));
    }
}
