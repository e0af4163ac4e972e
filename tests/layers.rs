//! Who may import whom. Reads every path in `src` and compares it with the tables below.
//!
//! A module is a file; `x.rs` and what lies in `x/` beside it are one. The second half of this page plants a breach of
//! each rule in a small sound house and looks that it is found.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Each area, and the areas its modules may import. A module belongs to the longest area that begins its path.
const AREAS: [(&str, &[&str]); 14] = [
    ("protocol", &["protocol"]),
    ("fence", &["protocol"]),
    ("transport", &["protocol", "transport::ask", "transport::resources"]),
    ("transport::ask", &["protocol", "transport::resources"]),
    ("transport::resources", &["protocol"]),
    ("transport::script", &["protocol"]),
    ("transport::memory", &["protocol", "transport"]),
    ("transport::fred", &["protocol", "transport", "transport::script", "transport::fred"]),
    ("client", &["protocol", "transport", "client", "client::error"]),
    // They assemble a client over real masters, and tell why that failed.
    ("client::builder", &["protocol", "transport", "transport::fred", "client", "client::error"]),
    ("client::error", &["protocol", "transport::fred"]),
    ("testbed", &["testbed"]),
    ("bin", &["bin"]),
    // lib.rs shows everything and is imported by nobody.
    (
        "",
        &["protocol", "fence", "transport", "transport::fred", "client", "client::builder", "client::error"],
    ),
];

/// The protocol from the ground up. A module imports what stands in earlier rows; the last row is one machine in
/// several files, which may name each other.
const STOREYS: [&[&str]; 11] = [
    &["mutant"],
    &["time", "quorum"],
    &["policy"],
    &["request"],
    &["fencing"],
    &["fanout"],
    &["votes"],
    &["validity"],
    &["verdict"],
    &["seat", "news"],
    &["attempt", "claim", "numbering", "renewal", "release", "likeness"],
];

/// Modules that are one thing in several files. Anywhere else an import that leads back is a breach.
const ONE_THING: [&[&str]; 2] = [
    &[
        "protocol::attempt",
        "protocol::claim",
        "protocol::numbering",
        "protocol::renewal",
        "protocol::release",
    ],
    // The keeper is part of what a client's locks share, and keeps stakes, which know what they share.
    &["client::keeper", "client::stake", "client::shared"],
];

/// What nothing in `protocol` may name: clocks, tasks, dice, and maps whose order differs from run to run.
const IMPURE: [&str; 10] = [
    "tokio",
    "async",
    "await",
    "Instant",
    "SystemTime",
    "thread",
    "rand",
    "HashMap",
    "HashSet",
    "RandomState",
];

/// Names that say nothing of what is in a module.
const EMPTY_NAMES: [&str; 9] =
    ["utils", "util", "helper", "helpers", "common", "inner", "internals", "manager", "misc"];

/// What the command line uses beside the names that lib.rs lifts to the front.
const OPEN_TO_BIN: [&str; 2] = ["protocol", "testbed"];

const LONGEST_FILE: usize = 320;

#[test]
fn the_house_is_layered() {
    let breaches = House::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").as_path()).breaches();
    assert!(breaches.is_empty(), "\n{}\n", breaches.join("\n"));
}

/// All files of `src`.
struct House {
    rooms: Vec<Room>,
    /// Every module that is a file.
    modules: BTreeSet<Vec<String>>,
}

/// One file.
struct Room {
    /// Below `src`, with `/`.
    file: String,
    module: Vec<String>,
    /// The module whose part it is; mostly itself.
    whole: Vec<String>,
    lines: usize,
    tokens: Vec<String>,
    for_tests: bool,
}

/// A path in the code, made absolute; `mentions` of other crates begin with their name.
struct Mention {
    path: Vec<String>,
    of_this_crate: bool,
    in_tests: bool,
    imported: bool,
}

impl House {
    fn read(src: &Path) -> Self {
        let mut files = Vec::new();
        collect(src, src, &mut files);
        assert!(files.len() > 40, "only {} files below {}", files.len(), src.display());
        Self::of(files)
    }

