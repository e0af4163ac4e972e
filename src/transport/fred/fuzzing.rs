//! What the fuzz targets of `tests/fuzz` reach of what is private here. Built for them and for our tests alone.

use ::fred::error::{Error, ErrorKind};
use ::fred::types::Value;

use super::classify;
use super::endpoint::{Encryption, Endpoint};
use super::info::MasterInfo;
use crate::protocol::fanout::Act;
use crate::protocol::votes::Vote;

const SECRET: &str = "hunter2";
const KINDS: [ErrorKind; 8] = [
    ErrorKind::Unknown,
    ErrorKind::IO,
    ErrorKind::Timeout,
    ErrorKind::Canceled,
    ErrorKind::Protocol,
    ErrorKind::Auth,
    ErrorKind::InvalidCommand,
    ErrorKind::Cluster,
];
const ACTS: [Act; 5] = [Act::Claim, Act::Watch, Act::Renew, Act::Heal, Act::Release];

/// Any answer a master could give to any command: nothing but a plain yes is a grant (rule 7).
pub(crate) fn replies(data: &[u8]) {
    let mut data = Bytes(data);
    let act = ACTS[usize::from(data.next()) % ACTS.len()];
    let count = usize::from(data.next() % 5);
    if data.next().is_multiple_of(4) {
        let kind = KINDS[usize::from(data.next()) % KINDS.len()].clone();
        let error = || Error::new(kind.clone(), String::from_utf8_lossy(data.0).into_owned());
        let _ = (classify::is_noscript(&Err(error())), classify::is_forbidden_key(&Err(error())));
        let _ = classify::reason(&error());
        for vote in [classify::plain_claim(Err(error())), classify::lone_release(Err(error()))] {
            assert!(matches!(vote, Vote::Failed(_) | Vote::Unknown(_)), "{vote:?}");
        }
        assert!(classify::batch(Err(error()), count).is_err());
        return;
    }
    let value = data.value(3);
    let ok = value.as_bytes() == Some(b"OK");
    assert_eq!(classify::plain_claim(Ok(value.clone())) == Vote::Granted, ok, "{value:?}");
    judge(act, &value, &classify::on_all(act, &value, &["a".into(), "b".into()]));
    judge(Act::Release, &value, &classify::lone_release(Ok(value.clone())));
    if let Ok(said) = classify::batch(Ok(value), count) {
        assert_eq!(said.len(), count);
        said.iter().for_each(|said| judge(act, said, &classify::one(act, said)));
    }
}

fn judge(act: Act, said: &Value, vote: &Vote) {
    let yes = matches!(said, Value::Integer(1));
    assert_eq!(*vote == Vote::Granted, yes, "{act:?}: {said:?}");
    let gone = matches!(said, Value::Integer(0)) && matches!(act, Act::Renew | Act::Release);
    assert_eq!(*vote == Vote::Absent, gone, "{act:?}: {said:?}");
}

/// URLs, with a password somewhere in them that nothing may show; and what a master tells of itself.
pub(crate) fn urls(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = MasterInfo::read(&text).unfit();
    for url in [text.to_string(), with_password(&text)] {
        let told = match Endpoint::parse_all(url.split('\n')) {
            Ok(endpoints) => {
                let prepared: Vec<_> =
                    endpoints.iter().filter_map(|one| one.to_fred(&Encryption::default()).err()).collect();
                format!("{endpoints:?} {prepared:?}")
            }
            Err(error) => format!("{error} {error:?}"),
        };
        // Elsewhere than where a password stands, the word is none.
        assert!(text.to_lowercase().contains(SECRET) || !told.contains(SECRET), "{url:?} tells {told:?}");
    }
}

/// The password goes where the first line break is, between a colon and an `@`.
fn with_password(text: &str) -> String {
    let (before, after) = text.split_once('\n').unwrap_or(("redis://user", text));
    format!("{before}:{SECRET}@{after}")
}

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn text(&mut self) -> Vec<u8> {
        let length = usize::from(self.next()).min(self.0.len());
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        text.to_owned()
    }

    fn value(&mut self, depth: u8) -> Value {
        match self.next() % 8 {
            0 => Value::Null,
            1 => Value::Integer(i64::from(self.next()) - 2),
            2 => Value::Bytes(self.text().into()),
            3 => Value::from(String::from_utf8_lossy(&self.text()).into_owned()),
            4 => Value::Boolean(self.next().is_multiple_of(2)),
            5 => Value::Double(f64::from(self.next()) / 2.0),
            _ if depth == 0 => Value::from("OK"),
            _ => Value::Array((0..self.next() % 6).map(|_| self.value(depth - 1)).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    fn corpus(of: &str) -> Vec<Vec<u8>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(of);
        let files = std::fs::read_dir(&folder).unwrap();
        let found: Vec<_> = files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect();
        assert!(found.len() >= 5, "{}", folder.display());
        found
    }

    #[test]
    fn what_the_fuzzer_found_worth_keeping_holds() {
        corpus("replies").iter().for_each(|input| replies(input));
        corpus("urls").iter().for_each(|input| urls(input));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_048) })]

        #[test]
        fn no_answer_and_no_text_breaks_a_promise(data in prop::collection::vec(any::<u8>(), 0..80)) {
            replies(&data);
            urls(&data);
        }
    }
}
