//! The lock is lost: the command is over before anybody else can have it.

use std::process::{Child, Command};
use std::time::Duration;

use super::scene::{NEXT, Network, STUBBORN, Traces, warden_of};
use crate::stage::{BOUND, Stage, end, eventually, run, signal, start};

/// Renewed every second and two thirds; masters here may take two seconds to answer, and are asked again sooner.
const TTL: &str = "5s";

fn kill(pid: u32, name: &str) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

impl Traces {
    fn beats(&self) {
        let beats = |name| self.read(name).contains('\n');
        eventually("both processes beat", || beats("first") && beats("second"));
    }

    /// Somebody else, who waits for the same lock, and nothing in the way.
    fn rival(&self, stage: &Stage) -> Child {
        start(&mut self.command(stage, &["a", "--wait", "50s", "--ttl", TTL], NEXT))
    }
}

#[test]
fn behind_a_cut_network_it_is_killed_before_another_has_the_lock() {
    let stage = Stage::new();
    let network = Network::to(&stage);
    let traces = Traces::new();
    let mut command = traces.command_over(&stage, &network.urls(), &["a", "--ttl", TTL], STUBBORN);
    let running = start(&mut command);
    traces.beats();
    let rival = traces.rival(&stage);
    network.cut();
    let ended = end(running, BOUND);
    ended.fails(76, &["TERM to the command", "KILL to the command", "lost while the command ran"]);
    assert!(traces.processes().is_empty(), "something of the group lives on");
    assert_eq!(end(rival, BOUND).code, 0);
    traces.show_no_overlap();
}

#[test]
fn frozen_masters_lose_it_and_term_gives_it_time_to_clean_up() {
    let stage = Stage::new();
    let traces = Traces::new();
    let script = r#"exec 2> /dev/null; trap 'sleep 0.2; touch "$1/cleaned"; exit 0' TERM; touch "$1/ready"; while :; do sleep 0.02; done"#;
    let mut command =
        traces.command(&stage, &["a", "--ttl", TTL, "--kill-grace", "1500ms", "--json"], script);
    let running = start(&mut command);
    traces.wait_for("ready");
    for master in stage.bed.masters() {
        master.freeze().unwrap();
    }
    let ended = end(running, BOUND);
    assert_eq!(ended.code, 76, "{ended:?}");
    assert!(traces.has("cleaned") && !ended.err.contains("\"killing\""), "{ended:?}");
    for line in ended.err.lines() {
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "no event: {line}");
    }
    let place = |event: &str| {
        ended.err.find(&format!("\"event\":\"{event}\"")).unwrap_or_else(|| panic!("{event}: {ended:?}"))
    };
    assert!(place("at_risk") < place("terminating") && place("terminating") < place("lost"), "{ended:?}");
}

#[test]
fn a_cut_that_heals_in_time_is_told_and_harms_nothing() {
    let stage = Stage::new();
    let network = Network::to(&stage);
    let traces = Traces::new();
    let script = r#"touch "$1/ready"; while ! [ -e "$1/go" ]; do sleep 0.02; done; exit 8"#;
    let arguments = ["a", "--ttl", "12s", "--kill-grace", "1s", "--json"];
    let mut running = start(&mut traces.command_over(&stage, &network.urls(), &arguments, script));
    traces.wait_for("ready");
    let mut err = std::io::BufReader::new(running.stderr.take().unwrap());
    let mut until = |event: &str| {
        let mut line = String::new();
        while !line.contains(&format!("\"event\":\"{event}\"")) {
            line.clear();
            assert!(std::io::BufRead::read_line(&mut err, &mut line).unwrap() > 0, "never: {event}");
        }
    };
    network.cut();
    until("at_risk");
    network.join();
    until("renewed");
    std::fs::write(traces.file("go"), "").unwrap();
    assert_eq!(end(running, BOUND).code, 8);
}

#[test]
fn keys_deleted_by_hand_mean_kill_at_once() {
    let stage = Stage::new();
    let traces = Traces::new();
    let running = start(&mut traces.command(&stage, &["a", "--ttl", TTL], STUBBORN));
    traces.beats();
    for master in stage.bed.masters() {
        master.command(&["DEL", "a"]).unwrap();
    }
    end(running, BOUND).fails(76, &["KILL to the command", "lost while the command ran"]);
    traces.are_alone();
}

#[test]
fn a_program_stopped_past_the_deadline_does_not_keep_its_command_alive() {
    let stage = Stage::new();
    let traces = Traces::new();
    let running = start(&mut traces.command(&stage, &["a", "--ttl", TTL], STUBBORN));
    traces.beats();
    let rival = traces.rival(&stage);
    signal(&running, "-STOP");
    traces.are_alone();
    assert_eq!(end(rival, BOUND).code, 0);
    traces.show_no_overlap();
    signal(&running, "-CONT");
    end(running, BOUND).fails(76, &["lost while the command ran"]);
}

#[test]
fn a_program_that_is_killed_takes_its_command_with_it_and_nobody_renews() {
    let stage = Stage::new();
    let traces = Traces::new();
    let mut running = start(&mut traces.command(&stage, &["a", "--ttl", TTL], STUBBORN));
    traces.beats();
    let rival = traces.rival(&stage);
    signal(&running, "-KILL");
    running.wait().unwrap();
    traces.are_alone();
    assert_eq!(end(rival, BOUND).code, 0);
    traces.show_no_overlap();
}