    fn of(files: Vec<(String, String)>) -> Self {
        let names: BTreeSet<String> = files.iter().map(|(file, _)| file.clone()).collect();
        let mut rooms: Vec<Room> =
            files.into_iter().map(|(file, text)| Room::new(file, &text, &names)).collect();
        let only_for_tests: BTreeSet<Vec<String>> =
            rooms.iter().flat_map(|room| room.test_modules()).collect();
        for room in &mut rooms {
            room.for_tests = only_for_tests.iter().any(|module| room.module.starts_with(module));
        }
        let modules = rooms.iter().map(|room| room.module.clone()).collect();
        Self { rooms, modules }
    }

    fn breaches(&self) -> Vec<String> {
        let mut breaches = Vec::new();
        let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let shown: BTreeSet<String> =
            self.rooms.iter().filter(|room| room.file == "lib.rs").flat_map(Room::shown_names).collect();
        for room in &self.rooms {
            let mut breach = |what: String| breaches.push(format!("src/{}: {what}", room.file));
            room.check_by_itself(&mut breach);
            for mention in room.mentions(&self.modules) {
                if !mention.of_this_crate {
                    room.check_foreign(&mention, &shown, &mut breach);
                    continue;
                }
                let target = self.home_of(&mention.path);
                if target == room.whole {
                    continue;
                }
                let (from, to) = (room.whole.join("::"), target.join("::"));
                if let Err(why) = may_import(&from, &to) {
                    breach(format!("{why} (`{}`)", mention.path.join("::")));
                }
                if !mention.in_tests && !room.for_tests {
                    imports.entry(thing(&from)).or_default().insert(thing(&to));
                }
            }
        }
        breaches.extend(circles(&imports));
        breaches.dedup();
        breaches
    }

    /// The module that a path leads to: its longest beginning that is a file, or the whole that file is part of.
    fn home_of(&self, path: &[String]) -> Vec<String> {
        let module =
            (0..=path.len()).rev().map(|length| &path[..length]).find(|path| self.modules.contains(*path));
        let room = module.and_then(|module| self.rooms.iter().find(|room| room.module == module));
        room.map(|room| room.whole.clone()).unwrap_or_default()
    }
}

impl Room {
    fn new(file: String, text: &str, names: &BTreeSet<String>) -> Self {
        let (module, _) = place(&file);
        // A module in a file of its own name, unlike one in a mod.rs, is one with what lies below it.
        let mut whole = module.clone();
        for length in 1..module.len() {
            let stem = module[..length].join("/");
            if names.contains(&format!("{stem}.rs")) {
                whole.truncate(length);
                break;
            }
        }
        Self { lines: text.lines().count(), tokens: tokens(text), file, module, whole, for_tests: false }
    }

    fn is_in(&self, area: &str) -> bool {
        self.module.first().is_some_and(|first| first == area)
    }

    fn check_by_itself(&self, breach: &mut impl FnMut(String)) {
        if self.lines > LONGEST_FILE {
            breach(format!("{} lines, at most {LONGEST_FILE}", self.lines));
        }
        let inline = self.tokens.windows(2).filter(|pair| pair[0] == "mod").map(|pair| &pair[1]);
        for name in self.module.iter().chain(inline) {
            if EMPTY_NAMES.contains(&name.as_str()) {
                breach(format!("a module called `{name}` says nothing of what is in it"));
            }
        }
        if self.is_in("protocol") {
            for word in self.tokens.iter().filter(|token| IMPURE.contains(&token.as_str())) {
                breach(format!("`{word}` in the protocol, which is values in, values out"));
            }
        }
        // The one that proposes fencing tokens, which may be any numbers, is in client/clock.rs.
        let home = self.file == "client/clock.rs"
            || ["testbed", "bin", "protocol"].iter().any(|area| self.is_in(area));
        if !home {
            for _ in self.tokens.iter().filter(|token| *token == "SystemTime") {
                breach("`SystemTime` may step; no decision may rest on it".into());
            }
        }
        let under_fred = self.module.starts_with(&["transport".into(), "fred".into()]);
        let fred = |at: usize| self.begins_path(at) && self.tokens[at] == "fred";
        if !under_fred {
            let own = self.tokens.windows(3).any(|three| three == ["transport", "::", "fred"]);
            for at in (0..self.tokens.len()).filter(|at| fred(*at)) {
                let absolute = at > 0 && self.tokens[at - 1] == "::";
                if absolute || !own {
                    breach("names the crate `fred`, which only transport/fred knows".into());
                }
            }
        }
    }

