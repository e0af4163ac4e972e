//! The ways to the masters, made longer. On a thread of their own, so that they cost the client nothing.

use std::time::Duration;

use quorlock::testbed::{Flow, Proxy};
use tokio::runtime::{Builder, Runtime};

/// A proxy in front of each master.
#[derive(Debug)]
pub(crate) struct Ways {
    proxies: Vec<Proxy>,
    runtime: Option<Runtime>,
}

impl Ways {
    pub(crate) async fn to(masters: &[String]) -> Result<Self, String> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| format!("no thread for the proxies: {error}"))?;
        let mut ways = Self { proxies: Vec::new(), runtime: None };
        for master in masters.iter().cloned() {
            let started = runtime.spawn(async move { Proxy::start(master).await }).await;
            match started {
                Ok(Ok(proxy)) => ways.proxies.push(proxy),
                Ok(Err(error)) => {
                    runtime.shutdown_background();
                    return Err(format!("no proxy: {error}"));
                }
                Err(error) => {
                    runtime.shutdown_background();
                    return Err(format!("no proxy: {error}"));
                }
            }
        }
        ways.runtime = Some(runtime);
        Ok(ways)
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.proxies.iter().map(Proxy::url).collect()
    }

    /// Round trips of these milliseconds, master by master, and up to so many more.
    pub(crate) fn stretch(&self, millis: &[f64], jitter: f64) {
        let half = |millis: f64| Duration::from_secs_f64(millis / 2e3);
        for (proxy, millis) in self.proxies.iter().zip(millis) {
            proxy.set_both(Flow::new().delayed(half(*millis)).jittered(half(jitter)));
        }
    }

    /// Whether this master takes connections.
    pub(crate) async fn open(&self, master: usize, open: bool) {
        if let Some(proxy) = self.proxies.get(master) {
            if open { proxy.accept().await } else { proxy.refuse().await }
        }
    }
}

/// A runtime may not be dropped where another one is at work.
impl Drop for Ways {
    fn drop(&mut self) {
        self.proxies.clear();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