#[test]
fn killed_together_with_its_warden_it_still_takes_the_command_with_it() {
    let stage = Stage::new();
    let traces = Traces::new();
    let mut running =
        start(&mut traces.command(&stage, &["a"], r#"echo $$ > "$1/pid"; exec tail -f /dev/null "$1/pid""#));
    eventually("it runs", || traces.read("pid").ends_with('\n'));
    kill(warden_of(&running), "-KILL");
    signal(&running, "-KILL");
    running.wait().unwrap();
    traces.are_alone();
}

#[test]
fn without_its_warden_it_goes_on_and_says_so() {
    let stage = Stage::new();
    let traces = Traces::new();
    let script = r#"touch "$1/ready"; while ! [ -e "$1/go" ]; do sleep 0.02; done; exit 8"#;
    let running = start(&mut traces.command(&stage, &["a"], script));
    traces.wait_for("ready");
    kill(warden_of(&running), "-KILL");
    std::thread::sleep(Duration::from_millis(300));
    assert!(stage.is_held("a"));
    std::fs::write(traces.file("go"), "").unwrap();
    let ended = end(running, BOUND);
    assert_eq!(ended.code, 8, "{ended:?}");
    assert!(ended.err.contains("is gone"), "{ended:?}");
    assert!(stage.is_free("a"));
}

#[test]
fn no_warden_outlives_a_run() {
    let stage = Stage::new();
    let traces = Traces::new();
    let script = r#"cat /proc/$PPID/task/$PPID/children > "$1/children""#;
    assert_eq!(run(&mut traces.command(&stage, &["a"], script)).code, 0);
    let children = traces.read("children");
    assert_eq!(children.split_ascii_whitespace().count(), 2, "warden and command: {children}");
    for pid in children.split_ascii_whitespace() {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(!arguments.windows(10).any(|window| window == b"run-warden"), "it lives on");
    }
}

/// As a machine that sleeps: nothing of it runs, and time goes on.
#[test]
fn all_of_it_stopped_past_the_deadline_is_killed_on_waking() {
    let stage = Stage::new();
    let traces = Traces::new();
    let running = start(&mut traces.command(&stage, &["a", "--ttl", TTL], STUBBORN));
    traces.beats();
    let ours = [running.id(), warden_of(&running)];
    ours.iter().for_each(|pid| kill(*pid, "-STOP"));
    // One that only just began to be another program may be gone.
    let asleep = traces.processes();
    let tell = |name: &str| {
        let pids = asleep.iter().map(u32::to_string);
        Command::new("kill").arg(name).args(pids).output().unwrap();
    };
    tell("-STOP");
    assert_eq!(end(traces.rival(&stage), BOUND).code, 0);
    assert!(!traces.processes().is_empty());
    tell("-CONT");
    ours.iter().for_each(|pid| kill(*pid, "-CONT"));
    end(running, BOUND).fails(76, &["KILL to the command", "lost while the command ran"]);
    traces.are_alone();
}

/// As `sudo` does: started by a user who may not signal what it becomes. Only root can set that up.
#[test]
fn what_became_another_users_is_out_of_reach_and_that_is_said() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (become_root, program) = (folder.path().join("setpriv"), folder.path().join("quorlock"));
    let allowed = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    std::fs::copy("/usr/bin/setpriv", &become_root).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_quorlock"), &program).unwrap();
    allowed(folder.path(), 0o755);
    allowed(&become_root, 0o4755);
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let shown = run(Command::new("setpriv").args(nobody).arg(&become_root).args(["--reuid=0", "id", "-ru"]));
    if shown.out.trim() != "0" {
        eprintln!(
            "not looked at: this user, or this file system, cannot make a program another user's: {shown:?}"
        );
        return;
    }
    let stage = Stage::new();
    let under_a_lock = |command: &[&str]| {
        let mut quorlock = Command::new("setpriv");
        quorlock.args(nobody).arg(&program).env("QUORLOCK_MASTERS", stage.urls());
        quorlock
            .args(["--master-timeout", "2s", "run", "a", "--ttl", TTL, "--max-hold", "1s", "--"])
            .args(command);
        run(&mut quorlock)
    };
    let root = become_root.to_str().unwrap();
    // Waited for, all the same; and the code says that the lock did not last.
    let ended = under_a_lock(&[root, "--reuid=0", "sleep", "3"]);
    ended.fails(76, &["goes on WITHOUT the lock: it cannot be sent SIGTERM", "which could not be ended"]);
    // One of a group that is reached otherwise.
    let ended = under_a_lock(&["sh", "-c", &format!("{root} --reuid=0 sleep 3; :")]);
    ended.fails(
        76,
        &["WITHOUT the lock: 1 of its processes lived through SIGKILL", "which could not be ended"],
    );
    let ended = under_a_lock(&["sleep", "60"]);
    ended.fails(76, &["which was ended"]);
    assert!(!ended.err.contains("WITHOUT"), "{ended:?}");
}
