//! `quorlock inspect`: what stands at a resource, master by master, and what that comes to.

use quorlock::protocol::votes::Remaining;
use quorlock::{Abstention, FencingToken, Finding, Inspection, KeyState, Sighting};
use serde_json::{Value, json};

use crate::args::{Global, Inspect};
use crate::duration::{millis, show};
use crate::exit::{Exit, Failure};
use crate::fleet::{self, Fleet};
use crate::output;

pub(crate) async fn run(global: &Global, args: &Inspect) -> Result<Exit, Failure> {
    let Fleet { builder, policy } = Fleet::of(global)?;
    let resource = fleet::resource(&args.resource)?;
    let inspection = builder.inspect(resource).await?;
    let finding = inspection.finding(&policy);
    let text = format!("{}\n{}", table(&inspection), sentence(&inspection, &finding));
    output::result(global, text, &object(resource, &inspection, &finding));
    Ok(if finding == Finding::NoQuorum { Exit::NoQuorum } else { Exit::Done })
}

/// Columns as wide as they must be.
fn table(inspection: &Inspection) -> String {
    let mut rows =
        vec![["", "master", "state", "holder", "fence", "ttl", "round trip", "votes"].map(str::to_owned)];
    for (index, sighting) in inspection.sightings.iter().enumerate() {
        rows.push(row(index, sighting));
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let mut lines: Vec<String> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        lines.push(cells.collect::<Vec<_>>().join("  ").trim_end().to_owned());
        let sighting = index.checked_sub(1).and_then(|index| inspection.sightings.get(index));
        if let Some(Sighting { key: Err(why), .. }) = sighting {
            lines.push(format!("    {why}"));
        }
    }
    lines.join("\n")
}

fn row(index: usize, sighting: &Sighting) -> [String; 8] {
    let (state, holder, ttl) = match &sighting.key {
        Ok(KeyState::Free) => ("free", String::new(), String::new()),
        Ok(KeyState::Held { holder, remaining, .. }) => ("held", whole(holder), left(*remaining)),
        Ok(KeyState::OtherType { remaining }) => ("held", "(not a string)".to_owned(), left(*remaining)),
        Err(_) => ("unseen", String::new(), String::new()),
    };
    let seen = sighting.key.is_ok();
    [
        format!("m{}", index + 1),
        sighting.master.clone(),
        state.to_owned(),
        holder,
        number(sighting).map(|number| number.to_string()).unwrap_or_default(),
        ttl,
        if seen { show(sighting.round_trip) } else { String::new() },
        match sighting.abstains {
            _ if !seen => "no".to_owned(),
            None => "yes".to_owned(),
            Some(Abstention::Quarantined(left)) => format!("abstains for {}", show(left)),
            Some(Abstention::NeverAdmitted) => "abstains: not admitted since its start".to_owned(),
        },
    ]
}

/// What stands behind the holder of a fenced lock.
fn number(sighting: &Sighting) -> Option<FencingToken> {
    match &sighting.key {
        Ok(KeyState::Held { fence, .. }) => *fence,
        _ => None,
    }
}

/// Not cut, as in other texts: it is copied from here into the next command.
fn whole(holder: &[u8]) -> String {
    holder.escape_ascii().to_string()
}

fn left(remaining: Remaining) -> String {
    match remaining {
        Remaining::For(left) => show(left),
        Remaining::Forever => "none".to_owned(),
        Remaining::Untold => String::new(),
    }
}

fn sentence(inspection: &Inspection, finding: &Finding) -> String {
    let (masters, needed) = (inspection.quorum.masters(), inspection.quorum.needed());
    match finding {
        Finding::Held { holder, fence, votes, at_least } => {
            let fence = fence.map(|fence| format!(" with fencing token {fence}")).unwrap_or_default();
            let who = if holder.is_empty() { "a key of another type".to_owned() } else { whole(holder) };
            let until = match at_least {
                Some(left) => format!("valid for {} more at least", show(*left)),
                None => {
                    "without a ttl: it never expires by itself (pitfall 3, SETNX without EXPIRE)".to_owned()
                }
            };
            format!("held by {who}{fence} on {votes} of {masters} masters ({needed} needed), {until}")
        }
        Finding::Free => {
            let stray =
                inspection.sightings.iter().any(|one| !matches!(one.key, Ok(KeyState::Free) | Err(_)));
            let stray = if stray { "; the keys of an attempt that failed end by their ttl" } else { "" };
            format!("free: {needed} or more of {masters} masters have no key{stray}")
        }
        Finding::Leftovers => {
            format!(
                "not held: keys on fewer than {needed} of {masters} masters, left by an attempt or under way"
            )
        }
        Finding::Split => format!("split: keys of several holders, none on {needed} of {masters} masters"),
        Finding::NoQuorum => {
            let seen = inspection.sightings.iter().filter(|one| one.key.is_ok()).count();
            format!("no quorum: {seen} of {masters} masters can be seen, {needed} needed to tell")
        }
    }
}

fn object(resource: &[u8], inspection: &Inspection, finding: &Finding) -> Value {
    let (word, holder, votes, at_least) = match finding {
        Finding::Held { holder, votes, at_least, .. } => {
            ("held", Some(output::text(holder)), *votes, *at_least)
        }
        Finding::Free => ("free", None, 0, None),
        Finding::Leftovers => ("leftovers", None, 0, None),
        Finding::Split => ("split", None, 0, None),
        Finding::NoQuorum => ("no_quorum", None, 0, None),
    };
    let fence = if let Finding::Held { fence, .. } = finding { *fence } else { None };
    let masters: Vec<Value> = inspection.sightings.iter().map(sighting).collect();
    json!({
        "outcome": word,
        "resource": output::text(resource),
        "holder": holder,
        "fence": fence.map(FencingToken::as_u64),
        "holding": votes,
        "needed": inspection.quorum.needed(),
        "validity_ms": at_least.map(millis),
        "masters": masters,
    })
}

fn sighting(sighting: &Sighting) -> Value {
    let millis_of = |remaining: &Remaining| match remaining {
        Remaining::For(left) => Some(millis(*left)),
        Remaining::Forever | Remaining::Untold => None,
    };
    let (state, holder, remaining) = match &sighting.key {
        Ok(KeyState::Free) => ("free", None, None),
        Ok(KeyState::Held { holder, remaining, .. }) => {
            ("held", Some(output::text(holder)), millis_of(remaining))
        }
        Ok(KeyState::OtherType { remaining }) => ("other_type", None, millis_of(remaining)),
        Err(_) => ("unseen", None, None),
    };
    let abstains = sighting.abstains.map(|abstention| match abstention {
        Abstention::Quarantined(left) => json!({ "quarantined_ms": millis(left) }),
        Abstention::NeverAdmitted => json!("never_admitted"),
    });
    json!({
        "master": sighting.master,
        "state": state,
        "holder": holder,
        "fence": number(sighting).map(FencingToken::as_u64),
        "remaining_ms": remaining,
        "round_trip_us": u64::try_from(sighting.round_trip.as_micros()).unwrap_or(u64::MAX),
        "abstains": abstains,
        "error": sighting.key.as_ref().err(),
    })
}
