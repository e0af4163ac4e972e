//! The masters of a run: our own, or those of the user.

use std::time::{Duration, Instant};

use quorlock::testbed::{LocalMaster, ServerBinary, Testbed};
use quorlock::{Policy, Redlock};

use super::bare::{BareFred, Manner};
use super::ear::Ear;
use super::keys;

/// How long a replica may take until it has what its master has.
const SYNCHRONISED: Duration = Duration::from_secs(10);

/// As many as the longest row needs.
const MASTERS: usize = 7;

pub(crate) struct Site {
    pub(crate) masters: Vec<String>,
    pub(crate) policy: Policy,
    /// Five at most: what the costs of a row are counted on.
    pub(crate) asked: BareFred,
    own: Option<Own>,
}

struct Own {
    bed: Testbed,
    single: LocalMaster,
    replica: LocalMaster,
}

impl Site {
    /// Masters of this machine, gone with it.
    pub(crate) async fn start(policy: Policy) -> Result<Self, String> {
        let bed = Testbed::start(MASTERS).map_err(|error| error.to_string())?;
        let binary = ServerBinary::find().map_err(|error| error.to_string())?;
        let start =
            |arguments: &[&str]| LocalMaster::start(&binary, arguments).map_err(|error| error.to_string());
        // Without the usual pause of five seconds before the first synchronisation, in case more replicas come.
        let single = start(&["--repl-diskless-sync-delay", "0"])?;
        let port = single.port().to_string();
        let replica = start(&["--replicaof", "127.0.0.1", &port])?;
        wait_for_replica_of(&single).await?;
        let masters = bed.urls();
        let builder = Redlock::builder().masters(&masters).policy(policy);
        builder.init().await.map_err(|error| error.to_string())?;
        let asked = BareFred::connect(&masters, Manner::Limited).await?;
        Ok(Self { masters, policy, asked, own: Some(Own { bed, single, replica }) })
    }

    /// These. They may hold anything else.
    pub(crate) async fn of(masters: Vec<String>, policy: Policy) -> Result<Self, String> {
        let asked = BareFred::connect(&masters, Manner::Limited).await?;
        Ok(Self { masters, policy, asked, own: None })
    }

    pub(crate) const fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Counts from now on what the first `count` masters are told. None for masters of others: listening slows them down.
    pub(crate) fn listen(&self, count: usize) -> Result<Vec<Ear>, String> {
        self.own.iter().flat_map(|own| own.bed.masters()).take(count).map(Ear::on).collect()
    }

    /// A master with a replica.
    pub(crate) fn replicated(&self) -> Option<[String; 1]> {
        self.own.as_ref().map(|own| [own.single.url()])
    }

    pub(crate) fn pids(&self) -> Vec<u32> {
        let Some(own) = &self.own else { return Vec::new() };
        own.bed.masters().iter().chain([&own.single, &own.replica]).filter_map(LocalMaster::pid).collect()
    }

    /// Deletes what a failed row may have left on masters that stay.
    pub(crate) async fn clean(&self) -> Result<usize, String> {
        if self.is_own() {
            return Ok(0);
        }
        // What was under way when a row ended.
        tokio::time::sleep(Duration::from_millis(50)).await;
        self.asked.sweep(keys::prefix()).await
    }
}

/// Until the master counts it: the replica says so up to a second earlier, and `WAIT` would end without it.
async fn wait_for_replica_of(master: &LocalMaster) -> Result<(), String> {
    let began = Instant::now();
    while began.elapsed() < SYNCHRONISED {
        let info = master.info().map_err(|error| format!("the replica's master: {error}"))?;
        if info.get("slave0").is_some_and(|replica| replica.contains("state=online")) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Err(format!("the replica did not come up in {} s", SYNCHRONISED.as_secs()))
}
