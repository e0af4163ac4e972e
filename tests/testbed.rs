//! The test bed itself, on real servers: what it says of a master is compared with what the system says.

#![allow(clippy::unwrap_used, reason = "a test's own helpers are no less tests")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use quorlock::testbed::{
    Condition, Data, Fault, LocalMaster, Outcome, Reply, ServerBinary, StandingBed, Testbed, TestbedError,
    Wire,
};

/// Far above what any test here takes, so that only a hang meets it.
const BOUND: Duration = Duration::from_secs(60);

/// Runs a test on a thread of its own, and fails it if it does not end.
fn bounded(test: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    let thread = thread::spawn(move || {
        test();
        let _ = done.send(());
    });
    if ended.recv_timeout(BOUND) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("still running after {BOUND:?}");
    }
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Waits for what another process is about to do.
fn eventually(what: &str, mut reached: impl FnMut() -> bool) {
    for _ in 0..2_000 {
        if reached() {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("never: {what}");
}

fn one() -> LocalMaster {
    LocalMaster::start(&ServerBinary::find().unwrap(), &[]).unwrap()
}

fn durable() -> LocalMaster {
    LocalMaster::start(&ServerBinary::find().unwrap(), &["--appendonly", "yes"]).unwrap()
}

fn set(master: &LocalMaster, key: &str) -> Reply {
    master.command(&["SET", key, "1"]).unwrap()
}

/// A connection that soon gives up.
fn impatient(master: &LocalMaster) -> Wire {
    let wire = master.wire().unwrap();
    wire.set_patience(Duration::from_millis(100)).unwrap();
    wire
}

/// The state letter of a process, as the system has it.
fn seen(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
    (state != 'Z').then_some(state)
}

/// The folder that a master says it works in.
fn folder(master: &LocalMaster) -> PathBuf {
    let Reply::Array(answer) = master.command(&["CONFIG", "GET", "dir"]).unwrap() else { panic!("no array") };
    Path::new(&answer[1].text().unwrap()).parent().unwrap().to_owned()
}

#[test]
fn five_masters_are_independent_and_keep_nothing() {
    bounded(|| {
        let bed = Testbed::start(5).unwrap();
        let run_ids: std::collections::BTreeSet<_> =
            bed.masters().iter().map(|master| master.run_id().unwrap()).collect();
        let urls: std::collections::BTreeSet<_> = bed.urls().into_iter().collect();
        assert_eq!((run_ids.len(), urls.len()), (5, 5));
        for (index, master) in bed.masters().iter().enumerate() {
            assert_eq!(master.url(), bed.urls()[index]);
            let info = master.info().unwrap();
            assert_eq!(info["role"], "master");
            assert_eq!(info["maxmemory_policy"], "noeviction");
            assert_eq!(info["aof_enabled"], "0");
            assert_eq!(info["process_id"], master.pid().unwrap().to_string());
            assert_eq!(master.keys().unwrap(), Vec::<Vec<u8>>::new());
        }
        assert!(set(&bed[0], "a").is_ok());
        assert_eq!(bed.master(1).unwrap().get("a").unwrap(), None);
        assert!(bed.master(5).is_none());
    });
}

#[test]
fn keys_are_seen_from_outside_as_bytes() {
    bounded(|| {
        let master = one();
        let (key, value) = (b"a \0\xff\r\n", b"\r\n$-1\r\n\0");
        assert!(master.command(&[b"SET".as_slice(), key, value, b"PX", b"60000"]).unwrap().is_ok());
        assert_eq!(master.get(key).unwrap().as_deref(), Some(value.as_slice()));
        assert!((1..=60_000).contains(&master.pttl(key).unwrap()));
        assert_eq!(master.keys().unwrap(), [key]);
        assert_eq!(master.pttl("absent").unwrap(), -2);
        assert!(set(&master, "forever").is_ok());
        assert_eq!(master.pttl("forever").unwrap(), -1);
        assert_eq!(master.command(&["HSET", "hash", "a", "b"]).unwrap(), Reply::Integer(1));
        assert!(master.get("hash").unwrap_err().to_string().contains("WRONGTYPE"));
        assert!(matches!(master.command(&["NONSENSE"]).unwrap(), Reply::Error(_)));
        let big = vec![7; 3 << 20];
        assert!(master.command(&[b"SET", b"big".as_slice(), &big]).unwrap().is_ok());
        assert_eq!(master.get("big").unwrap(), Some(big));
    });
}

#[test]
fn dropping_a_bed_ends_its_processes_and_removes_its_folders() {
    bounded(|| {
        let bed = Testbed::start(3).unwrap();
        bed[1].freeze().unwrap();
        bed[2].kill().unwrap();
        let pids = [bed[0].pid().unwrap(), bed[1].pid().unwrap()];
        let folder = folder(&bed[0]);
        assert_eq!(seen(pids[1]), Some('T'));
        assert!(folder.exists());
        drop(bed);
        assert_eq!(pids.map(seen), [None, None]);
        assert!(!folder.exists());
    });
}

#[test]
fn a_killed_master_refuses_and_comes_back_empty_on_its_port() {
    bounded(|| {
        let master = one();
        let (port, pid, run_id) = (master.port(), master.pid().unwrap(), master.run_id().unwrap());
        assert!(set(&master, "a").is_ok());
        master.kill().unwrap();
        assert_eq!((master.condition(), master.pid(), seen(pid)), (Condition::Down, None, None));
        let refused = master.get("a").unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        master.kill().expect("killing twice does nothing");
        master.restart(Data::Kept).unwrap();
        assert_eq!(master.get("a").unwrap(), None, "it kept what it was told not to keep");
        assert_eq!(master.port(), port);
        assert_ne!(master.run_id().unwrap(), run_id);
    });
}

#[test]
fn a_durable_master_comes_back_with_its_data_or_empty_as_asked() {
    bounded(|| {
        let master = durable();
        assert!(set(&master, "a").is_ok());
        master.restart(Data::Kept).unwrap();
        assert_eq!(master.get("a").unwrap().as_deref(), Some(b"1".as_slice()));
        master.restart(Data::Empty).unwrap();
        assert_eq!(master.get("a").unwrap(), None);
    });
}

#[test]
fn a_frozen_master_is_silent_and_answers_after_the_thaw() {
    bounded(|| {
        let master = one();
        let pid = master.pid().unwrap();
        master.freeze().unwrap();
        assert_eq!((master.condition(), seen(pid)), (Condition::Frozen, Some('T')));
        assert_eq!(master.command(&["PING"]).unwrap_err().kind(), std::io::ErrorKind::TimedOut);
        let mut silent = impatient(&master);
        assert_eq!(silent.command(&["SET", "late", "1"]).unwrap_err().kind(), std::io::ErrorKind::TimedOut);
        silent.set_patience(BOUND).unwrap();
        master.thaw().unwrap();
        assert!(silent.reply().unwrap().is_ok(), "what was sent to a frozen master is done after the thaw");
        assert_eq!(master.condition(), Condition::Up);
        assert_eq!(
            master.command(&["PING"]).unwrap(),
            Reply::Status("PONG".into()),
            "a late reply was taken for it"
        );
        master.freeze().unwrap();
        master.restart(Data::Empty).unwrap();
        assert_eq!(master.condition(), Condition::Up);
    });
}

#[test]
fn a_server_that_cannot_start_is_an_error_with_its_last_words() {
    bounded(|| {
        let binary = ServerBinary::find().unwrap();
        let error = LocalMaster::start(&binary, &["--no-such-option", "1"]).unwrap_err();
        assert!(matches!(error, TestbedError::NotStarted { .. }), "{error:?}");
        assert!(error.to_string().contains("no-such-option"), "{error}");
        let error = LocalMaster::start(&ServerBinary::at("/bin/false"), &[]).unwrap_err();
        assert!(error.to_string().contains("its process ended"), "{error}");
        let error = LocalMaster::start(&ServerBinary::at("/no/such/server"), &[]).unwrap_err();
        assert!(error.to_string().contains("/no/such/server"), "{error}");
    });
}

#[test]
fn each_fault_is_installed_and_undone() {
    bounded(|| {
        let master = one();
        let installed = Outcome::Installed;

        assert_eq!(master.inject(Fault::OutOfMemory), installed);
        assert!(matches!(set(&master, "a"), Reply::Error(error) if error.starts_with("OOM")));
        assert_eq!(master.undo(Fault::OutOfMemory), installed);
        assert!(set(&master, "a").is_ok());

        assert_eq!(master.inject(Fault::Flush), installed);
        assert_eq!(master.keys().unwrap().len(), 0);
        assert!(matches!(master.undo(Fault::Flush), Outcome::Skipped { .. }));

        let pause = Fault::PauseWrites(Duration::from_secs(300));
        assert_eq!(master.inject(pause), installed);
        assert_eq!(master.get("a").unwrap(), None, "reads go on");
        let mut paused = impatient(&master);
        assert_eq!(paused.command(&["SET", "a", "1"]).unwrap_err().kind(), std::io::ErrorKind::TimedOut);
        paused.set_patience(BOUND).unwrap();
        assert_eq!(master.undo(pause), installed);
        assert!(paused.reply().unwrap().is_ok());
        assert!(set(&master, "b").is_ok());

        assert_eq!(master.inject(Fault::Freeze), installed);
        assert!(matches!(master.inject(Fault::Freeze), Outcome::Skipped { .. }));
        assert_eq!(master.inject(Fault::Flush), Outcome::Skipped { why: "it is frozen".into() });
        assert_eq!(master.undo(Fault::Freeze), installed);
        assert!(matches!(master.inject(Fault::Thaw), Outcome::Skipped { .. }));
        assert_eq!(master.get("b").unwrap().as_deref(), Some(b"1".as_slice()), "the flush was skipped");

        assert_eq!(master.inject(Fault::Kill), installed);
        assert!(matches!(master.inject(Fault::Kill), Outcome::Skipped { .. }));
        let down = master.inject(Fault::Freeze);
        assert!(matches!(down, Outcome::Skipped { .. }) && down.to_string().ends_with("is down"), "{down}");
        assert_eq!(master.undo(Fault::Kill), installed);
        assert!(set(&master, "c").is_ok());
        assert_eq!(master.inject(Fault::Restart(Data::Empty)), installed);
        assert_eq!(master.keys().unwrap().len(), 0);
    });
}

#[test]
fn an_old_snapshot_brings_back_what_was_there_then_and_nothing_since() {
    bounded(|| {
        for master in [one(), durable()] {
            let without = master.inject(Fault::Restart(Data::Old));
            assert!(matches!(without, Outcome::Skipped { .. }), "{without}");
            assert!(set(&master, "old").is_ok());
            assert_eq!(master.inject(Fault::Snapshot), Outcome::Installed);
            assert!(set(&master, "new").is_ok());
            assert_eq!(master.inject(Fault::Restart(Data::Old)), Outcome::Installed);
            assert_eq!(master.keys().unwrap(), [b"old"]);
            assert!(set(&master, "newer").is_ok());
            assert_eq!(master.inject(Fault::Restart(Data::Old)), Outcome::Installed);
            assert_eq!(master.keys().unwrap(), [b"old"], "a snapshot serves twice");
        }
    });
}

#[test]
fn a_wall_clock_is_stepped_and_slewed_and_set_right() {
    bounded(|| {
        let bed = Testbed::builder().masters(1).clocks().start().unwrap();
        let master = &bed[0];
        let set_for_a_minute = || master.command(&["SET", "a", "1", "PX", "60000"]).unwrap();
        // The preload looks each millisecond.
        let settle = || thread::sleep(Duration::from_millis(5));
        assert!(set_for_a_minute().is_ok());
        assert_eq!(master.inject(Fault::ClockStep(20_000)), Outcome::Installed);
        settle();
        assert!((30_000..=40_000).contains(&master.pttl("a").unwrap()));
        assert!(master.undo(Fault::ClockStep(20_000)).is_installed());
        settle();
        assert!((50_000..=60_000).contains(&master.pttl("a").unwrap()));
        let _ = master.inject(Fault::ClockStep(-20_000));
        settle();
        assert!((70_000..=80_000).contains(&master.pttl("a").unwrap()));
        let _ = master.inject(Fault::ClockStep(61_000));
        settle();
        assert_eq!(master.get("a").unwrap(), None, "a step forward ends a lock before its time");

        assert!(set_for_a_minute().is_ok());
        assert!(master.inject(Fault::ClockSlew(500_000)).is_installed());
        thread::sleep(Duration::from_secs(1));
        // The slew's own step back to the true time comes on top of a set made 61 s ahead.
        let left = master.pttl("a").unwrap();
        assert!(left < 61_000 + 60_000 - 1_400, "{left}");
        let plain = one();
        assert!(matches!(plain.inject(Fault::ClockStep(1)), Outcome::Skipped { .. }));
    });
}

#[test]
fn what_a_process_cannot_do_is_skipped_and_says_what_it_takes() {
    bounded(|| {
        let master = one();
        for (fault, takes) in
            [(Fault::Cut, "proxy"), (Fault::Refuse, "proxy"), (Fault::PromoteReplica, "replica")]
        {
            let outcome = master.inject(fault);
            assert!(matches!(&outcome, Outcome::Skipped { why } if why.contains(takes)), "{outcome}");
        }
    });
}

#[test]
fn a_held_fault_is_undone_when_it_is_dropped() {
    bounded(|| {
        let master = one();
        let held = master.injected(Fault::Freeze);
        assert!(held.outcome().is_installed());
        assert_eq!(master.condition(), Condition::Frozen);
        let second = master.injected(Fault::Freeze);
        assert!(!second.outcome().is_installed());
        drop(second);
        assert_eq!(master.condition(), Condition::Frozen, "a skipped fault is not there to be undone");
        drop(held);
        assert_eq!(master.condition(), Condition::Up);
    });
}

#[test]
fn a_limit_given_at_the_start_comes_back_after_out_of_memory() {
    bounded(|| {
        let bed = Testbed::builder().masters(1).arguments(["--maxmemory", "64mb"]).start().unwrap();
        let _ = bed[0].inject(Fault::OutOfMemory);
        assert!(bed[0].undo(Fault::OutOfMemory).is_installed());
        assert_eq!(bed[0].info().unwrap()["maxmemory"], (64 << 20).to_string());
    });
}

#[test]
fn a_master_with_a_password_is_looked_at_with_it() {
    bounded(|| {
        let binary = ServerBinary::find().unwrap();
        let master =
            LocalMaster::start(&binary, &["--requirepass", "a secret", "--unixsocket", "m.sock"]).unwrap();
        assert!(set(&master, "a").is_ok());
        assert!(master.directory().join("m.sock").exists());
        let mut stranger = Wire::connect(master.address()).unwrap();
        assert!(
            matches!(stranger.command(&["GET", "a"]).unwrap(), Reply::Error(no) if no.starts_with("NOAUTH"))
        );
    });
}

#[test]
fn a_bed_works_inside_a_runtime_whose_clock_is_paused() {
    bounded(|| {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let bed = runtime.block_on(async { Testbed::start(2).unwrap() });
        runtime.block_on(async { bed[0].restart(Data::Empty).unwrap() });
        drop(runtime);
        assert_eq!(bed[1].condition(), Condition::Up);
    });
}

/// The process that the next test kills: this same program and test, told so by its environment.
fn live_with_a_bed() {
    let bed = Testbed::start(2).unwrap();
    bed[1].freeze().unwrap();
    let folder = folder(&bed[0]);
    for master in bed.masters() {
        println!("bed {} {}", master.pid().unwrap(), folder.display());
    }
    println!("bed end");
    thread::sleep(BOUND);
}

#[test]
fn masters_end_with_a_process_that_is_killed_hard() {
    if std::env::var_os("QUORLOCK_TEST_CHILD").is_some() {
        return live_with_a_bed();
    }
    bounded(|| {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "masters_end_with_a_process_that_is_killed_hard", "--nocapture"])
            .env("QUORLOCK_TEST_CHILD", "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let beds = lines.filter_map(|line| line.split_once("bed ").map(|(_, rest)| rest.to_owned()));
        let said: Vec<String> = beds.take_while(|line| line != "end").collect();
        let pids: Vec<u32> =
            said.iter().map(|line| line.split_once(' ').unwrap().0.parse().unwrap()).collect();
        let folder = PathBuf::from(said[0].split_once(' ').unwrap().1);
        assert_eq!(pids.len(), 2);
        assert!(pids.iter().all(|pid| seen(*pid).is_some()) && folder.exists());
        child.kill().unwrap();
        child.wait().unwrap();
        eventually("the masters end", || pids.iter().all(|pid| seen(*pid).is_none()));
        eventually("the folder goes", || !folder.exists());
    });
}

/// A standing bed in a folder of its own, taken down whatever happens.
struct Place {
    bed: StandingBed,
    _folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { bed: StandingBed::at(folder.path().join("deep/bed.json")), _folder: folder }
    }

    fn up(&self, masters: usize) -> Vec<String> {
        self.bed.up(Testbed::builder().masters(masters)).unwrap()
    }

    fn pids(&self) -> Vec<Option<u32>> {
        self.bed.status().unwrap().iter().map(|master| master.pid).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.bed.down();
    }
}

