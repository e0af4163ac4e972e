//! Passwords are shown nowhere (rule 15; issue 2).

use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use quorlock::Redlock;
use quorlock::testbed::Fault;

use crate::fleet::{Fleet, Lock, SOON, client, eventually, ms, pause, run};

/// All that this process logs, ours and fred's, down to the finest level.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

pub(crate) fn log() -> Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    let log = LOG.get_or_init(|| {
        let log = Log::default();
        let writer = log.clone();
        tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .init();
        log::set_boxed_logger(Box::new(log.clone())).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
        log
    });
    log.clone()
}

impl Log {
    fn bytes(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes().len()
    }

    pub(crate) fn since(&self, mark: usize) -> String {
        String::from_utf8_lossy(&self.bytes()[mark..]).into_owned()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl log::Log for Log {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let line = format!("{} {}: {}\n", record.level(), record.target(), record.args());
        self.bytes().extend_from_slice(line.as_bytes());
    }

    fn flush(&self) {}
}

const SECRETS: [&str; 4] =
    ["s3cret-of-url", "s3cret-of-builder", "s3cret-that-is-wrong", "s3cret w\"ith bl\\anks"];

/// No secret, whole or as it goes over the wire.
#[track_caller]
fn clean(what: &str, text: &str) {
    for secret in SECRETS.into_iter().chain(["s3cret"]) {
        assert!(!text.contains(secret), "{what} shows {secret}: {text}");
    }
}

// Rule 15; issue 2: "passwords appear in no Debug, Display, log, error or process list"
#[test]
fn passwords_appear_in_no_text_and_no_log() {
    run(async {
        let log = log();
        let mark = log.len();
        let fleet = Fleet::start().await;
        for secret in [0, 1, 3].map(|nth| SECRETS[nth]) {
            let rules = ["ACL", "SETUSER", "lock", "on", &format!(">{secret}"), "~*", "+@all"];
            fleet.tell(0..5, &rules);
        }
        let by_url: Vec<_> =
            fleet.urls().iter().map(|url| url.replace("//", "//lock:s3cret-of-url@")).collect();
        let quoted: Vec<_> = fleet
            .urls()
            .iter()
            .map(|url| url.replace("//", "//lock:s3cret%20w%22ith%20bl%5Canks@"))
            .collect();
        let apart = fleet.builder().credentials("lock", SECRETS[1]);
        for builder in [fleet.builder().masters(&by_url), fleet.builder().masters(&quoted), apart] {
            clean("a builder", &format!("{builder:?} {builder:#?}"));
            let inspected = builder.inspect("r").await.unwrap();
            clean("an inspection", &format!("{inspected:?}"));
            clean("init", &builder.init().await.unwrap_err().to_string());
            let client = client(builder).await;
            clean("a client", &format!("{client:?} {client:#?} {:?}", client.masters()));
            let request = client.on("r").wait(SOON);
            clean("a request", &format!("{request:?}"));
            let guard = request.acquire().await.unwrap();
            clean("a guard", &format!("{guard:?} {:?}", guard.hold()));
            let error = client.on("r").try_acquire().await.unwrap_err();
            clean("a refusal", &format!("{error} {error:?} {error:#?}"));
            guard.extend(ms(2_900)).await.unwrap();
            // Broken, frozen and restarted while logged in.
            fleet.hang_up([0]);
            let frozen = fleet[1].injected(Fault::Freeze);
            pause(ms(100)).await;
            let error = guard.extend(ms(2_900)).await.err();
            clean("an extension", &format!("{error:?}"));
            drop(frozen);
            clean("a release", &format!("{:?}", guard.release().await));
            let report = client.close().await;
            clean("closing", &format!("{report:?}"));
        }
        // Refused, unreachable, unreadable.
        let wrong = fleet.builder().credentials("lock", SECRETS[2]);
        clean("init", &format!("{:?}", wrong.init().await.unwrap_err()));
        let refused = wrong.connect().await.unwrap();
        eventually_refused(&refused, "WRONGPASS").await;
        fleet.kill(0..5);
        let down = fleet.builder().masters(&by_url).connect().await.unwrap();
        eventually_refused(&down, "unreachable").await;
        for url in [
            "redis://lock:s3cret-of-url@",
            "redis://lock:s3cret-of-url@h:s3cret",
            "redis://lock:s3cret/of@h",
            "redis://s3cret-of-url@h",
            "lock:s3cret-of-url@h",
            "http://lock:s3cret-of-url@h",
            "redis://lock:s3cret-of-url",
            "redis://h/s3cret",
            "redis://h?s3cret",
            "redis://h#s3cret",
            "redis://lock:s3cret%zz@h",
            "redis-sentinel://lock:s3cret@h",
        ] {
            let error = Redlock::connect([url]).await.unwrap_err();
            clean(url.split("s3cret").next().unwrap(), &format!("{error} {error:?}"));
        }
        let double = [by_url[0].clone(), fleet.urls()[0].clone()];
        let error = Redlock::connect(double).await.unwrap_err();
        clean("a double", &format!("{error} {error:?}"));

        let text = log.since(mark);
        assert!(text.contains("quorlock") && text.contains("fred"), "the log is empty");
        clean("the log", &text);
    });
}

async fn eventually_refused(client: &Redlock, words: &str) {
    for _ in 0..100 {
        let error = client.on("r").try_acquire().await.unwrap_err();
        let text = format!("{error} {error:?} {error:#?}");
        clean("a refusal", &text);
        if text.matches(words).count() >= 5 {
            return;
        }
        pause(ms(30)).await;
    }
    panic!("never {words}");
}

// Rule 15: what a list of processes shows
#[test]
fn passwords_appear_in_no_process_list() {
    run(async {
        let fleet = Fleet::start().await;
        fleet.tell(0..5, &["ACL", "SETUSER", "lock", "on", ">s3cret-of-builder", "~*", "+@all"]);
        let client = client(fleet.builder().credentials("lock", SECRETS[1])).await;
        let guard = client.on("r").acquire().await.unwrap();
        for process in std::fs::read_dir("/proc").unwrap().flatten() {
            let shown = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            clean("a command line", &String::from_utf8_lossy(&shown));
        }
        // The names of threads and the environment are shown too.
        for thread in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
            clean("a thread", &std::fs::read_to_string(thread.path().join("comm")).unwrap_or_default());
        }
        let environment = std::fs::read("/proc/self/environ").unwrap();
        clean("the environment", &String::from_utf8_lossy(&environment));
        drop(guard);
    });
}

// Rule 10; B97: the holder's log warns one renewal period before the loss.
#[test]
fn a_lock_at_risk_is_told_before_it_is_lost() {
    run(async {
        let log = log();
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        // Other tests of this process may log a lot: only what comes from here on is read.
        let mark = log.len();
        let guard = client.on("in danger").ttl(ms(3_000)).acquire().await.unwrap();
        let said = |words: &str| {
            let ours = |line: &&str| line.contains("in danger") && line.contains(words);
            log.since(mark).lines().filter(ours).count()
        };
        fleet.freeze(0..3);
        eventually("a warning", SOON, || said("at risk") == 1).await;
        assert!(guard.is_valid() && guard.remaining() > ms(50), "warned too late: {:?}", guard.remaining());
        fleet.thaw(0..3);
        eventually("the recovery", SOON, || said("renewed again") >= 1).await;
        assert!(guard.is_valid());
        fleet.freeze(0..3);
        let _ = guard.lost().await;
        eventually("the loss", SOON, || said("lost") >= 1).await;
        assert_eq!(said("ERROR"), 1, "told once, and as an error");
    });
}
