//! `quorlock completions` and `quorlock man`: the command line, described to shells and to man.

use std::io::{self, Write};
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_mangen::Man as Page;

use crate::args::{Cli, Completions, Man};
use crate::exit::{Exit, Failure};

pub(crate) fn completions(args: &Completions) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut shown(), "quorlock", &mut script);
    print(&script)
}

pub(crate) fn man(args: &Man) -> Result<Exit, Failure> {
    let mut root = shown().disable_help_subcommand(true);
    root.build();
    if let Some(folder) = &args.dir {
        let written = std::fs::create_dir_all(folder).and_then(|()| write_all(&root, folder));
        return match written {
            Ok(()) => Ok(Exit::Done),
            Err(error) => Err(Failure::other(format!("--dir {}: {error}", folder.display()))),
        };
    }
    let mut command = &root;
    for name in &args.command {
        command = command.find_subcommand(name).ok_or_else(|| {
            let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
            let has = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
            let text = format!("no command `{name}` below `{}`, which has {has}", command.get_name());
            Failure::new(Exit::Usage, "bad_request", text)
        })?;
    }
    Ok(print(&render(command).map_err(|error| Failure::other(error.to_string()))?))
}

/// All that is for people. What a hidden command is for, no shell should offer.
fn shown() -> Command {
    let all = Cli::command();
    Command::new("quorlock")
        .version(env!("CARGO_PKG_VERSION"))
        .about(all.get_about().cloned().unwrap_or_default())
        .after_help(all.get_after_help().cloned().unwrap_or_default())
        .args(all.get_arguments().cloned())
        .subcommand_required(true)
        .subcommands(all.get_subcommands().filter(|command| !command.is_hide_set()).cloned())
}

fn render(command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let source = concat!("quorlock ", env!("CARGO_PKG_VERSION"));
    Page::new(command.clone()).source(source).manual("quorlock").render(&mut page)?;
    Ok(page)
}

fn write_all(command: &Command, folder: &Path) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    std::fs::write(folder.join(format!("{name}.1")), render(command)?)?;
    command.get_subcommands().try_for_each(|command| write_all(command, folder))
}

fn print(text: &[u8]) -> Exit {
    let mut out = io::stdout().lock();
    // Whoever does not read it to the end has had enough.
    let _ = out.write_all(text).and_then(|()| out.flush());
    Exit::Done
}
