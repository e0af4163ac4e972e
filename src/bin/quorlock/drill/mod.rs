//! `quorlock drill`: a rehearsal before going live. Work that is shorter and longer than the ttl, with and without renewal, on
//! masters that are all well and with one that is frozen; counts who was in where another was still at work.
//!
//! | file | is |
//! |---|---|
//! | `site` | the masters it runs on |
//! | `trial` | one kind of work, and what came of it |
//! | `register` | what is worked on, and how often two were in it |
//! | `contender` | who works |
//! | `pace` | how long the user's own work takes, and what to choose |
//! | `verdict` | what it comes to |

mod contender;
mod pace;
mod register;
mod site;
mod trial;
mod verdict;

use std::time::Duration;

use futures::future::join_all;
use quorlock::Redlock;
use quorlock::protocol::request::Ttl;

use crate::args::{Drill, Global};
use crate::duration::show;
use crate::exit::{Exit, Failure};
use crate::output::{self, note};
use crate::signals::Signals;
use pace::Pace;
use site::Site;
use trial::Trial;
use verdict::Verdict;

/// Short, so that a rehearsal is not mostly waiting.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(150));

pub(crate) async fn run(global: &Global, args: &Drill) -> Result<Exit, Failure> {
    let site = Site::choose(global, args)?;
    Ttl::new(args.ttl, &site.policy())?;
    let mut signals = Signals::catch()?;
    let interrupted = |exit| Failure::interrupted(exit, "interrupted; what is held ends by its ttl");
    let verdict = signals.or(rehearse(global, args, site)).await.map_err(interrupted)??;
    output::result(global, verdict.text(), &verdict.json());
    if verdict.problems().is_empty() {
        return Ok(Exit::Done);
    }
    // The object is out already; what is left is for a person.
    note(format_args!("error: {}", verdict.problems().join("\n  ")));
    Ok(Exit::NotHeld)
}

async fn rehearse(global: &Global, args: &Drill, mut site: Site) -> Result<Verdict, Failure> {
    let tell = |text: String| {
        if !global.quiet {
            note(text);
        }
    };
    let pace = Pace::of(args, &tell).await?;
    site.set_up().await?;
    let policy = site.policy();
    let builder = site.builder().policy(policy.with_backoff(BACKOFF.0, BACKOFF.1));
    let clients = (1..=args.contenders).map(|nth| builder.clone().label(format!("drill-{nth}")).connect());
    let clients: Vec<Redlock> = join_all(clients).await.into_iter().collect::<Result<_, _>>()?;

    tell(site.about());
    tell(format!(
        "six runs at once, in each {} contenders work {} at a ttl of {}; nothing is flushed or left but what ends by its ttl",
        args.contenders,
        if args.rounds == 1 { "once".to_owned() } else { format!("{} times", args.rounds) },
        show(args.ttl),
    ));
    let mut trials = at_once(args, &clients, false).await;
    if site.freeze_one()? {
        tell("the same with m2 frozen (SIGSTOP): it accepts, and never answers".to_owned());
        trials.extend(at_once(args, &clients, true).await);
    }
    for client in &clients {
        let _ = client.close().await;
    }
    Ok(Verdict::of(args, &policy, pace, trials))
}

/// Each kind of work has a lock of its own, so that they need not wait for each other.
async fn at_once(args: &Drill, clients: &[Redlock], frozen: bool) -> Vec<Trial> {
    let trials = Trial::all(args, frozen);
    let works =
        trials.iter().flat_map(|trial| clients.iter().map(|client| contender::contend(client, trial)));
    join_all(works).await;
    trials
}