#[test]
fn a_standing_bed_is_seen_broken_and_taken_down_by_later_commands() {
    bounded(|| {
        let place = Place::new();
        let urls = place.up(3);
        // Each call reads the record anew, as a later command does.
        assert_eq!(place.bed.urls().unwrap(), urls);
        let before = place.bed.status().unwrap();
        assert!(before.iter().all(|master| master.condition == Condition::Up && master.trouble.is_none()));
        let report = before[2].report.clone().unwrap();
        assert_eq!((before[2].name.as_str(), report.role.as_str(), report.keys), ("m3", "master", 0));
        assert!(report.memory > 0 && report.run_id.len() == 40);

        assert!(place.bed.fault(1, Fault::Freeze).unwrap().is_installed());
        assert!(place.bed.fault(2, Fault::Kill).unwrap().is_installed());
        assert_eq!(place.bed.fault(3, Fault::Restart(Data::Empty)).unwrap(), Outcome::Installed);
        let after = place.bed.status().unwrap();
        let conditions: Vec<_> = after.iter().map(|master| master.condition).collect();
        assert_eq!(conditions, [Condition::Frozen, Condition::Down, Condition::Up]);
        assert_ne!(after[2].report.as_ref().unwrap().run_id, report.run_id);
        assert!(place.bed.undo(2, Fault::Kill).unwrap().is_installed());
        assert!(matches!(
            place.bed.fault(4, Fault::Kill),
            Err(TestbedError::NoSuchMaster { asked: 4, have: 3 })
        ));
        assert!(matches!(place.bed.fault(0, Fault::Kill), Err(TestbedError::NoSuchMaster { .. })));

        let pids = place.pids();
        let down = place.bed.down().unwrap();
        assert_eq!((down.was_up, down.ended, down.already_gone), (true, 3, 0));
        assert!(pids.iter().flatten().all(|pid| seen(*pid).is_none()));
        assert!(!place.bed.path().exists());
    });
}

