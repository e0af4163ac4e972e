//! Commands to paste into a shell. Never with a user or a password.

use quorlock::{Contact, MasterFacts, Place, SurveyedMaster};

/// `redis-cli -h HOST -p PORT`, and these words.
pub(crate) fn cli(master: &SurveyedMaster, words: &str) -> String {
    let is_valkey = master.facts.as_ref().is_ok_and(is_valkey);
    let name = if is_valkey { "valkey-cli" } else { "redis-cli" };
    format!("{name} {} {words}", place(&master.contact))
}

fn place(contact: &Contact) -> String {
    let mut options = match &contact.place {
        Place::Tcp { host, port } => format!("-h {} -p {port}", word(host.as_bytes())),
        Place::Socket(path) => format!("-s {}", word(path.as_os_str().as_encoded_bytes())),
        // A kind of address that this program does not know yet.
        _ => String::new(),
    };
    if contact.tls {
        options += " --tls";
    }
    if contact.database > 0 {
        options += &format!(" -n {}", contact.database);
    }
    if contact.logs_in {
        // It asks for the password; the user, if there is one, is the caller's to add.
        options += " --askpass";
    }
    options
}

pub(crate) fn is_valkey(facts: &MasterFacts) -> bool {
    facts.info("server_name") == Some("valkey") || facts.info("valkey_version").is_some()
}

/// A word as a shell takes it: as it is, in quotes, or with its bytes written out.
pub(crate) fn word(bytes: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.,:/@%+=".contains(byte);
    let Ok(text) = std::str::from_utf8(bytes) else { return escaped(bytes) };
    if !text.is_empty() && bytes.iter().all(plain) {
        text.to_owned()
    } else if text.chars().any(char::is_control) {
        escaped(bytes)
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// As bash, zsh and ksh take it.
fn escaped(bytes: &[u8]) -> String {
    let mut shown = String::from("$'");
    for byte in bytes {
        match byte {
            b'\'' | b'\\' => shown.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => shown.push(char::from(*byte)),
            _ => shown += &format!("\\x{byte:02x}"),
        }
    }
    shown + "'"
}

/// `quorlock release`, which deletes a key only while it has this value; or, where the value cannot be an argument, the bare
/// delete.
pub(crate) fn release(master: Option<&SurveyedMaster>, resource: &[u8], holder: &[u8]) -> String {
    let fits = std::str::from_utf8(holder).is_ok() && !holder.is_empty() && !holder.contains(&b'|');
    match master {
        Some(master) if !fits => cli(master, &format!("UNLINK {}", word(resource))),
        // Either may look like an option.
        _ if resource.starts_with(b"-") || holder.starts_with(b"-") => {
            format!("quorlock release --holder={} -- {}", word(holder), word(resource))
        }
        _ => format!("quorlock release {} --holder {}", word(resource), word(holder)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_one_word_to_a_shell() {
        for (bytes, shown) in [
            (&b"order:123"[..], "order:123"),
            (b"", "''"),
            (b"a b", "'a b'"),
            (b"it's", r"'it'\''s'"),
            (b"$(rm -rf ~)", "'$(rm -rf ~)'"),
            (b"a\nb", r"$'a\x0ab'"),
            (b"\xff'\\", r"$'\xff\'\\'"),
        ] {
            assert_eq!(word(bytes), shown);
            let said =
                std::process::Command::new("bash").args(["-c", &format!("printf %s {shown}")]).output();
            assert_eq!(said.unwrap().stdout, bytes, "{shown}");
        }
    }
}
