//! `quorlock list`: which locks there are.

use std::os::unix::ffi::OsStrExt;

use quorlock::protocol::policy::Policy;
use quorlock::protocol::votes::Remaining;
use quorlock::{Finding, Inspection, KeyState, Listing};
use serde_json::{Value, json};

use crate::args::{Global, List};
use crate::duration::{millis, show};
use crate::exit::{Exit, Failure};
use crate::fleet::Fleet;
use crate::form::Form;
use crate::inspect::{outcome, whole};
use crate::output::{self, note};
use crate::signals::Signals;
use crate::table::Table;

pub(crate) async fn run(global: &Global, args: &List) -> Result<Exit, Failure> {
    let Fleet { builder, policy } = Fleet::of(global)?;
    let mut signals = Signals::catch()?;
    let listing = builder.list(args.pattern.as_bytes(), args.limit);
    let interrupted = |exit| Failure::interrupted(exit, "interrupted while searching");
    let listing = signals.or(listing).await.map_err(interrupted)??;

    let masters = listing.quorum.masters();
    let is_enough = masters - listing.unseen.len() >= listing.quorum.needed();
    let mut found = json!({
        "locks": listing.resources.iter().map(|(key, seen)| object(key, seen, &policy)).collect::<Vec<_>>(),
        "complete": listing.is_complete,
        "unseen": listing.unseen.iter()
            .map(|(master, why)| json!({ "master": master, "why": why.to_string() }))
            .collect::<Vec<_>>(),
    });
    if global.json {
        if is_enough {
            found["outcome"] = "listed".into();
            output::print(&found);
        }
    } else if listing.resources.is_empty() {
        note(format_args!("no string keys match {:?}", args.pattern.to_string_lossy()));
    } else {
        output::print(table(&listing, &policy));
    }
    remarks(global, args, &listing);
    if !is_enough {
        let text = format!(
            "no quorum: {} of {masters} masters could be searched, {} needed to tell who holds what",
            masters - listing.unseen.len(),
            listing.quorum.needed()
        );
        return Err(Failure::new(Exit::NoQuorum, "no_quorum", text).with(found));
    }
    Ok(Exit::Done)
}

fn table(listing: &Listing, policy: &Policy) -> String {
    let mut table = Table::new(["resource", "state", "holder", "votes", "remaining", "remark"]);
    for (resource, inspection) in &listing.resources {
        let finding = inspection.finding(policy);
        let (holder, votes) = most(inspection);
        let no_ttl = is_without_ttl(inspection).then_some("no ttl on some master (pitfall 3)");
        let remark = no_ttl.unwrap_or_else(|| Form::of(&holder).remark());
        let remaining = match remaining(&finding) {
            Left::For(left) => show(left),
            Left::Forever => "no ttl".to_owned(),
            Left::Nothing => String::new(),
        };
        let row = [
            whole(resource),
            outcome(&finding).to_owned(),
            whole(&holder),
            format!("{votes}/{}", inspection.quorum.masters()),
            remaining,
            remark.to_owned(),
        ];
        table.row(row, None);
    }
    table.lines().join("\n")
}

/// One lock, for a program.
pub(crate) fn object(resource: &[u8], inspection: &Inspection, policy: &Policy) -> Value {
    let finding = inspection.finding(policy);
    let (holder, votes) = most(inspection);
    json!({
        "resource": output::text(resource),
        "outcome": outcome(&finding),
        "holder": output::text(&holder),
        "form": Form::of(&holder).as_str(),
        "fence": if let Finding::Held { fence, .. } = finding { fence } else { None },
        "votes": votes,
        "needed": inspection.quorum.needed(),
        "remaining_ms": if let Left::For(left) = remaining(&finding) { Some(millis(left)) } else { None },
        "expires": !is_without_ttl(inspection),
    })
}

fn remarks(global: &Global, args: &List, listing: &Listing) {
    for (master, why) in &listing.unseen {
        note(format_args!("warning: {master} was not searched: {why}"));
    }
    if !listing.is_complete {
        note(format_args!(
            "warning: there are more than these {}: give a narrower PATTERN, or raise --limit",
            args.limit
        ));
    }
    let forever = listing.resources.iter().filter(|(_, inspection)| is_without_ttl(inspection)).count();
    if forever > 0 && !global.quiet {
        note(format_args!("{forever} without a ttl: `quorlock explain 3` tells what to do"));
    }
}

/// The holder with the most keys, and how many.
pub(crate) fn most(inspection: &Inspection) -> (Vec<u8>, usize) {
    let mut holders: Vec<(&[u8], usize)> = Vec::new();
    for sighting in &inspection.sightings {
        let Ok(KeyState::Held { holder, .. }) = &sighting.key else { continue };
        match holders.iter_mut().find(|(known, _)| *known == holder.as_slice()) {
            Some((_, count)) => *count += 1,
            None => holders.push((holder, 1)),
        }
    }
    let most = holders.into_iter().rev().max_by_key(|(_, count)| *count);
    most.map(|(holder, count)| (holder.to_vec(), count)).unwrap_or_default()
}

/// Whether a key of it stays for ever on any master.
fn is_without_ttl(inspection: &Inspection) -> bool {
    let forever = |key: &KeyState| matches!(key, KeyState::Held { remaining: Remaining::Forever, .. });
    inspection.sightings.iter().any(|sighting| sighting.key.as_ref().is_ok_and(forever))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    For(std::time::Duration),
    Forever,
    Nothing,
}

pub(crate) fn remaining(finding: &Finding) -> Left {
    match finding {
        Finding::Held { at_least: left, .. }
        | Finding::Leftovers { expire_in: left, .. }
        | Finding::Split { expire_in: left, .. } => left.map_or(Left::Forever, Left::For),
        Finding::OtherType { .. } | Finding::Free | Finding::NoQuorum => Left::Nothing,
    }
}