#[test]
fn up_twice_is_an_error_that_says_what_to_do_and_harms_nothing() {
    bounded(|| {
        let place = Place::new();
        place.up(1);
        let error = place.bed.up(Testbed::builder()).unwrap_err().to_string();
        assert!(error.contains("already up") && error.contains("testbed down"), "{error}");
        assert_eq!(place.bed.status().unwrap()[0].condition, Condition::Up);
    });
}

#[test]
fn down_with_nothing_up_says_so_and_is_no_error() {
    bounded(|| {
        let place = Place::new();
        assert!(!place.bed.down().unwrap().was_up);
        let error = place.bed.status().unwrap_err().to_string();
        assert!(error.contains("testbed up"), "{error}");
    });
}

#[test]
fn a_second_bed_leaves_the_ports_of_killed_masters_alone() {
    bounded(|| {
        let (first, second) = (Place::new(), Place::new());
        let url = first.up(1).remove(0);
        assert!(first.bed.fault(1, Fault::Kill).unwrap().is_installed());
        assert!(second.up(1).iter().all(|other| *other != url));
        assert!(first.bed.undo(1, Fault::Kill).unwrap().is_installed());
    });
}

#[test]
fn an_up_that_fails_leaves_nothing_behind() {
    bounded(|| {
        let place = Place::new();
        let broken = Testbed::builder().masters(2).arguments(["--no-such-option", "1"]);
        place.bed.up(broken).unwrap_err();
        assert!(!place.bed.path().exists());
        place.up(1);
    });
}

