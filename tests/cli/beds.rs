//! testbed: masters that outlive the command.

use std::process::Command;

use crate::stage::{Ended, quorlock, run};

/// A place of one's own for a standing bed, taken down in any case.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = quorlock();
        command.env("XDG_RUNTIME_DIR", self.folder.path()).args(arguments);
        command
    }

    fn testbed(&self, arguments: &[&str]) -> Ended {
        run(self.command(&["testbed"]).args(arguments))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.command(&["testbed", "down"]).output();
    }
}

#[test]
fn a_bed_is_put_up_used_broken_and_taken_down() {
    let place = Place::new();
    let up = place.testbed(&["up", "--local"]);
    let urls = up.ok().strip_prefix("export QUORLOCK_MASTERS=").unwrap().to_owned();
    assert_eq!(urls.matches("redis://127.0.0.1:").count(), 5, "{up:?}");
    assert_eq!(up.out.lines().count(), 1, "{up:?}");
    // Admitted already.
    let acquire = |resource: &str| {
        run(place.command(&["acquire", resource, "--json"]).env("QUORLOCK_MASTERS", &urls)).json()
    };
    assert_eq!(acquire("a")["outcome"], "acquired");

    let again = place.testbed(&["up"]);
    again.fails(1, &["already up", "testbed down"]);
    assert_eq!(place.testbed(&["fault", "m2", "freeze"]).ok(), "m2: freeze: installed");
    assert_eq!(place.testbed(&["fault", "4", "kill", "--json"]).json()["outcome"], "installed");
    place.testbed(&["fault", "4", "kill"]).fails(1, &["m4", "skipped", "already down"]);
    let status = place.testbed(&["status"]);
    let column = |line: &str| line.split_whitespace().nth(2).map(str::to_owned);
    let conditions: Vec<String> = status.ok().lines().filter_map(column).collect();
    assert_eq!(conditions, ["up", "frozen", "up", "down", "up"], "{status:?}");
    assert_eq!(acquire("b")["votes"]["granted"], 3);

    assert_eq!(place.testbed(&["fault", "m2", "freeze", "--undo"]).ok(), "m2: undo freeze: installed");
    let json = place.testbed(&["status", "--json"]).json();
    assert_eq!(json["masters"][1]["condition"], "up", "{json}");
    place.testbed(&["fault", "6", "kill"]).fails(2, &["no master 6", "m5"]);
    place.testbed(&["fault", "x", "kill"]).fails(2, &["m1"]);
    place.testbed(&["fault", "1", "melt"]).fails(2, &["melt", "restart-empty"]);

    assert_eq!(place.testbed(&["down"]).ok(), "ended 4 masters (1 had ended before)");
    assert_eq!(place.testbed(&["down"]).ok(), "no test bed was up");
    place.testbed(&["status"]).fails(1, &["no test bed is up", "testbed up"]);
}

#[test]
fn as_many_masters_as_asked_for_whatever_the_variable_says() {
    let place = Place::new();
    place.testbed(&["up", "--masters", "0"]).fails(2, &["1 to 32"]);
    place.testbed(&["up", "--masters", "redis://a"]).fails(2, &["1 to 32"]);
    let up = run(place.command(&["testbed", "up", "--masters", "3"]).env("QUORLOCK_MASTERS", "redis://a"));
    assert_eq!(up.ok().matches("redis://").count(), 3, "{up:?}");
    place.testbed(&["down"]).ok();
    let up = run(place.command(&["testbed", "up", "--json"]).env("QUORLOCK_MASTERS", "redis://a,redis://b"));
    assert_eq!(up.json()["masters"].as_array().unwrap().len(), 5, "{up:?}");
}

#[test]
fn containers_without_docker_are_an_error_that_says_so_and_leave_nothing() {
    let place = Place::new();
    let up = run(place.command(&["testbed", "up", "--docker"]).env("PATH", place.folder.path()));
    up.fails(78, &["docker cannot be run", "`quorlock testbed up`"]);
    assert_eq!(std::fs::read_dir(place.folder.path()).unwrap().count(), 0);
    place.testbed(&["up", "--docker", "--masters", "3"]).fails(2, &["five containers"]);
    assert_eq!(place.testbed(&["down"]).ok(), "no test bed was up");
}
