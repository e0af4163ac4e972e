//! `quorlock run`: a command under a lock, which is over before the lock is.

mod group;
mod job;
pub(crate) mod launch;
mod program;
mod report;
mod signals;
mod terminal;
mod terms;
pub(crate) mod warden;
mod watch;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use quorlock::{AcquireError, FencingToken, Guard, Released};
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use crate::args::Global;
use crate::args::Run;
use crate::duration::{millis, show};
use crate::exit::{Exit, Failure};
use crate::fleet::{self, Fleet};
use crate::output;
use job::Job;
use report::{Report, Weight};
use signals::Signals;
use terms::Terms;
use watch::{Outcome, Watch};

/// Whatever goes wrong is reported here, since standard output is the command's.
pub(crate) async fn run(global: &Global, args: &Run) -> Exit {
    let mut report = match Report::open(global, args) {
        Ok(report) => report,
        Err(failure) => {
            output::note(format_args!("quorlock: error: {}", failure.text));
            return failure.exit;
        }
    };
    let exit = under_a_lock(global, args, &mut report).await.unwrap_or_else(|failure| {
        let (weight, exit) = match failure.exit {
            Exit::Busy if args.skip_if_busy => (Weight::Detail, Exit::Done),
            Exit::Busy => (Weight::Error, args.busy_exit_code.map_or(Exit::Busy, Exit::Code)),
            exit => (Weight::Error, exit),
        };
        report.failure(weight, &failure);
        exit
    });
    report.event("exit", json!({ "code": exit.code() }));
    exit
}

async fn under_a_lock(global: &Global, args: &Run, report: &mut Report) -> Result<Exit, Failure> {
    let Fleet { builder, policy } = Fleet::of(global)?;
    let terms = Terms::of(args, &policy)?;
    let resources = fleet::resources(&args.resources)?;
    let name = args.command.first().ok_or_else(no_command)?;
    program::check(name)?;
    let mut signals = Signals::catch()?;
    let interrupted = |exit| {
        Failure::interrupted(
            exit,
            "interrupted while waiting; the command was not started, and nothing is held",
        )
    };

    let redlock = signals.or(builder.connect()).await.map_err(interrupted)??;
    let mut request = redlock.lock_all(&resources).ttl(terms.ttl).wait(terms.wait);
    if args.fence {
        request = request.fenced();
    }
    if let Some(longest) = terms.max_hold {
        request = request.max_hold(longest);
    }
    let ended = match signals.or(request.acquire()).await {
        Err(signal) => Err(interrupted(signal)),
        Ok(Err(error)) => Err(refused(error, &resources)),
        Ok(Ok(guard)) => hold(guard, &resources, &args.command, &terms, &mut signals, report).await,
    };
    // What an attempt that failed may have left is deleted before this ends.
    let _ = redlock.close().await;
    ended
}

/// Runs the command, and gives the lock back when it may.
async fn hold(
    guard: Guard,
    resources: &[&[u8]],
    command: &[OsString],
    terms: &Terms,
    signals: &mut Signals,
    report: &mut Report,
) -> Result<Exit, Failure> {
    let since = Instant::now();
    let (holder, token) = (guard.holder().to_string(), guard.fence().ok());
    let (key, names) = output::of(resources);
    report.say(
        Weight::Detail,
        "acquired",
        format_args!("holds {} as {holder}", output::names(resources)),
        json!({
            key: names,
            "holder": holder,
            "validity_ms": millis(guard.remaining()),
            "votes": output::votes(&guard.tally()),
            "fence": token.map(FencingToken::as_u64),
        }),
    );
    let mut environment = vec![
        ("QUORLOCK_RESOURCE", OsString::from_vec(resources.join(&b'\n'))),
        ("QUORLOCK_HOLDER", holder.into()),
    ];
    environment.extend(token.map(|token| ("QUORLOCK_FENCE", token.to_string().into())));
    signals.catch_stops()?;
    let job = Job::prepare(command, &environment).await;
    let job = job.map_err(|error| Failure::other(format!("cannot start the command: {error}")))?;
    // A signal that came meanwhile: nothing begins after it.
    if let Err(exit) = signals.or(std::future::ready(())).await {
        job.never_begin();
        give_back(guard, report).await;
        return Err(Failure::interrupted(exit, "interrupted; the command was not started"));
    }
    let Outcome { exit, lost, told_to_end, out_of_reach } =
        match Watch::over(&guard, job, signals, report, terms).until_all_ended().await {
            Ok(outcome) => outcome,
            Err(failure) => {
                // The warden ends the command, some time after this: nobody may have the lock until then.
                let _ = guard.abandon();
                return Err(failure);
            }
        };
    if let Some(why) = lost {
        let end = if out_of_reach { "could not be ended" } else { "was ended" };
        let text = format!("lost while the command ran, which {end}: {why}");
        return Err(Failure::new(Exit::Lost, "lost", text).with(json!({ key: names, "code": exit.code() })));
    }
    let until = since + terms.hold_at_least;
    if until > Instant::now() {
        if told_to_end {
            return Ok(leave(guard, exit, report));
        }
        tokio::select! {
            biased;
            _ = signals.ending() => return Ok(leave(guard, exit, report)),
            lost = guard.lost() => {
                let text = format!("--hold-at-least {} was not kept: {lost}", show(terms.hold_at_least));
                report.say(Weight::Notice, "hold_at_least_not_kept", text, json!({}));
            }
            () = sleep_until(until) => {}
        }
    }
    give_back(guard, report).await;
    Ok(exit)
}

/// Somebody has no time to wait until the lock was held long enough: its ttl ends it.
fn leave(guard: Guard, exit: Exit, report: &mut Report) -> Exit {
    let left = guard.remaining();
    let holder = guard.abandon();
    let text = format!("the lock of {holder} is left to its ttl, {}", show(left));
    report.say(Weight::Detail, "left", text, json!({ "validity_ms": millis(left) }));
    exit
}

async fn give_back(guard: Guard, report: &mut Report) {
    match guard.release().await {
        Released::Freed { .. } => report.say(Weight::Detail, "released", "released", json!({})),
        Released::Lingering { on, up_to } => {
            let mut text = format!("the lock may stay for {} at most, on these masters:", show(up_to));
            for (master, answer) in &on {
                text.push_str(&format!("\n  {master}: {answer}"));
            }
            report.say(Weight::Notice, "lingering", text, json!({ "up_to_ms": millis(up_to) }));
        }
        Released::AlreadyLost(lost) => {
            report.say(
                Weight::Notice,
                "lost_after_the_end",
                format_args!("after the command ended, {lost}"),
                json!({}),
            );
        }
    }
}

fn refused(error: AcquireError, resources: &[&[u8]]) -> Failure {
    let (key, names) = output::of(resources);
    Failure::from(error).with(json!({ key: names }))
}

fn no_command() -> Failure {
    Failure::new(Exit::Usage, "bad_request", "no command: quorlock run RESOURCE -- COMMAND ARGUMENTS…")
}
