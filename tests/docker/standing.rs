//! `quorlock testbed up --docker`: a bed of containers that outlives the command.

use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quorlock::testbed::Reply;

use crate::bed::{docker, docker_ok, wire};

/// A place of one's own, taken down in any case.
struct Place {
    folder: tempfile::TempDir,
}

struct Ended {
    code: i32,
    out: String,
    err: String,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorlock"));
        command.env("XDG_RUNTIME_DIR", self.folder.path()).args(arguments);
        for variable in ["QUORLOCK_MASTERS", "QUORLOCK_CONTAINERS", "QUORLOCK_PROJECT", "QUORLOCK_STATE"] {
            command.env_remove(variable);
        }
        command
    }

    fn testbed(&self, arguments: &[&str]) -> Ended {
        ended(self.command(&["testbed"]).args(arguments).output().unwrap())
    }

    /// Where the masters of a new bed listen.
    fn up(&self, more: &[&str]) -> Vec<String> {
        let up = self.testbed(&[&["up", "--docker"], more].concat());
        let said = up.ok();
        let urls = said.strip_prefix("export QUORLOCK_MASTERS=").unwrap();
        assert!(!urls.contains('\n'), "{urls}");
        urls.split(',').map(str::to_owned).collect()
    }

    fn record(&self) -> Option<std::fs::DirEntry> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap().map(Result::unwrap);
        entries.into_iter().find(|entry| entry.path().is_file())
    }

    fn project(&self) -> String {
        let record = std::fs::read_to_string(self.record().unwrap().path()).unwrap();
        record.split('"').find(|word| word.starts_with("quorlock-bed-")).unwrap().to_owned()
    }

    fn is_empty(&self) -> bool {
        std::fs::read_dir(self.folder.path()).unwrap().next().is_none()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.command(&["testbed", "down"]).output();
    }
}

impl Ended {
    #[track_caller]
    fn ok(&self) -> String {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self.out.trim_end().to_owned()
    }

    #[track_caller]
    fn fails(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        for word in words {
            assert!(self.err.contains(word), "{word:?} is missing: {}", self.err);
        }
    }
}

