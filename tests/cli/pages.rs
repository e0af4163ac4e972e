//! completions and man: what shells and man make of them.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::stage::{Ended, end, quorlock, run};

/// Runs a program with this on its standard input.
fn fed(program: &mut Command, input: &str) -> Ended {
    let mut child =
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()).unwrap());
    let ended = end(child, crate::stage::BOUND);
    writer.join().unwrap();
    ended
}

#[test]
fn bash_understands_its_completions_and_completes_with_them() {
    let script = run(quorlock().args(["completions", "bash"]));
    let check = fed(Command::new("bash").arg("-n"), script.ok());
    assert_eq!((check.code, check.err.as_str()), (0, ""), "{check:?}");
    // As bash asks when TAB is pressed.
    let completed = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let ask = format!(
            "{}\nCOMP_WORDS=({}); COMP_CWORD={}; _quorlock quorlock '{}' '{}'; echo \"${{COMPREPLY[@]}}\"",
            script.out,
            words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
            words.len() - 1,
            words[words.len() - 1],
            words[words.len() - 2],
        );
        fed(Command::new("bash").args(["--norc", "--noprofile"]), &ask).ok().to_owned()
    };
    assert_eq!(completed("quorlock insp"), "inspect");
    assert_eq!(completed("quorlock testbed fau"), "fault");
    assert!(completed("quorlock acquire --t").contains("--ttl"));
    for hidden in ["quorlock run-", "quorlock demo-"] {
        assert_eq!(completed(hidden), "", "{hidden}");
    }
}

#[test]
fn every_shell_has_completions_without_what_is_hidden() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(quorlock().args(["completions", shell])).ok().to_owned();
        assert!(script.contains("inspect") && script.contains("max-hold"), "{shell}");
        for hidden in ["run-warden", "run-command", "demo-worker"] {
            assert!(!script.contains(hidden), "{shell} offers {hidden}");
        }
    }
    run(quorlock().args(["completions", "cmd.exe"])).fails(2, &["cmd.exe", "bash"]);
}

#[test]
fn every_command_has_a_page_that_renders() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("man1");
    run(quorlock().args(["man", "--dir"]).arg(&dir)).ok();
    let mut names: Vec<String> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    for name in ["quorlock.1", "quorlock-run.1", "quorlock-testbed-fault.1", "quorlock-completions.1"] {
        assert!(names.contains(&name.to_owned()), "{name}: {names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("warden") || name.contains("help")), "{names:?}");
    for name in &names {
        let page = std::fs::read_to_string(dir.join(name)).unwrap();
        assert!(
            page.contains(".TH ") && page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"),
            "{name}"
        );
        // Warnings, missing macros for one, go to standard error.
        match Command::new("groff").args(["-man", "-Tutf8", "-Kutf8", "-ww"]).arg(dir.join(name)).output() {
            Ok(rendered) => {
                assert!(rendered.status.success() && rendered.stderr.is_empty(), "{name}: {rendered:?}");
                assert!(String::from_utf8_lossy(&rendered.stdout).contains("Example"), "{name}");
            }
            Err(missing) => eprintln!("not rendered, only looked at: groff: {missing}"),
        }
    }
    let one = run(quorlock().args(["man", "testbed", "fault"]));
    assert_eq!(one.out, std::fs::read_to_string(dir.join("quorlock-testbed-fault.1")).unwrap());
    run(quorlock().args(["man", "bake"])).fails(2, &["bake", "inspect"]);
    run(quorlock().args(["man", "inspect", "x"])).fails(2, &["`x`"]);
    run(quorlock().args(["man", "--dir", "/proc/none"])).fails(1, &["--dir /proc/none"]);
}

#[test]
fn nothing_connects_before_it_must() {
    let master = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    master.set_nonblocking(true).unwrap();
    let url = format!("redis://{}", master.local_addr().unwrap());
    let needless: [&[&str]; 6] =
        [&["completions", "bash"], &["man"], &["--help"], &["--version"], &["explain"], &["list", "--help"]];
    for arguments in needless {
        run(quorlock().env("QUORLOCK_MASTERS", &url).args(arguments)).ok();
    }
    // What cannot be is refused before it is tried.
    for arguments in
        [&["acquire", "a", "--ttl", "1ms"][..], &["inspect", ""], &["run", "a", "--", "/nowhere/at/all"]]
    {
        assert_ne!(run(quorlock().env("QUORLOCK_MASTERS", &url).args(arguments)).code, 0);
    }
    assert_eq!(master.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    // The look itself can fail.
    run(quorlock().env("QUORLOCK_MASTERS", &url).args(["inspect", "a", "--connect-timeout", "50ms"]));
    assert!(master.accept().is_ok());
    // Not even a configuration that can be read is needed.
    run(quorlock().env("QUORLOCK_MASTERS", "not a url").args(["man", "run"])).ok();
}
