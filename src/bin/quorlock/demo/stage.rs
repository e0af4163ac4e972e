//! Masters, contenders, books and time line together.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quorlock::testbed::{Breakable, Containers, Fault, Testbed, TestbedError};
use quorlock::{Policy, Redlock};
use tokio::time::{Instant, sleep_until};

use super::crew::{Crew, Part};
use super::event::now;
use super::ledger::Ledger;
use super::story::Story;
use crate::args::{Demo, Global};
use crate::exit::Failure;
use crate::output;

/// Short, so that a minute suffices to see locks expire.
pub(crate) const TTL: Duration = Duration::from_millis(1_500);
pub(crate) const MAX_TTL: Duration = Duration::from_secs(3);
const MASTER_TIMEOUT: Duration = Duration::from_millis(200);

const MASTERS: usize = 5;

/// Longer than anything here takes on a busy machine: meeting it is a failure, not a delay.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// How often the progress line is written anew.
const TICK: Duration = Duration::from_millis(200);

pub(crate) struct Stage {
    bed: Arc<dyn Breakable>,
    masters: Vec<String>,
    pub(crate) crew: Crew,
    pub(crate) ledger: Ledger,
    pub(crate) story: Story,
    pub(crate) counter: PathBuf,
    folder: PathBuf,
    /// Contenders that are meant to be gone.
    pub(crate) dead: Vec<usize>,
    contenders: usize,
    /// When the progress line is due.
    tick: Instant,
}

impl Stage {
    pub(crate) async fn set(global: &Global, args: &Demo, folder: &Path) -> Result<Self, Failure> {
        let mut story = Story::begin(global);
        let containers = args.containers.clone().filter(|project| !project.is_empty()).map(Containers::of);
        let set_up = tokio::task::spawn_blocking(move || -> Result<_, TestbedError> {
            let bed: Arc<dyn Breakable> = match containers {
                Some(containers) => Arc::new(containers),
                None => Arc::new(Testbed::start(MASTERS)?),
            };
            let masters = bed.urls()?;
            Ok((bed, masters))
        });
        let (bed, masters) = set_up.await.map_err(panicked)??;
        let policy = Policy::new().with_max_ttl(MAX_TTL).with_master_timeout(MASTER_TIMEOUT);
        Redlock::builder().masters(&masters).policy(policy).init().await?;
        let addresses: Vec<&str> = masters.iter().map(|url| url.trim_start_matches("redis://")).collect();
        story.tell(&format!("five masters are up, admitted as fresh: {}", addresses.join(" ")));

        let counter = folder.join("counter");
        std::fs::write(&counter, "0")
            .map_err(|error| Failure::other(format!("cannot write {}: {error}", counter.display())))?;
        let contenders = usize::from(args.contenders);
        let part = Part {
            masters: &masters,
            counter: &counter,
            ttl: TTL,
            max_ttl: MAX_TTL,
            master_timeout: MASTER_TIMEOUT,
        };
        let crew = Crew::start(contenders, &part, folder)?;
        let ledger = Ledger::of(contenders);
        let folder = folder.to_owned();
        let mut stage = Self {
            bed,
            masters: masters.clone(),
            crew,
            ledger,
            story,
            counter,
            folder,
            dead: Vec::new(),
            contenders,
            tick: Instant::now(),
        };
        stage
            .until("all contenders are ready", |ledger| (ledger.ready() == contenders).then_some(()))
            .await?;
        stage.tell(&format!(
            "{contenders} processes increment a number in a file under one lock, ttl {} ms, renewed",
            TTL.as_millis()
        ));
        Ok(stage)
    }

    /// Says what happened, and who holds the lock.
    pub(crate) fn tell(&mut self, what: &str) {
        self.catch_up();
        let holder = self.ledger.holder(now()).map_or_else(
            || "nobody holds the lock".to_owned(),
            |holder| format!("contender {} holds the lock", holder + 1),
        );
        self.story.tell(&format!("{what} ({holder}; {} increments)", self.ledger.wrote()));
    }

    /// Listens for as long.
    pub(crate) async fn watch(&mut self, duration: Duration) -> Result<(), Failure> {
        self.listen(Instant::now() + duration, |_| None::<()>).await.map(drop)
    }

    /// Listens until the moment that many seconds after the beginning.
    pub(crate) async fn watch_until(&mut self, seconds: f64) -> Result<(), Failure> {
        let left = seconds - self.story.elapsed(now());
        self.watch(Duration::from_secs_f64(left.max(0.0))).await
    }

    /// Listens until the books say so.
    pub(crate) async fn until<T>(
        &mut self,
        what: &str,
        look: impl FnMut(&mut Ledger) -> Option<T>,
    ) -> Result<T, Failure> {
        let found = self.listen(Instant::now() + PATIENCE, look).await?;
        found.ok_or_else(|| {
            self.show_logs();
            Failure::other(format!("the demo waited {} s in vain until {what}", PATIENCE.as_secs()))
        })
    }

    async fn listen<T>(
        &mut self,
        limit: Instant,
        mut look: impl FnMut(&mut Ledger) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        loop {
            if let Some(found) = look(&mut self.ledger) {
                return Ok(Some(found));
            }
            let now = Instant::now();
            if now >= limit {
                return Ok(None);
            }
            if now >= self.tick {
                self.tick = now + TICK;
                self.story.progress(&self.ledger);
            }
            tokio::select! {
                biased;
                heard = self.crew.next() => match heard {
                    Some(heard) => self.hear(heard),
                    None => return Err(Failure::other("all contenders are gone")),
                },
                () = sleep_until(limit.min(self.tick)) => {}
            }
        }
    }

    fn catch_up(&mut self) {
        while let Some(heard) = self.crew.heard_already() {
            self.hear(heard);
        }
    }

    fn hear(&mut self, (contender, event): super::crew::Heard) {
        match event {
            Some(event) => self.ledger.enter(contender, event),
            None if self.dead.contains(&contender) || self.ledger.is_finished(contender) => {}
            None => self.ledger.problem(format!("contender {} ended by itself", contender + 1)),
        }
    }

    /// Breaks or mends a master, while the contenders go on.
    pub(crate) async fn inject(&self, index: usize, fault: Fault) -> Result<(), Failure> {
        let bed = self.bed.clone();
        let act = tokio::task::spawn_blocking(move || bed.inject(index + 1, fault));
        let outcome = act.await.map_err(panicked)?;
        if outcome.is_installed() {
            return Ok(());
        }
        Err(Failure::other(format!("the test bed failed: m{}: {fault}: {outcome}", index + 1)))
    }

    /// The URL of one master.
    pub(crate) fn master(&self, index: usize) -> String {
        self.masters[index].clone()
    }

    pub(crate) fn contenders(&self) -> usize {
        self.contenders
    }

    /// The contenders' last words, on standard error, when something is wrong.
    pub(crate) fn show_logs(&self) {
        for contender in 1..=self.contenders {
            let log = self.folder.join(format!("contender-{contender}.log"));
            let log = std::fs::read_to_string(log).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            for line in &lines[lines.len().saturating_sub(5)..] {
                output::note(format_args!("contender {contender}: {line}"));
            }
        }
    }
}

fn panicked(error: tokio::task::JoinError) -> Failure {
    Failure::other(format!("the test bed failed: {error}"))
}