    /// What is not of this crate.
    fn check_foreign(&self, mention: &Mention, shown: &BTreeSet<String>, breach: &mut impl FnMut(String)) {
        let name = mention.path[0].as_str();
        if self.is_in("protocol") && mention.imported && !["std", "core", "alloc"].contains(&name) {
            breach(format!("`{name}` in the protocol, which needs nothing but std"));
        }
        if self.is_in("bin") && name == "quorlock" {
            let first = mention.path.get(1).map_or("", String::as_str);
            let lifted = shown.contains(first) && first.starts_with(char::is_uppercase);
            if !lifted && !OPEN_TO_BIN.contains(&first) {
                breach(format!("`{}` is no public name on lib.rs", mention.path.join("::")));
            }
        }
    }

    /// Modules declared under `#[cfg(test)]`, in files of their own or here.
    fn test_modules(&self) -> Vec<Vec<String>> {
        let attribute = ["#", "[", "cfg", "(", "test", ")", "]", "mod"];
        let declared = self
            .tokens
            .windows(attribute.len() + 1)
            .filter(|window| window.starts_with(&attribute.map(String::from)));
        declared.map(|window| [self.module.as_slice(), &window[attribute.len()..]].concat()).collect()
    }

    /// The names that lib.rs shows: what it re-exports, and its open modules.
    fn shown_names(&self) -> Vec<String> {
        let mut shown = Vec::new();
        for at in 0..self.tokens.len().saturating_sub(2) {
            match (self.tokens[at].as_str(), self.tokens[at + 1].as_str()) {
                ("pub", "mod") => shown.push(self.tokens[at + 2].clone()),
                ("pub", "use") => {
                    let (paths, _) = tree(&self.tokens, at + 2);
                    shown.extend(paths.into_iter().filter_map(|path| path.last().cloned()));
                }
                _ => {}
            }
        }
        shown
    }

    /// Whether a path begins at this token.
    fn begins_path(&self, at: usize) -> bool {
        let is = |at: usize, what: &str| self.tokens.get(at).is_some_and(|token| token == what);
        let continued = at >= 2 && is(at - 1, "::") && is_name(&self.tokens[at - 2]);
        let absolute_import = at >= 2 && is(at - 1, "::") && is(at - 2, "use");
        is(at + 1, "::") && (!continued || absolute_import)
    }

    fn mentions(&self, modules: &BTreeSet<Vec<String>>) -> Vec<Mention> {
        let tests = self.test_modules();
        let mut mentions = Vec::new();
        // The modules opened inline, each with the depth of its braces.
        let mut open: Vec<(String, usize)> = Vec::new();
        let (mut depth, mut at, mut importing) = (0, 0, false);
        while at < self.tokens.len() {
            let token = self.tokens[at].as_str();
            match token {
                "{" => {
                    if at >= 2 && self.tokens[at - 2] == "mod" {
                        open.push((self.tokens[at - 1].clone(), depth));
                    }
                    depth += 1;
                }
                "}" => {
                    depth = depth.saturating_sub(1);
                    open.retain(|(_, opened)| *opened < depth);
                }
                ";" => importing = false,
                "use" => importing = true,
                _ => {}
            }
            let just_imported = importing && at > 0 && self.tokens[at - 1] == "use";
            if !is_name(token) || !(self.begins_path(at) || just_imported) {
                at += 1;
                continue;
            }
            let here: Vec<String> =
                self.module.iter().cloned().chain(open.iter().map(|(name, _)| name.clone())).collect();
            let (paths, next) = tree(&self.tokens, at);
            let child = [self.module.as_slice(), &[token.to_owned()]].concat();
            for path in paths {
                let own = match token {
                    "crate" | "self" | "super" => Some(absolute(&here, &path)),
                    _ if modules.contains(&child) && self.tokens[at.max(1) - 1] != "::" => {
                        Some([self.module.as_slice(), &path].concat())
                    }
                    _ => None,
                };
                mentions.push(Mention {
                    of_this_crate: own.is_some(),
                    path: own.unwrap_or(path),
                    in_tests: tests.iter().any(|module| here.starts_with(module)),
                    imported: importing,
                });
            }
            at = next.max(at + 1);
        }
        mentions
    }
}