#[test]
fn a_half_dead_bed_is_taken_down() {
    bounded(|| {
        let place = Place::new();
        place.up(3);
        let pids = place.pids();
        // Behind the bed's back.
        let kill = format!("kill -9 {}", pids[0].unwrap());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        eventually("m1 is seen down", || place.pids()[0].is_none());
        let _ = place.bed.fault(1, Fault::Freeze).unwrap();
        let down = place.bed.down().unwrap();
        assert_eq!((down.ended, down.already_gone), (2, 1));
        assert!(pids.iter().flatten().all(|pid| seen(*pid).is_none()));
    });
}

#[test]
fn a_recycled_pid_is_never_killed() {
    bounded(|| {
        let place = Place::new();
        place.up(1);
        let master = place.pids()[0].unwrap();
        // Start times count in hundredths of a second; a pid comes round again far later than within one.
        thread::sleep(Duration::from_millis(50));
        let mut other = Command::new("sleep").arg("60").spawn().unwrap();
        let text = std::fs::read_to_string(place.bed.path()).unwrap();
        let forged = text.replace(&format!("\"pid\": {master}"), &format!("\"pid\": {}", other.id()));
        assert_ne!(text, forged);
        std::fs::write(place.bed.path(), forged).unwrap();
        assert_eq!(place.bed.status().unwrap()[0].condition, Condition::Down);
        assert_eq!(place.bed.down().unwrap().already_gone, 1);
        assert!(other.try_wait().unwrap().is_none(), "it was killed");
        other.kill().unwrap();
        other.wait().unwrap();
        // The true record ends the true process.
        std::fs::write(place.bed.path(), text).unwrap();
        assert_eq!(place.bed.down().unwrap().ended, 1);
    });
}

