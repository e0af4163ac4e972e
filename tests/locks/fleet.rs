//! Five fresh masters a test, clients of them, and looks at them from outside.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::time::{Duration, Instant};

use quorlock::testbed::{LocalMaster, Reply, Testbed, Wire};
use quorlock::{AcquireError, Builder, Guard, LockRequest, Policy, Redlock, Refusal};

/// Far above what any test here takes, so that only a hang meets it.
const BOUND: Duration = Duration::from_secs(60);
/// For what ought to happen at once, on a machine that does much else. Below [`TTL`], so that no key can be gone in
/// time because it expired.
pub(crate) const SOON: Duration = Duration::from_secs(10);
const TTL: Duration = Duration::from_secs(15);

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Runs a test on a runtime of its own, and fails it if it does not end.
///
/// It runs on the calling thread, so that its blocking looks at masters hold up none of the client's tasks.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(BOUND, test).await.expect("the test hangs") });
    runtime.shutdown_timeout(ms(500));
}

pub(crate) async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Waits for what is about to happen.
pub(crate) async fn eventually(what: &str, within: Duration, mut reached: impl FnMut() -> bool) {
    let limit = Instant::now() + within;
    while !reached() {
        assert!(Instant::now() < limit, "not within {within:?}: {what}");
        pause(ms(5)).await;
    }
}

/// Long enough for a machine with two busy cores, short enough for a test.
pub(crate) const fn policy() -> Policy {
    Policy::new().with_max_ttl(ms(30_000)).with_master_timeout(ms(300))
}

/// For tests that wait for a quarantine.
pub(crate) const fn forgiving() -> Policy {
    policy().with_max_ttl(ms(2_000))
}

/// Five masters and the policy of their clients.
pub(crate) struct Fleet {
    bed: Testbed,
    policy: Policy,
}

impl Deref for Fleet {
    type Target = Testbed;

    fn deref(&self) -> &Testbed {
        &self.bed
    }
}

impl Fleet {
    /// Five masters that vote.
    pub(crate) async fn start() -> Self {
        Self::with(policy()).await
    }

    pub(crate) async fn with(policy: Policy) -> Self {
        let fleet = Self::fresh(policy);
        assert_eq!(fleet.builder().init().await.unwrap().len(), 5);
        fleet
    }

    /// Five masters that no client has seen.
    pub(crate) fn fresh(policy: Policy) -> Self {
        Self { bed: Testbed::start(5).unwrap(), policy }
    }

    pub(crate) async fn with_arguments(policy: Policy, arguments: &[&str]) -> Self {
        let bed = Testbed::builder().arguments(arguments.iter().copied()).start().unwrap();
        let fleet = Self { bed, policy };
        fleet.builder().init().await.unwrap();
        fleet
    }

    pub(crate) fn builder(&self) -> Builder {
        Redlock::builder().masters(self.urls()).policy(self.policy)
    }

    /// A client for which all five masters vote.
    pub(crate) async fn client(&self) -> Redlock {
        client(self.builder()).await
    }