fn may_import(from: &str, to: &str) -> Result<(), String> {
    let (from_area, to_area) = (area(from), area(to));
    let (Some(from_area), Some(to_area)) = (from_area, to_area) else {
        return Err(format!("`{}` is in no area of the table", if from_area.is_none() { from } else { to }));
    };
    let allowed =
        AREAS.iter().find(|(name, _)| *name == from_area).is_some_and(|(_, to)| to.contains(&to_area));
    if !allowed {
        return Err(format!("`{from}` may not import `{to}`"));
    }
    // Tests of the protocol stand beside the house, and look at every storey.
    let on_a_storey = from != "protocol" && !from.starts_with("protocol::tests");
    if from_area == "protocol" && on_a_storey {
        let storey = |module: &str| {
            let name = module.strip_prefix("protocol::").unwrap_or(module);
            STOREYS.iter().position(|row| row.contains(&name))
        };
        let (Some(above), Some(below)) = (storey(from), storey(to)) else {
            return Err(format!("`{from}` or `{to}` stands on no storey of the table"));
        };
        if above < below || above == below && above + 1 < STOREYS.len() {
            return Err(format!("`{from}` stands no higher than `{to}`"));
        }
    }
    Ok(())
}

fn area(module: &str) -> Option<&'static str> {
    let within = |area: &str| {
        module == area
            || !area.is_empty() && module.strip_prefix(area).is_some_and(|rest| rest.starts_with("::"))
    };
    AREAS.iter().map(|(area, _)| *area).filter(|area| within(area)).max_by_key(|area| area.len())
}

fn thing(module: &str) -> String {
    ONE_THING.iter().find(|parts| parts.contains(&module)).map_or(module, |parts| parts[0]).to_owned()
}

/// One line for each import by which a module reaches itself.
fn circles(imports: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let reaches = |start: &String, goal: &String| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![start]);
        while let Some(module) = next.pop() {
            if module == goal {
                return true;
            }
            if seen.insert(module) {
                next.extend(imports.get(module).into_iter().flatten());
            }
        }
        false
    };
    let edges = imports.iter().flat_map(|(from, all)| all.iter().map(move |to| (from, to)));
    edges
        .filter(|(from, to)| from != to && reaches(to, from))
        .map(|(from, to)| format!("`{from}` imports `{to}`, which leads back to it"))
        .collect()
}

/// The module of a file below `src`.
fn place(file: &str) -> (Vec<String>, bool) {
    let path = file.replace("bin/quorlock/", "bin/");
    let stem = path.strip_suffix(".rs").unwrap_or(&path);
    let mut module: Vec<String> = stem.split('/').map(String::from).collect();
    let front = module.last().is_some_and(|last| ["lib", "main", "mod"].contains(&last.as_str()));
    if front {
        module.pop();
    }
    (module, front)
}

fn collect(src: &Path, below: &Path, files: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(below).expect("src can be read") {
        let path = entry.expect("src can be read").path();
        if path.is_dir() {
            collect(src, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(src).expect("below src").to_string_lossy().replace('\\', "/");
            files.push((name, fs::read_to_string(&path).expect("a source file can be read")));
        }
    }
}

/// A path relative to module `here`, from the root of its crate.
fn absolute(here: &[String], path: &[String]) -> Vec<String> {
    let mut base = here.to_vec();
    let mut rest = path;
    while let Some((first, more)) = rest.split_first() {
        match first.as_str() {
            // The command line is a crate of its own.
            "crate" => base.truncate(usize::from(here.first().is_some_and(|first| first == "bin"))),
            "super" => drop(base.pop()),
            "self" => {}
            _ => break,
        }
        rest = more;
    }
    base.extend(rest.iter().cloned());
    base
}

/// The paths of the tree that begins at token `at`, and where it ends.
fn tree(tokens: &[String], at: usize) -> (Vec<Vec<String>>, usize) {
    let mut path: Vec<String> = Vec::new();
    let mut at = at;
    loop {
        match tokens.get(at).map(String::as_str) {
            Some("::") => at += 1,
            Some("{") if path.is_empty() || tokens[at - 1] == "::" => {
                let (mut paths, mut next) = (Vec::new(), at + 1);
                while let Some(token) = tokens.get(next) {
                    match token.as_str() {
                        "}" => break,
                        "," => next += 1,
                        _ => {
                            let (inner, after) = tree(tokens, next);
                            paths.extend(inner.into_iter().map(|inner| [path.as_slice(), &inner].concat()));
                            next = after.max(next + 1);
                        }
                    }
                }
                return (paths, next + 1);
            }
            Some(name) if is_name(name) || name == "*" => {
                if name != "*" && (name != "self" || path.is_empty()) {
                    path.push(name.to_owned());
                }
                at += 1;
                if tokens.get(at).is_some_and(|token| token == "as") {
                    at += 2;
                }
                if tokens.get(at).is_none_or(|token| token != "::") {
                    return (vec![path], at);
                }
            }
            _ => return (vec![path], at),
        }
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Names, `::`, and single signs; without comments, texts and numbers.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => text_length(rest),
            'r' | 'b' | 'c' if raw_length(rest).is_some() => raw_length(rest).unwrap_or(1),
            '\'' => match rest[1..].chars().next() {
                Some('\\') => rest[2..].find('\'').map_or(1, |end| if end == 0 { 4 } else { end + 3 }),
                Some(letter) if rest[1 + letter.len_utf8()..].starts_with('\'') => letter.len_utf8() + 2,
                // A lifetime.
                _ => 1,
            },
            ':' if rest.starts_with("::") => {
                tokens.push("::".to_owned());
                2
            }
            _ if is_name(rest) => {
                let name = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                tokens.push(rest[..name].to_owned());
                name
            }
            _ if first.is_ascii_digit() => {
                rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
            }
            _ => {
                if !first.is_whitespace() {
                    tokens.push(first.to_string());
                }
                first.len_utf8()
            }
        };
        rest = &rest[taken.min(rest.len())..];
    }
    tokens
}

