//! The bed as the tests use it.

use std::future::Future;
use std::process::{Command, Output};
use std::time::Duration;

use quorlock::testbed::{Containers, Fault, Outcome, Reply, Wire};
use quorlock::{Policy, Redlock};

/// Far above what any test here takes, so that only a hang meets it.
const BOUND: Duration = Duration::from_secs(180);

/// The fleet's longest ttl: short, so that quarantines are.
pub(crate) const MAX_TTL: Duration = Duration::from_secs(4);

pub(crate) struct Bed {
    pub(crate) containers: Containers,
    /// Through the proxies.
    pub(crate) urls: Vec<String>,
    /// Without them.
    pub(crate) direct: Vec<String>,
}

/// A fault in force for as long as this lives.
#[must_use]
pub(crate) struct Broken<'a> {
    bed: &'a Bed,
    master: usize,
    fault: Fault,
}

impl Bed {
    /// Masters that are up, empty, and admitted.
    pub(crate) async fn fresh() -> Self {
        let bed = Self::unadmitted();
        Redlock::builder().masters(&bed.direct).policy(policy()).init().await.unwrap();
        bed
    }

    pub(crate) fn unadmitted() -> Self {
        let containers = Containers::from_env().expect("no containers: run this by `sh docker/run.sh test`");
        let (urls, direct) = (containers.urls().unwrap(), containers.direct_urls().unwrap());
        let bed = Self { containers, urls, direct };
        for master in 1..=5 {
            assert!(bed.ask(master, &["FLUSHALL"]).is_ok());
        }
        bed
    }

    pub(crate) fn name(&self, container: &str) -> String {
        format!("{}-{container}", self.containers.project())
    }

    /// Puts a fault in force until the returned value is dropped.
    pub(crate) fn broken(&self, master: usize, word: &str) -> Broken<'_> {
        let fault = word.parse().unwrap();
        assert_eq!(self.containers.inject(master, fault), Outcome::Installed, "m{master}: {word}");
        Broken { bed: self, master, fault }
    }

    /// For faults that leave nothing in force.
    pub(crate) fn done(&self, master: usize, word: &str) {
        assert_eq!(
            self.containers.inject(master, word.parse().unwrap()),
            Outcome::Installed,
            "m{master}: {word}"
        );
    }

    /// A connection to one master, counted from 1, past the proxies.
    pub(crate) fn wire(&self, master: usize) -> std::io::Result<Wire> {
        wire(&self.direct[master - 1])
    }

    pub(crate) fn ask(&self, master: usize, command: &[&str]) -> Reply {
        self.wire(master).unwrap().command(command).unwrap()
    }

    /// On how many masters that are up a key stands.
    pub(crate) fn copies(&self, key: &str) -> usize {
        let has = |master: &usize| {
            let reply = self.wire(*master).and_then(|mut wire| wire.command(&["EXISTS", key]));
            reply.is_ok_and(|reply| reply.integer() == Some(1))
        };
        (1..=5).filter(has).count()
    }
}

impl Broken<'_> {
    pub(crate) fn undone(self) {
        let (bed, master, fault) = (self.bed, self.master, self.fault);
        drop(self);
        // The drop's own undoing says nothing; a second one finds it done.
        let again = bed.containers.undo(master, fault);
        assert!(!matches!(again, Outcome::Indeterminate { .. }), "m{master}: undo {fault}: {again}");
    }
}

impl Drop for Broken<'_> {
    fn drop(&mut self) {
        let outcome = self.bed.containers.undo(self.master, self.fault);
        if !outcome.is_installed() {
            eprintln!("m{}: undo {}: {outcome}", self.master, self.fault);
        }
    }
}

pub(crate) fn policy() -> Policy {
    Policy::new().with_max_ttl(MAX_TTL).with_master_timeout(Duration::from_millis(500))
}

pub(crate) async fn client(urls: &[String]) -> Redlock {
    Redlock::builder().masters(urls).policy(policy()).connect().await.unwrap()
}

pub(crate) fn wire(url: &str) -> std::io::Result<Wire> {
    Wire::connect(url.trim_start_matches("redis://").parse().unwrap())
}

pub(crate) async fn bounded(test: impl Future<Output = ()>) {
    tokio::time::timeout(BOUND, test).await.expect("it hangs");
}

/// Looks until it is so.
pub(crate) async fn eventually(what: &str, within: Duration, mut reached: impl AsyncFnMut() -> bool) {
    let looking = async {
        while !reached().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    assert!(tokio::time::timeout(within, looking).await.is_ok(), "not within {within:?}: {what}");
}

pub(crate) fn docker(words: &[&str]) -> Output {
    Command::new("docker").args(words).output().unwrap()
}

pub(crate) fn docker_ok(words: &[&str]) -> String {
    let output = docker(words);
    assert!(output.status.success(), "docker {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
