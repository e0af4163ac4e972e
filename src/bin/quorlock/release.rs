//! `quorlock release`: gives a lock of another process back.

use quorlock::{HolderId, Released};
use serde_json::{Value, json};

use crate::acquire::closing;
use crate::args::{Global, Release};
use crate::exit::{Exit, Failure};
use crate::fleet::{self, Fleet};
use crate::output;

pub(crate) async fn run(global: &Global, args: &Release) -> Result<Exit, Failure> {
    let fleet = Fleet::of(global)?;
    let resources = fleet::resources(&args.resources)?;
    let holder = HolderId::parse(&args.holder)?;
    let redlock = fleet.builder.releases_only().connect().await?;
    let masters = redlock.quorum().masters();
    let released = closing(&redlock, redlock.release_all_as(&resources, &holder)).await?;

    let (key, names) = output::of(&resources);
    let report = |deleted: usize, unknown: usize| -> Value {
        json!({
            key: names,
            "holder": args.holder,
            "validity_ms": 0,
            // A master that has no key of ours does not say whose it has.
            "votes": {
                "granted": deleted,
                "held": 0,
                "failed": 0,
                "unknown": unknown,
                "absent": masters.saturating_sub(deleted + unknown),
            },
            "fence": null,
        })
    };
    match released {
        Released::Freed { deleted: 0, pending } => {
            let text = format!(
                "{} {} not held by {}: its ttl is over, it was released, or the lock is somebody else's. \
                 Nothing was deleted.",
                output::names(&resources),
                if resources.len() == 1 { "is" } else { "are" },
                args.holder
            );
            Err(Failure::new(Exit::NotHeld, "not_held", text).with(report(0, pending.len())))
        }
        Released::Freed { deleted, pending } => {
            let mut json = report(deleted, pending.len());
            json["outcome"] = "released".into();
            output::result(global, "released", &json);
            Ok(Exit::Done)
        }
        Released::Lingering { on, up_to } => {
            let mut text = format!(
                "no quorum: too few masters said that the key is gone. On these it may stay, for {} at most:",
                crate::duration::show(up_to)
            );
            for (master, answer) in &on {
                text.push_str(&format!("\n  {master}: {answer}"));
            }
            text.push_str("\nRelease again when they can be reached, or let its ttl end it.");
            Err(Failure::new(Exit::NoQuorum, "lingering", text).with(report(0, on.len())))
        }
        lost @ Released::AlreadyLost(_) => {
            Err(Failure::new(Exit::Lost, "lost", format!("{lost:?}")).with(report(0, 0)))
        }
    }
}