fn text_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

/// The length of `r"…"`, `r#"…"#` and their kind, and of `b"…"`.
fn raw_length(text: &str) -> Option<usize> {
    let prefix = text.find(|c: char| !"rbc".contains(c)).filter(|length| *length <= 2)?;
    let hashes = text[prefix..].find(|c: char| c != '#')?;
    if !text[prefix + hashes..].starts_with('"') {
        return None;
    }
    if !text[..prefix].contains('r') {
        return (hashes == 0).then(|| prefix + text_length(&text[prefix..]));
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let body = prefix + hashes + 1;
    text[body..].find(&end).map(|at| body + at + end.len())
}

// Each rule, broken on purpose.

/// A small sound house.
const SOUND: [(&str, &str); 13] = [
    (
        "lib.rs",
        "pub mod protocol; pub mod client; pub mod testbed; pub use client::{locker::Redlock, error::E};",
    ),
    (
        "protocol/mod.rs",
        "//! use tokio;\npub mod time; pub mod quorum; pub mod policy; mod attempt; mod claim;",
    ),
    ("protocol/time.rs", "use std::fmt; /* Instant */ const SAID: &str = \"async \\\" HashMap\";"),
    ("protocol/quorum.rs", "const LETTERS: [char; 3] = ['\"', '\\'', 'x'];"),
    ("protocol/policy.rs", "use super::time::Moment; #[cfg(test)] mod tests { use super::*; }"),
    ("protocol/attempt.rs", "use super::{claim, quorum::Quorum}; use crate::protocol::policy;"),
    ("protocol/claim.rs", "use super::attempt::Attempt;"),
    ("transport/mod.rs", "mod ask; pub mod memory; pub(crate) mod fred; pub use ask::Ask;"),
    ("transport/ask.rs", "use crate::protocol::time::Moment;"),
    ("transport/fred/mod.rs", "use super::Ask; use ::fred::clients::Client;"),
    (
        "client/locker.rs",
        "use super::error::E; use crate::transport::Ask; fn a<'a>() -> crate::protocol::time::M {}",
    ),
    ("testbed/mod.rs", "mod port; use crate::testbed::port::Port;"),
    ("bin/quorlock/main.rs", "mod args; use crate::args::Args; use quorlock::{Redlock, testbed::Testbed};"),
];

fn house_with(changed: &[(&str, &str)]) -> House {
    let others = [("client/error.rs", ""), ("testbed/port.rs", ""), ("bin/quorlock/args.rs", "")];
    let mut files: BTreeMap<String, String> =
        SOUND.iter().chain(&others).map(|(file, text)| (file.to_string(), text.to_string())).collect();
    files.extend(changed.iter().map(|(file, text)| (file.to_string(), text.to_string())));
    House::of(files.into_iter().collect())
}

#[test]
fn a_sound_house_has_no_breach() {
    assert_eq!(house_with(&[]).breaches(), Vec::<String>::new());
}

#[test]
fn every_breach_is_found() {
    let long = "\n".repeat(LONGEST_FILE + 1);
    let cases: [(&str, &str, &str); 32] = [
        ("protocol/time.rs", "use crate::transport::Ask;", "may not import `transport`"),
        ("protocol/time.rs", "fn f() { crate::client::error::f() }", "may not import `client::error`"),
        ("protocol/time.rs", "use super::super::client::error;", "may not import `client::error`"),
        ("protocol/time.rs", "use super::policy::Policy;", "stands no higher than `protocol::policy`"),
        ("protocol/quorum.rs", "use super::{time::Moment};", "stands no higher than `protocol::time`"),
        ("protocol/lease.rs", "use super::time::Moment;", "stands on no storey"),
        ("protocol/time.rs", "mod tests { use crate::testbed::Testbed; }", "may not import `testbed`"),
        ("protocol/time.rs", "use bytes::Bytes;", "needs nothing but std"),
        ("protocol/time.rs", "fn f() -> std::time::Instant {}", "`Instant` in the protocol"),
        ("protocol/time.rs", "async fn f() {}", "`async` in the protocol"),
        ("protocol/time.rs", "use std::collections::{BTreeMap, HashMap};", "`HashMap` in the protocol"),
        ("protocol/time.rs", "fn f() { rand::random() }", "`rand` in the protocol"),
        ("protocol/time.rs", "use tokio::time;", "`tokio` in the protocol"),
        ("protocol/time.rs", "use std::time::SystemTime;", "`SystemTime` in the protocol"),
        ("transport/ask.rs", "use crate::client::error::E;", "may not import `client::error`"),
        ("transport/memory.rs", "use super::fred::X;", "may not import `transport::fred`"),
        ("transport/fred/mod.rs", "use crate::client::locker::Redlock;", "may not import `client::locker`"),
        ("client/locker.rs", "use crate::transport::fred::Link;", "may not import `transport::fred`"),
        ("client/locker.rs", "use crate::testbed::Testbed;", "may not import `testbed`"),
        ("client/locker.rs", "fn f() -> crate::E {}", "may not import ``"),
        ("client/error.rs", "fn f(e: ::fred::error::Error) {}", "names the crate `fred`"),
        ("client/error.rs", "use fred::error::Error;", "names the crate `fred`"),
        ("testbed/port.rs", "use crate::protocol::time::Moment;", "may not import `protocol::time`"),
        ("bin/quorlock/args.rs", "use quorlock::client::locker::Redlock;", "is no public name"),
        ("bin/quorlock/args.rs", "use quorlock::{Nobody};", "is no public name"),
        ("bin/quorlock/args.rs", "fn f() { quorlock::transport::x() }", "is no public name"),
        ("metrics/mod.rs", "use crate::protocol::time::Moment;", "in no area"),
        ("client/locker.rs", "use std::time::{Duration, SystemTime};", "`SystemTime` may step"),
        ("client/locker.rs", &long, "lines, at most"),
        ("client/utils.rs", "", "a module called `utils`"),
        ("client/locker.rs", "mod inner { }", "a module called `inner`"),
        ("client/error.rs", "use super::locker::Redlock;", "may not import `client::locker`"),
    ];
    for (file, text, expected) in cases {
        let breaches = house_with(&[(file, text)]).breaches();
        let found = breaches
            .iter()
            .any(|breach| breach.starts_with(&format!("src/{file}: ")) && breach.contains(expected));
        assert!(found, "src/{file} with `{text}`: expected `{expected}`, found {breaches:#?}");
    }
}

#[test]
fn imports_in_a_circle_are_found() {
    let circle = [
        ("client/guard.rs", "use super::using::run;"),
        ("client/using.rs", "use crate::client::guard::Guard;"),
    ];
    let breaches = house_with(&circle).breaches();
    assert_eq!(breaches.len(), 2, "{breaches:#?}");
    assert!(breaches.iter().all(|breach| breach.contains("leads back")), "{breaches:#?}");
    // In tests it is none, nor between a module and its parts.
    let none = [
        ("client/guard.rs", "#[cfg(test)] mod tests { use crate::client::using::run; }"),
        ("client/using.rs", "mod part; use self::part::P; use super::guard::Guard;"),
        ("client/using/part.rs", "use super::run;"),
    ];
    assert_eq!(house_with(&none).breaches(), Vec::<String>::new());
}
