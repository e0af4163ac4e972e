//! The last words, and the exit code.

use std::io::{self, Write};
use std::process::ExitCode;

use serde_json::Value;

use crate::args::Global;
use crate::exit::{Exit, Failure};
use crate::output::{has_colours, note};

/// The end of the command: says what went wrong, and the exit code.
pub(crate) fn end(global: &Global, ended: Result<Exit, Failure>) -> ExitCode {
    let exit = ended.unwrap_or_else(|failure| {
        if global.json {
            let mut json = failure.json;
            json.insert("error".into(), failure.text.as_str().into());
            let _ = writeln!(io::stdout(), "{}", Value::Object(json));
        }
        note(format_args!("error: {}", failure.text));
        failure.exit
    });
    ExitCode::from(exit.code())
}

/// What clap has to say. It quotes arguments, which may be a URL with a password in the wrong place.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let asked_for = !error.use_stderr();
    let colours = if asked_for { has_colours(&io::stdout()) } else { has_colours(&io::stderr()) };
    let rendered = error.render();
    let text = redact(&if colours { rendered.ansi().to_string() } else { rendered.to_string() });
    if asked_for {
        let _ = write!(io::stdout(), "{text}");
        return ExitCode::SUCCESS;
    }
    let _ = write!(io::stderr(), "{text}");
    ExitCode::from(Exit::Usage.code())
}

/// Hides what stands between `://` and the last `@` of a word.
fn redact(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        shown.push_str(before);
        let word = after.find(char::is_whitespace).unwrap_or(after.len());
        let (word, tail) = after.split_at(word);
        match word.rsplit_once('@') {
            Some((_, host)) => {
                shown.push_str("…@");
                shown.push_str(host);
            }
            None => shown.push_str(word),
        }
        rest = tail;
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::redact;

    #[test]
    fn a_login_in_a_url_is_not_shown() {
        assert_eq!(redact("got 'redis://u:p@a:1,redis://:q@b'"), "got 'redis://…@b'");
        assert_eq!(redact("see https://x.org/y and a@b"), "see https://x.org/y and a@b");
    }
}
