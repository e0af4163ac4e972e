//! Every example in a help text is a command line that works.

use clap::{Command, CommandFactory, Parser};

use super::Cli;

/// The commands for people, with all that lie below them.
fn shown(command: &Command, path: &str, found: &mut Vec<(String, Command)>) {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
    {
        let path = format!("{path} {}", below.get_name());
        shown(below, &path, found);
        found.push((path, below.clone()));
    }
}

/// The command lines of `program` in a text, up to what is the shell's.
fn lines(text: &str, program: &str) -> Vec<Vec<String>> {
    let at = text.match_indices(program).filter(|(at, _)| {
        let before = text[..*at].chars().next_back();
        before.is_none_or(|before| " \n(".contains(before)) && text[at + program.len()..].starts_with(' ')
    });
    at.map(|(at, _)| words(&text[at..])).collect()
}

fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), letter) => word.push(letter),
            (None, '\'' | '"') => quote = Some(letter),
            (None, '\n' | '|' | ';' | ')' | '&' | '#') => break,
            (None, ' ') => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
            (None, letter) => word.push(letter),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    // Redirections, each with its file behind it or in the next word.
    let mut is_file = false;
    words.retain(|word| {
        let redirects =
            word.trim_start_matches(|letter: char| letter.is_ascii_digit()).starts_with(['<', '>']);
        let keep = !redirects && !is_file;
        is_file = redirects && word.ends_with(['<', '>']);
        keep
    });
    words
}

#[test]
fn every_command_has_an_example_that_parses() {
    let mut cli = Cli::command();
    cli.build();
    let mut commands = Vec::new();
    shown(&cli, "quorlock", &mut commands);
    assert!(commands.len() > 15, "{commands:?}");
    for (path, command) in commands {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let example = help.find("Example").map(|at| &help[at..]).unwrap_or_default();
        let name = path.split(' ').nth(1).unwrap_or_default();
        let examples = lines(example, "quorlock");
        assert!(
            examples.iter().any(|words| words.get(1).is_some_and(|word| word == name)),
            "no example for {path}: {help}"
        );
        for words in examples {
            if let Err(error) = Cli::try_parse_from(&words) {
                panic!("{path}: {words:?}: {error}");
            }
        }
    }
}

#[test]
fn an_example_ends_where_the_shell_takes_over() {
    let text = "eval \"$(quorlock testbed up)\"; quorlock run a -- sh -c 'x | y' 3>events -x <in > out y | cat\nnot-quorlock x";
    let found = lines(text, "quorlock");
    assert_eq!(found[0], ["quorlock", "testbed", "up"]);
    assert_eq!(found[1], ["quorlock", "run", "a", "--", "sh", "-c", "x | y", "-x", "y"]);
    assert_eq!(found.len(), 2);
}
