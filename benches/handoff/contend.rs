//! Contenders, as tasks of this process or as processes of their own.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use quorlock::Redlock;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{CONTENDERS, Failure, RESOURCE};

const HOLD: Duration = Duration::from_millis(5);
const PAUSE: Duration = Duration::from_millis(20);

/// What one contender came to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turns {
    pub(crate) count: u64,
    pub(crate) failed: u64,
    held: Duration,
}

/// What all of them came to.
pub(crate) struct Round {
    pub(crate) turns: Vec<Turns>,
    took: Duration,
}

impl Round {
    pub(crate) fn count(&self) -> u64 {
        self.turns.iter().map(|turns| turns.count).sum()
    }

    pub(crate) fn hold(&self) -> Duration {
        self.turns.iter().map(|turns| turns.held).sum::<Duration>() / self.count().max(1) as u32
    }

    /// From one's release to the next one's win. The lock is wanted all the time.
    pub(crate) fn handoff(&self) -> Duration {
        (self.took / self.count().max(1) as u32).saturating_sub(self.hold())
    }
}

/// Lets all contenders at the lock, in one process or in several.
pub(crate) async fn round(urls: &[String], processes: usize, time: Duration) -> Result<Round, Failure> {
    if processes == 1 {
        let client = Redlock::connect(urls).await?;
        let mut tasks = JoinSet::new();
        let began = Instant::now();
        for _ in 0..CONTENDERS {
            tasks.spawn(contend(client.clone(), time));
        }
        let turns = tasks.join_all().await;
        return Ok(Round { turns, took: began.elapsed() });
    }
    let mut children = (0..processes).map(|_| start(urls)).collect::<Result<Vec<_>, _>>()?;
    let began = Instant::now();
    for (child, _) in &mut children {
        writeln!(child.stdin.as_mut().ok_or("no stdin")?, "{}", time.as_millis())?;
    }
    let mut turns = Vec::new();
    for (child, lines) in &mut children {
        let told: Value = serde_json::from_str(&line(lines)?)?;
        let number = |name: &str| told[name].as_u64().ok_or("a child said nonsense");
        turns.push(Turns {
            count: number("count")?,
            failed: number("failed")?,
            held: Duration::from_micros(number("held_us")?),
        });
        child.wait()?;
    }
    // The last ones to come out hold no more than one turn each after the end.
    Ok(Round { turns, took: began.elapsed() })
}

type Lines = BufReader<std::process::ChildStdout>;

fn start(urls: &[String]) -> Result<(Child, Lines), Failure> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--child", &urls.join(",")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no stdout")?);
    line(&mut lines)?;
    Ok((child, lines))
}

fn line(lines: &mut Lines) -> Result<String, Failure> {
    let mut line = String::new();
    lines.read_line(&mut line)?;
    Ok(line)
}

/// One contender that is a process: says when it is ready, is told for how long, tells what it came to.
pub(crate) async fn child(urls: &str) -> Result<(), Failure> {
    let client = Redlock::connect(urls.split(',')).await?;
    println!("ready");
    let mut words = String::new();
    std::io::stdin().read_line(&mut words)?;
    let turns = contend(client, Duration::from_millis(words.trim().parse()?)).await;
    println!(
        "{}",
        json!({ "count": turns.count, "failed": turns.failed, "held_us": turns.held.as_micros() as u64 })
    );
    Ok(())
}

async fn contend(client: Redlock, time: Duration) -> Turns {
    let end = Instant::now() + time;
    let mut turns = Turns::default();
    while Instant::now() < end {
        match client.lock(RESOURCE).wait(Duration::from_secs(10)).acquire().await {
            Ok(guard) => {
                let began = Instant::now();
                tokio::time::sleep(HOLD).await;
                turns.held += began.elapsed();
                turns.count += 1;
                let _ = guard.release().await;
            }
            Err(_) => turns.failed += 1,
        }
        tokio::time::sleep(PAUSE).await;
    }
    turns
}
