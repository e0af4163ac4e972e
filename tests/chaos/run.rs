//! One run, from five fresh masters to a history.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quorlock::Redlock;
use quorlock::testbed::{Proxy, Testbed};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep, sleep_until};

use crate::client::{self, Part};
use crate::crew::{Crew, Register};
use crate::dice::Dice;
use crate::history::check::{Judgement, Kind, millis};
use crate::history::{Event, History, Run, SCHEMA};
use crate::log::{Log, now};
use crate::nemesis::Nemesis;
use crate::options::Options;
use crate::plan;

type Failure = Box<dyn Error + Send + Sync>;

/// Beyond ttl and drift, until a key that is still there is one too many: a master drops keys ten times a second, but
/// shows none that is over; what may take its time is a command that is still on its way to it.
const KEYS_ARE_GONE_WITHIN: Duration = Duration::from_millis(500);

/// What was seen, and where it lies.
pub(crate) struct Seen {
    pub(crate) history: History,
    pub(crate) judgement: Judgement,
    pub(crate) folder: PathBuf,
}

pub(crate) fn run(options: &Options) -> Result<Seen, Failure> {
    // Before anything is started.
    let kinds = plan::kinds(options.words())?;
    options.mutant.as_deref().map(crate::mutant::Mutant::named).transpose()?;
    let seed = options.seed.unwrap_or_else(|| now() % 1_000_000);
    let folder =
        options.out.clone().unwrap_or_else(|| std::env::temp_dir().join(format!("quorlock-chaos-{seed}")));
    prepare(&folder)?;

    let mut dice = Dice::new(seed);
    let length = Duration::from_secs(options.seconds);
    let planned = plan::draw(&mut dice, &kinds, length, options.ttl(), options.clients as usize);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(live(options, seed, &folder, planned, dice))?;
    // A frozen master's thread may still wait; nothing of it is needed.
    runtime.shutdown_background();

    gather(&folder)?;
    judge(&folder.join("history.jsonl"))
}

/// Reads a history, judges it, and draws it beside the file.
pub(crate) fn judge(file: &Path) -> Result<Seen, Failure> {
    let text = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let history = History::parse(&text);
    let judgement = Judgement::of(&history);
    let folder = file.parent().unwrap_or(Path::new(".")).to_owned();
    fs::write(folder.join("timeline.html"), crate::page::draw(&history, &judgement))?;
    Ok(Seen { history, judgement, folder })
}