fn ended(output: Output) -> Ended {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

/// Containers, networks and volumes whose name begins so.
fn of(project: &str) -> Vec<String> {
    [&["container", "ls", "-a", "--format", "{{.Names}}"][..], &["network", "ls", "--format", "{{.Name}}"]]
        .into_iter()
        .chain([&["volume", "ls", "--format", "{{.Name}}"][..]])
        .flat_map(|words| docker_ok(words).lines().map(str::to_owned).collect::<Vec<_>>())
        .filter(|name| name.starts_with(project))
        .collect()
}

#[test]
#[ignore = "on containers: sh docker/run.sh test"]
fn a_bed_of_containers_is_put_up_used_broken_and_taken_down_by_the_command() {
    let place = Place::new();
    let urls = place.up(&[]);
    assert_eq!(urls.len(), 5);
    let project = place.project();
    assert_eq!(of(&project).iter().filter(|name| name.contains("-m")).count(), 10, "{:?}", of(&project));
    // Somebody else's, of a name that begins as ours.
    let other = format!("{project}-others");
    docker_ok(&["network", "create", &other]);
    docker_ok(&["volume", "create", &other]);

    // Admitted already.
    let acquire = |resource: &str| {
        let masters = urls.join(",");
        let json = ended(
            place
                .command(&["acquire", resource, "--json"])
                .env("QUORLOCK_MASTERS", masters)
                .output()
                .unwrap(),
        );
        serde_json::from_str::<serde_json::Value>(&json.ok()).unwrap()
    };
    assert_eq!(acquire("a")["outcome"], "acquired");
    for again in [&["up", "--docker"][..], &["up"]] {
        place.testbed(again).fails(1, &["already up", &project, "testbed status", "testbed down"]);
    }

    for (master, fault) in [("m1", "freeze"), ("2", "kill"), ("m3", "cut")] {
        let master_name = format!("m{}", master.trim_start_matches('m'));
        assert_eq!(
            place.testbed(&["fault", master, fault]).ok(),
            format!("{master_name}: {fault}: installed")
        );
    }
    place.testbed(&["fault", "2", "kill"]).fails(1, &["m2", "skipped", "already down"]);
    place.testbed(&["fault", "6", "kill"]).fails(2, &["no master 6", "m5"]);
    place.testbed(&["fault", "m4", "slow=10"]).fails(1, &["skipped", "docker/run.sh"]);
    let status = || {
        let json: serde_json::Value =
            serde_json::from_str(&place.testbed(&["status", "--json"]).ok()).unwrap();
        let masters = json["masters"].as_array().unwrap().clone();
        let at = |master: &serde_json::Value| master["url"].as_str().unwrap().to_owned();
        assert_eq!(masters.iter().map(at).collect::<Vec<_>>(), urls);
        masters.iter().map(|master| master["condition"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(status(), ["frozen", "down", "cut", "up", "up"]);
    for (master, fault) in [("m1", "freeze"), ("m2", "kill"), ("m3", "cut")] {
        assert_eq!(
            place.testbed(&["fault", master, fault, "--undo"]).ok(),
            format!("{master}: undo {fault}: installed")
        );
    }
    assert_eq!(status(), ["up"; 5]);
    assert_eq!(place.testbed(&["fault", "m5", "snapshot"]).ok(), "m5: snapshot: installed");
    assert_eq!(
        place.testbed(&["fault", "m5", "restart-old-snapshot"]).ok(),
        "m5: restart-old-snapshot: installed"
    );

    place.testbed(&["fault", "m4", "kill"]).ok();
    assert_eq!(place.testbed(&["down"]).ok(), "ended 4 masters (1 had ended before)");
    assert_eq!(of(&project), [other.clone(), other.clone()], "what is somebody else's stays");
    assert!(place.is_empty());
    docker_ok(&["network", "rm", &other]);
    docker_ok(&["volume", "rm", &other]);
    assert_eq!(place.testbed(&["down"]).ok(), "no test bed was up");
    place.testbed(&["status"]).fails(1, &["no test bed is up", "testbed up"]);
}

#[test]
#[ignore = "on containers: sh docker/run.sh test"]
fn containers_have_clocks_of_their_own_if_asked() {
    let place = Place::new();
    let urls = place.up(&["--clocks"]);
    let ahead = |url: &str| {
        let Ok(Reply::Array(time)) = wire(url).unwrap().command(&["TIME"]) else { panic!("no time") };
        let theirs: u64 = time[0].text().unwrap().parse().unwrap();
        theirs.abs_diff(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs())
    };
    assert!(urls.iter().all(|url| ahead(url) < 60));
    place.testbed(&["fault", "m2", "clock-step=3600000"]).ok();
    thread::sleep(Duration::from_millis(50));
    assert!((3500..3700).contains(&ahead(&urls[1])), "{}", ahead(&urls[1]));
    assert!(ahead(&urls[2]) < 60);
    place.testbed(&["fault", "m2", "clock-step=3600000", "--undo"]).ok();
    thread::sleep(Duration::from_millis(50));
    assert!(ahead(&urls[1]) < 60);
}

#[test]
#[ignore = "on containers: sh docker/run.sh test"]
fn what_is_left_of_a_bed_is_removed_by_down() {
    let place = Place::new();
    // Killed half-way, at any moment.
    for wait in [0, 200, 700, 1_500, 2_500] {
        let mut up = place.command(&["testbed", "up", "--docker"]);
        let mut up = up.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while place.record().is_none_or(|record| record.metadata().unwrap().len() == 0) {
            assert!(up.try_wait().unwrap().is_none(), "it ended");
            thread::sleep(Duration::from_millis(5));
        }
        let project = place.project();
        thread::sleep(Duration::from_millis(wait));
        up.kill().unwrap();
        up.wait().unwrap();
        // What it had started goes on for a moment.
        while has_child_of(&place, &project) {
            thread::sleep(Duration::from_millis(50));
        }
        place.testbed(&["down"]).ok();
        assert_eq!(of(&project), [""; 0], "after {wait} ms");
        assert!(place.is_empty());
    }
    // A record that somebody deleted.
    place.up(&[]);
    let project = place.project();
    std::fs::remove_file(place.record().unwrap().path()).unwrap();
    place.testbed(&["up", "--docker"]).fails(1, &[&project, "`quorlock testbed down` removes it"]);
    assert_eq!(place.testbed(&["down"]).ok(), "ended 5 masters (0 had ended before)");
    assert_eq!(of(&project), [""; 0]);
    assert!(place.is_empty());
    // And a volume, of which all else was pruned.
    let label = format!("com.docker.compose.project={project}");
    docker_ok(&["volume", "create", "--label", &label, &format!("{project}-m1")]);
    place.testbed(&["up", "--docker"]).fails(1, &[&project, "`quorlock testbed down` removes it"]);
    assert_eq!(place.testbed(&["down"]).ok(), "ended 0 masters (0 had ended before)");
    assert_eq!(of(&project), [""; 0]);
}

/// Whether a process that an `up` of this place started is still there. Its words name the place, or only the project.
fn has_child_of(place: &Place, project: &str) -> bool {
    let names = [place.folder.path().to_str().unwrap(), project];
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| std::fs::read(process.path().join("cmdline")).ok())
        .any(|words| names.iter().any(|name| String::from_utf8_lossy(&words).contains(name)))
}

#[test]
#[ignore = "on containers: sh docker/run.sh test"]
fn an_up_of_containers_that_fails_says_why_and_leaves_nothing() {
    let place = Place::new();
    let failing = |variables: &[(&str, &str)], code: i32, words: &[&str]| {
        let mut command = place.command(&["testbed", "up", "--docker"]);
        ended(command.envs(variables.iter().copied()).output().unwrap()).fails(code, words);
        assert!(place.is_empty());
        assert_eq!(place.testbed(&["down"]).ok(), "no test bed was up");
    };
    failing(&[("DOCKER_HOST", "unix:///nowhere")], 78, &["no Docker engine answers", "quorlock testbed up"]);
    failing(&[("QUORLOCK_SERVER", "/no/such/server")], 78, &["QUORLOCK_SERVER=/no/such/server"]);
    failing(
        &[("QUORLOCK_IMAGE", "127.0.0.1:1/no/such:image")],
        1,
        &["127.0.0.1:1/no/such:image", "QUORLOCK_IMAGE=local"],
    );
    let before = docker_ok(&["image", "ls", "-q"]);
    // A program that is no server, and ends.
    failing(&[("QUORLOCK_IMAGE", "local"), ("QUORLOCK_SERVER", "/bin/true")], 1, &["-m1 has ended"]);
    for image in docker_ok(&["image", "ls", "-q"]).lines().filter(|image| !before.contains(image)) {
        assert!(docker(&["image", "rm", image]).status.success());
    }
    let masters = place.testbed(&["up", "--docker", "--masters", "3"]);
    masters.fails(2, &["five containers"]);
    assert!(place.is_empty());
}