#[test]
fn a_record_that_cannot_be_relied_on_kills_nothing() {
    bounded(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bed.json");
        let bed = StandingBed::at(&path);
        for text in ["nonsense", r#"{"version":99,"masters":[]}"#] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(bed.down(), Err(TestbedError::BadRecord { .. })), "{text}");
        }
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
        assert!(matches!(bed.down(), Err(TestbedError::BadRecord { .. })));
        // What an `up` leaves that was killed before it had anything to write down.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        assert!(bed.down().unwrap().was_up);
        assert!(!path.exists());
    });
}

/// A file of this project.
fn file(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

#[test]
fn every_fault_is_known_to_the_containers_script_and_to_the_front_page() {
    let (script, page) = (file("docker/faults.sh"), file("README.md"));
    for word in Fault::WORDS {
        let name = word.split('=').next().unwrap();
        assert!(script.contains(name), "docker/faults.sh does not know {word}");
        assert!(page.contains(name), "README.md does not tell of {word}");
    }
}

#[test]
fn the_picture_is_what_the_compose_file_says() {
    let drawn = Command::new("sh")
        .args(["docker/picture.sh"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(drawn.status.success());
    let drawn = String::from_utf8(drawn.stdout).unwrap();
    assert_eq!(drawn, file("docker/testbed.svg"), "draw it anew: sh docker/picture.sh > docker/testbed.svg");
    for master in ["m1", "m2", "m3", "m4", "m5"] {
        assert!(drawn.contains(&format!(">{master}<")), "{master} is missing");
    }
}

#[test]
fn the_users_file_grants_what_the_front_page_says() {
    let users = file("docker/users.acl");
    let rights = users.lines().nth(1).unwrap().split_once("-@all ").unwrap().1;
    assert!(
        file("README.md").contains(&format!("`~* {rights}`")),
        "README.md grants something else than {rights}"
    );
}