async fn live(
    options: &Options,
    seed: u64,
    folder: &Path,
    planned: Vec<plan::Planned>,
    mut dice: Dice,
) -> Result<(), Failure> {
    let log = Log::open(folder, "chaos")?;
    let (ttl, max_ttl) = (options.ttl(), options.max_ttl());
    let bed = spawn_blocking(|| {
        // With a log of all commands, so that data are there to come back with.
        Testbed::builder()
            .masters(5)
            .clocks()
            .arguments(["--appendonly", "yes", "--appendfsync", "always"])
            .start()
    });
    let bed = Arc::new(bed.await??);
    let policy = client::policy(max_ttl);
    Redlock::builder().masters(bed.urls()).policy(policy).init().await?;

    let resources: Vec<String> = (1..=options.resources).map(|number| format!("stock:{number}")).collect();
    let register = Register::start(folder).await?;
    let (mut ways, mut parts) = (Vec::new(), Vec::new());
    for number in 1..=options.clients {
        let mut proxies = Vec::new();
        for url in bed.urls() {
            proxies.push(Proxy::start(url).await?);
        }
        parts.push(Part {
            name: format!("c{number}"),
            first_claim: 0,
            seed: dice.next(),
            masters: proxies.iter().map(Proxy::url).collect(),
            register: register.address,
            resources: resources.clone(),
            ttl,
            max_ttl,
            fenced: options.fenced(),
            oversleep: options.oversleep,
            mutant: options.mutant.clone(),
        });
        ways.push(proxies);
    }
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let mut words: Vec<String> = planned.iter().map(|planned| planned.kind.word().to_owned()).collect();
    words.sort_unstable();
    words.dedup();
    log.say(Event::Run(Run {
        schema: SCHEMA,
        seed,
        clients: options.clients as usize,
        masters: 5,
        ttl: nanos(ttl),
        max_ttl: nanos(max_ttl),
        drift: nanos(policy.drift(ttl)),
        fenced: options.fenced(),
        mutant: options.mutant.clone(),
        command: options.command(seed),
        // A sixth of what was seen without tokens on two processors with twenty processes waiting for them.
        grants: options.seconds as usize,
        contended: options.seconds as usize / 2,
        faults: words,
        overlaps: options.overlaps,
    }));
    let crew = Crew::start(folder, parts)?;
    let nemesis = Arc::new(Nemesis::new(
        Arc::clone(&bed),
        ways,
        crew,
        log.clone(),
        resources.clone(),
        ttl,
        folder.to_owned(),
    ));
    let mut operator = JoinSet::new();
    if options.fenced() {
        operator.spawn(crate::operator::attend(bed.urls(), policy, ttl, log.clone()));
    }
    let began = Instant::now();
    let mut faults = JoinSet::new();
    for (id, planned) in (1..).step_by(2).zip(planned) {
        faults.spawn(Arc::clone(&nemesis).strike(id, planned, began));
    }
    sleep_until(began + Duration::from_secs(options.seconds)).await;
    while let Some(struck) = faults.join_next().await {
        struck?;
    }
    nemesis.crew.lock().await.stop().await.map_err(|error| format!("{error}; see {}", folder.display()))?;
    operator.shutdown().await;
    log.say(Event::Stopped);
    sleep(ttl + policy.drift(ttl) + KEYS_ARE_GONE_WITHIN).await;
    for (index, master) in bed.masters().iter().enumerate() {
        for key in master.keys()? {
            let key = String::from_utf8_lossy(&key).into_owned();
            if resources.contains(&key) {
                log.say(Event::Left { master: format!("m{}", index + 1), key });
            }
        }
    }
    register.stop().await?;
    Ok(())
}

/// The folder, without an earlier run's parts.
fn prepare(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|kind| kind == "jsonl" || kind == "stderr") {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// One file of the processes' parts, in the order of time.
fn gather(folder: &Path) -> io::Result<()> {
    let mut lines: Vec<(u64, String)> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|kind| kind == "jsonl") {
            for line in io::BufReader::new(fs::File::open(&path)?).lines() {
                let line = line?;
                let at = serde_json::from_str::<serde_json::Value>(&line)
                    .ok()
                    .and_then(|line| line["at"].as_u64());
                lines.push((at.unwrap_or(u64::MAX), line));
            }
            fs::remove_file(path)?;
        }
    }
    lines.sort_by_key(|(at, _)| *at);
    let whole = lines.iter().fold(String::new(), |whole, (_, line)| whole + line + "\n");
    fs::write(folder.join("history.jsonl"), whole)
}

/// For a person.
pub(crate) fn tell(seen: &Seen) -> String {
    let Seen { history, judgement, folder } = seen;
    let mut text = String::new();
    let grants: Vec<String> =
        judgement.grants.iter().map(|(client, number)| format!("{client} {number}")).collect();
    let struck = judgement.faults.iter().filter(|fault| !fault.skipped).count();
    let overlaps = (judgement.count(Kind::Overlap, true), judgement.count(Kind::Overlap, false));
    let _ = writeln!(
        text,
        "seed {}: {} locks granted ({}), {} contended, {} claims refused\n\
         {} faults struck, {} were skipped; {} locks lost, told at most {:.0} ms after the deadline\n\
         {} increments, {} lost, {} turned away by their token\n\
         overlaps: {} bugs, {} explained by broken assumptions",
        history.run.seed,
        judgement.holds.len(),
        grants.join(", "),
        judgement.contended,
        judgement.refused,
        struck,
        judgement.faults.len() - struck,
        judgement.lost,
        millis(judgement.worst_told_late),
        judgement.increments,
        judgement.lost_updates,
        judgement.turned_away,
        overlaps.0,
        overlaps.1,
    );
    for finding in judgement.findings.iter().take(40) {
        let _ = writeln!(text, "{finding}");
    }
    let _ = writeln!(
        text,
        "time line: {}\nreplay: {}",
        folder.join("timeline.html").display(),
        history.run.command
    );
    text
}