    /// The masters whose key has this value.
    pub(crate) fn holding(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> usize {
        let (key, value) = (key.as_ref(), value.as_ref());
        let holds = |master: &&LocalMaster| master.get(key).ok().flatten().as_deref() == Some(value);
        self.masters().iter().filter(holds).count()
    }

    /// The masters that carry the guard's key.
    pub(crate) fn backing(&self, guard: &Guard) -> usize {
        self.holding(guard.resource(), guard.holder().as_bytes())
    }

    /// The masters with any value at the key.
    pub(crate) fn occupied(&self, key: impl AsRef<[u8]>) -> usize {
        self.masters().iter().filter(|master| !matches!(master.get(key.as_ref()), Ok(None) | Err(_))).count()
    }

    /// All keys but quorlock's own, on all masters that can be asked.
    pub(crate) fn keys(&self) -> BTreeSet<Vec<u8>> {
        let keys = self.masters().iter().flat_map(|master| master.keys().unwrap_or_default());
        keys.filter(|key| !key.starts_with(b"quorlock:")).collect()
    }

    pub(crate) async fn nothing_left(&self, within: Duration) {
        eventually("no key is left", within, || self.keys().is_empty()).await;
    }

    /// Somebody else's lock, for a minute.
    pub(crate) fn occupy(&self, which: impl IntoIterator<Item = usize>, key: &str) {
        for index in which {
            assert!(self.ask(index, &["SET", key, "somebody", "PX", "60000"]).is_ok());
        }
    }

    pub(crate) fn ask(&self, index: usize, command: &[&str]) -> Reply {
        self[index].command(command).unwrap()
    }

    /// The same on all masters, each of which says OK.
    pub(crate) fn tell(&self, which: impl IntoIterator<Item = usize>, command: &[&str]) {
        for index in which {
            let reply = self.ask(index, command);
            assert!(reply.is_ok(), "{command:?}: {reply:?}");
        }
    }

    /// Closes the connections of all clients but the one that asks.
    pub(crate) fn hang_up(&self, which: impl IntoIterator<Item = usize>) {
        for index in which {
            assert!(self.ask(index, &["CLIENT", "KILL", "TYPE", "normal"]).integer().is_some());
        }
    }

    /// How often a master ran `command`, in scripts too.
    pub(crate) fn calls(&self, index: usize, command: &str) -> u64 {
        let info = self[index].info().unwrap();
        let stats = info.get(&format!("cmdstat_{command}")).map_or("calls=0", String::as_str);
        stats.split([',', '=']).nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn calls_of_all(&self, command: &str) -> u64 {
        (0..5).map(|index| self.calls(index, command)).sum()
    }

    pub(crate) fn stat(&self, index: usize, name: &str) -> u64 {
        self[index].info().unwrap()[name].parse().unwrap()
    }

    pub(crate) fn freeze(&self, which: impl IntoIterator<Item = usize>) {
        which.into_iter().for_each(|index| self[index].freeze().unwrap());
    }

    pub(crate) fn thaw(&self, which: impl IntoIterator<Item = usize>) {
        which.into_iter().for_each(|index| self[index].thaw().unwrap());
    }

    pub(crate) fn kill(&self, which: impl IntoIterator<Item = usize>) {
        which.into_iter().for_each(|index| self[index].kill().unwrap());
    }
}

/// Connects, and waits until all masters vote.
pub(crate) async fn client(builder: Builder) -> Redlock {
    let client = builder.connect().await.unwrap();
    voters(&client, client.masters().len()).await;
    client
}

/// Waits until just so many masters grant a free lock.
pub(crate) async fn voters(client: &Redlock, wanted: usize) {
    let limit = Instant::now() + SOON;
    let mut last = String::new();
    while Instant::now() < limit {
        match client.lock("who votes?").ttl(ms(1_450)).try_acquire().await {
            Ok(guard) => {
                pause(ms(20)).await;
                let votes = guard.votes();
                let _ = guard.release().await;
                if votes == wanted {
                    return;
                }
                last = format!("{votes} votes");
            }
            Err(error) => last = error.to_string(),
        }
        pause(ms(20)).await;
    }
    panic!("{wanted} masters never voted; last: {last}");
}

/// Requests whose keys outlast what a test waits for.
pub(crate) trait Lock {
    fn on(&self, resource: impl AsRef<[u8]>) -> LockRequest;
}

impl Lock for Redlock {
    fn on(&self, resource: impl AsRef<[u8]>) -> LockRequest {
        self.lock(resource).ttl(TTL)
    }
}

/// How long something took, and what it gave.
pub(crate) async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let began = Instant::now();
    let output = work.await;
    (output, began.elapsed())
}

pub(crate) fn no_quorum(error: AcquireError) -> Refusal {
    match error {
        AcquireError::NoQuorum(refusal) => refusal,
        other => panic!("another error than no quorum: {other}"),
    }
}

pub(crate) fn contended(error: AcquireError) -> Refusal {
    match error {
        AcquireError::Contended(refusal) => refusal,
        other => panic!("another error than busy: {other}"),
    }
}

/// What a master is told, word by word.
pub(crate) struct Monitor<'a> {
    master: &'a LocalMaster,
    wire: Wire,
}

impl<'a> Monitor<'a> {
    pub(crate) fn on(master: &'a LocalMaster) -> Self {
        let mut wire = master.wire().unwrap();
        assert!(wire.command(&["MONITOR"]).unwrap().is_ok());
        Self { master, wire }
    }

    /// The commands since the last look, those inside scripts too; each with the mark of a script in front.
    pub(crate) fn commands(&mut self) -> Vec<Heard> {
        const END: &str = "the end of this look";
        assert!(matches!(self.master.command(&["ECHO", END]), Ok(Reply::Bulk(_))));
        let mut heard = Vec::new();
        loop {
            let line = self.wire.reply().unwrap().text().unwrap();
            let (origin, words) = line.split_once("] \"").unwrap();
            let words: Vec<String> =
                words.trim_end_matches('"').split("\" \"").map(ToOwned::to_owned).collect();
            if words.last().is_some_and(|word| word == END) {
                return heard;
            }
            heard.push(Heard { in_script: origin.ends_with(" lua"), words });
        }
    }
}

#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) in_script: bool,
    pub(crate) words: Vec<String>,
}

impl Heard {
    pub(crate) fn is(&self, command: &str) -> bool {
        self.words[0].eq_ignore_ascii_case(command)
    }

    pub(crate) fn names(&self, key: &str) -> bool {
        self.words.iter().any(|word| word == key)
    }
}
