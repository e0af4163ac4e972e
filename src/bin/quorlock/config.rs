//! The file of `--config`.
//!
//! Read by hand, not by serde: an error of its deserializer quotes the value it did not expect, and the TOML reader
//! the line it could not read. Either may be a password.

use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::{Table, Value};

use crate::duration;
use crate::exit::Failure;

/// What the file says. Everything in it can be left out.
#[derive(Default)]
pub(crate) struct Config {
    pub(crate) masters: Vec<String>,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) master_timeout: Option<Duration>,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) max_ttl: Option<Duration>,
    pub(crate) min_votes: Option<usize>,
    pub(crate) label: Option<String>,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) client_certificate: Option<PathBuf>,
    pub(crate) client_key: Option<PathBuf>,
}

const KEYS: [&str; 11] = [
    "masters",
    "user",
    "password",
    "master_timeout",
    "connect_timeout",
    "max_ttl",
    "min_votes",
    "label",
    "ca",
    "client_certificate",
    "client_key",
];

impl Config {
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::config(format!("cannot read --config {shown}: {error}")))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, folder).map_err(|why| Failure::config(format!("{shown}: {why}")))
    }

    pub(crate) fn parse(text: &str, folder: &Path) -> Result<Self, String> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
            format!("line {line} is not TOML: write key = value, texts in \"quotes\"")
        })?;
        if let Some(unknown) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
            let nearest = KEYS.iter().min_by_key(|key| distance(key, unknown)).unwrap_or(&KEYS[0]);
            return Err(format!(
                "unknown key `{unknown}`: did you mean `{nearest}`? The keys are {}",
                KEYS.join(", ")
            ));
        }
        let of = |key: &'static str| Entry { key, value: table.get(key) };
        let path = |key| of(key).text().map(|path| path.map(|path| folder.join(path)));
        Ok(Self {
            masters: of("masters").texts()?,
            user: of("user").text()?,
            password: of("password").text()?,
            master_timeout: of("master_timeout").duration()?,
            connect_timeout: of("connect_timeout").duration()?,
            max_ttl: of("max_ttl").duration()?,
            min_votes: of("min_votes").count()?,
            label: of("label").text()?,
            ca: path("ca")?,
            client_certificate: path("client_certificate")?,
            client_key: path("client_key")?,
        })
    }
}

/// One key of the file, with what stands there.
struct Entry<'a> {
    key: &'static str,
    value: Option<&'a Value>,
}

impl Entry<'_> {
    fn text(&self) -> Result<Option<String>, String> {
        let Some(value) = self.value else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| format!("`{}` must be a text in \"quotes\"", self.key))?;
        Ok(Some(text.to_owned()))
    }

    fn texts(&self) -> Result<Vec<String>, String> {
        let Some(value) = self.value else { return Ok(Vec::new()) };
        let texts = value
            .as_array()
            .and_then(|array| array.iter().map(|text| text.as_str().map(str::to_owned)).collect());
        texts.ok_or_else(|| format!("`{}` must be a list of texts: [\"redis://m1:6379\", …]", self.key))
    }

    fn duration(&self) -> Result<Option<Duration>, String> {
        let hint = format!("`{}` must be a duration in \"quotes\", like \"500ms\" or \"30s\"", self.key);
        let text = self.text().map_err(|_| hint)?;
        text.map(|text| duration::parse(&text)).transpose().map_err(|why| format!("`{}`: {why}", self.key))
    }

    fn count(&self) -> Result<Option<usize>, String> {
        let Some(value) = self.value else { return Ok(None) };
        let count = value.as_integer().and_then(|count| usize::try_from(count).ok());
        count.map(Some).ok_or_else(|| format!("`{}` must be a number", self.key))
    }
}

/// How many letters to change, add or take away between two words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Config::parse(text, Path::new("")).err().unwrap_or_default()
    }

    #[test]
    fn everything_can_be_said() {
        let text = "masters = ['redis://a', 'redis://b']\nuser = 'u'\npassword = 'p'\nmaster_timeout = '200ms'\nconnect_timeout = '2s'\n\
                    max_ttl = '30s'\nmin_votes = 4\nlabel = 'me'\nca = 'ca.pem'";
        let config = Config::parse(text, Path::new("/etc/q")).unwrap();
        assert_eq!(config.masters, ["redis://a", "redis://b"]);
        assert_eq!(config.master_timeout, Some(Duration::from_millis(200)));
        assert_eq!(config.connect_timeout, Some(Duration::from_secs(2)));
        assert_eq!((config.min_votes, config.label.as_deref()), (Some(4), Some("me")));
        assert_eq!(config.ca, Some("/etc/q/ca.pem".into()));
        assert!(Config::parse("", Path::new("")).is_ok());
    }

    #[test]
    fn an_unknown_key_is_named_with_the_nearest() {
        for (key, nearest) in
            [("nodes", "masters"), ("max-ttl", "max_ttl"), ("mastertimeout", "master_timeout")]
        {
            let why = refusal(&format!("{key} = 1"));
            assert!(why.contains(&format!("`{key}`")) && why.contains("The keys are"), "{why}");
            assert!(key == "nodes" || why.contains(&format!("did you mean `{nearest}`")), "{why}");
        }
        assert_eq!(
            (distance("max_ttl", "max-ttl"), distance("", "abc"), distance("kitten", "sitting")),
            (1, 3, 3)
        );
    }

    #[test]
    fn no_error_quotes_a_password() {
        for text in [
            "password = \"hunter2",
            "password = hunter2",
            "password = [\"hunter2\"]",
            "masters = \"redis://:hunter2@a\"",
            "x = 1\npassword = \"hun\\ter2\"",
        ] {
            let why = refusal(text);
            assert!(!why.is_empty() && !why.contains("hunter2") && !why.contains("ter2"), "{why}");
        }
        assert!(refusal("label = 'a'\n\nmax_ttl = ").contains("line 3"));
        assert!(refusal("max_ttl = 60").contains("\"30s\""));
        assert!(refusal("max_ttl = '60'").contains("60s"));
    }
}
