//! `quorlock inspect`: what stands at a resource, master by master, and what that comes to.

use std::time::Duration;

use quorlock::protocol::votes::Remaining;
use quorlock::{Abstention, Finding, Inspection, KeyState, Sighting};
use serde_json::{Value, json};

use crate::args::{Global, Inspect};
use crate::duration::{millis, show};
use crate::exit::{Exit, Failure};
use crate::fleet::{self, Fleet};
use crate::form::Form;
use crate::output;
use crate::table::Table;

pub(crate) async fn run(global: &Global, args: &Inspect) -> Result<Exit, Failure> {
    let Fleet { builder, policy } = Fleet::of(global)?;
    let resource = fleet::resource(&args.resource)?;
    let inspection = builder.inspect(resource).await?;
    let finding = inspection.finding(&policy);
    let text = format!("{}\n{}", table(&inspection), sentence(&inspection, &finding));
    output::result(global, text, &object(resource, &inspection, &finding));
    Ok(if finding == Finding::NoQuorum { Exit::NoQuorum } else { Exit::Done })
}

fn table(inspection: &Inspection) -> String {
    let mut table =
        Table::new(["", "master", "state", "holder", "fence", "ttl", "round trip", "votes", "remark"]);
    for (index, sighting) in inspection.sightings.iter().enumerate() {
        table.row(row(index, sighting), sighting.key.as_ref().err().cloned());
    }
    table.lines().join("\n")
}

fn row(index: usize, sighting: &Sighting) -> [String; 9] {
    let (state, holder, fence, remaining, remark) = match &sighting.key {
        Ok(KeyState::Free) => ("free", String::new(), None, None, ""),
        Ok(KeyState::Held { holder, fence, remaining }) => {
            ("held", whole(holder), *fence, Some(*remaining), Form::of(holder).remark())
        }
        Ok(KeyState::OtherType { remaining }) => {
            ("foreign", String::new(), None, Some(*remaining), "not a string: no lock of this kind")
        }
        Err(_) => ("unseen", String::new(), None, None, ""),
    };
    let seen = sighting.key.is_ok();
    [
        format!("m{}", index + 1),
        sighting.master.clone(),
        state.to_owned(),
        holder,
        fence.map(|fence| fence.to_string()).unwrap_or_default(),
        remaining.map(left).unwrap_or_default(),
        if seen { show(sighting.round_trip) } else { String::new() },
        match sighting.abstains {
            _ if !seen => "no".to_owned(),
            None => "yes".to_owned(),
            Some(Abstention::Quarantined(left)) => format!("abstains for {} (quarantine)", show(left)),
            Some(Abstention::NeverAdmitted) => "abstains: not admitted since its start".to_owned(),
        },
        remark.to_owned(),
    ]
}

/// Not cut, as in other texts: it is copied from here into the next command.
pub(crate) fn whole(holder: &[u8]) -> String {
    match std::str::from_utf8(holder) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => holder.escape_ascii().to_string(),
    }
}

pub(crate) fn left(remaining: Remaining) -> String {
    match remaining {
        Remaining::For(left) => show(left),
        Remaining::Forever => "none".to_owned(),
        Remaining::Untold => String::new(),
    }
}

/// What a finding comes to, in one sentence.
pub(crate) fn sentence(inspection: &Inspection, finding: &Finding) -> String {
    let (masters, needed) = (inspection.quorum.masters(), inspection.quorum.needed());
    match finding {
        Finding::Held { holder, fence, votes, at_least } => {
            let until = match at_least {
                Some(left) => format!("valid for {} more at least", show(*left)),
                None => {
                    "without a ttl: it never expires by itself (pitfall 3, SETNX without EXPIRE)".to_owned()
                }
            };
            let token = fence.map(|fence| format!(" with fencing token {fence}")).unwrap_or_default();
            format!(
                "held by {}{token} on {votes} of {masters} masters ({needed} needed), {until}",
                whole(holder)
            )
        }
        Finding::OtherType { votes } => {
            format!(
                "foreign: {votes} of {masters} masters have a key there that is no string; no lock can be had"
            )
        }
        Finding::Free => format!("free: {needed} or more of {masters} masters have no key, and none has one"),
        Finding::Leftovers { on, free, may_be_held, expire_in } => {
            let what = if *may_be_held {
                "cannot tell: if the masters that are not seen have the key too, the lock is held; otherwise it is what an \
                 attempt left"
            } else if *free {
                "free, with leftovers of an attempt that failed, or one under way: no lock"
            } else {
                "not held: leftovers of an attempt that failed, or one under way"
            };
            format!("{what}; keys on {on} of {masters} masters ({needed} needed), {}", gone(*expire_in))
        }
        Finding::Split { holders, expire_in } => format!(
            "split: keys of {holders} holders, none on {needed} of {masters} masters; nobody holds the lock, {}",
            gone(*expire_in)
        ),
        Finding::NoQuorum => {
            let seen = inspection.sightings.iter().filter(|one| one.key.is_ok()).count();
            format!("no quorum: {seen} of {masters} masters can be seen, {needed} needed to tell")
        }
    }
}

fn gone(expire_in: Option<Duration>) -> String {
    match expire_in {
        Some(left) => format!("gone in {} unless somebody renews them", show(left)),
        None => "and one of them never expires by itself (pitfall 3, SETNX without EXPIRE)".to_owned(),
    }
}

/// A finding and all sightings, for a program.
pub(crate) fn object(resource: &[u8], inspection: &Inspection, finding: &Finding) -> Value {
    let mut object = json!({
        "outcome": outcome(finding),
        "resource": output::text(resource),
        "holder": null,
        "fence": null,
        "holding": 0,
        "needed": inspection.quorum.needed(),
        "validity_ms": null,
        "expire_in_ms": null,
        "masters": inspection.sightings.iter().map(sighting).collect::<Vec<_>>(),
    });
    match finding {
        Finding::Held { holder, fence, votes, at_least } => {
            object["holder"] = output::text(holder).into();
            object["fence"] = (*fence).into();
            object["holding"] = (*votes).into();
            object["validity_ms"] = at_least.map(millis).into();
            object["expire_in_ms"] = object["validity_ms"].clone();
        }
        Finding::Leftovers { free, may_be_held, expire_in, .. } => {
            object["free"] = (*free).into();
            object["may_be_held"] = (*may_be_held).into();
            object["expire_in_ms"] = expire_in.map(millis).into();
        }
        Finding::Split { expire_in, .. } => object["expire_in_ms"] = expire_in.map(millis).into(),
        Finding::OtherType { .. } | Finding::Free | Finding::NoQuorum => {}
    }
    object
}

pub(crate) const fn outcome(finding: &Finding) -> &'static str {
    match finding {
        Finding::Held { .. } => "held",
        Finding::OtherType { .. } => "foreign",
        Finding::Free => "free",
        Finding::Leftovers { .. } => "leftovers",
        Finding::Split { .. } => "split",
        Finding::NoQuorum => "no_quorum",
    }
}

fn sighting(sighting: &Sighting) -> Value {
    let millis_of = |remaining: &Remaining| match remaining {
        Remaining::For(left) => Some(millis(*left)),
        Remaining::Forever | Remaining::Untold => None,
    };
    let (state, held, remaining) = match &sighting.key {
        Ok(KeyState::Free) => ("free", None, None),
        Ok(KeyState::Held { holder, fence, remaining }) => ("held", Some((holder, fence)), Some(remaining)),
        Ok(KeyState::OtherType { remaining }) => ("other_type", None, Some(remaining)),
        Err(_) => ("unseen", None, None),
    };
    let abstains = sighting.abstains.map(|abstention| match abstention {
        Abstention::Quarantined(left) => json!({ "quarantined_ms": millis(left) }),
        Abstention::NeverAdmitted => json!("never_admitted"),
    });
    json!({
        "master": sighting.master,
        "state": state,
        "holder": held.map(|(holder, _)| output::text(holder)),
        "fence": held.and_then(|(_, fence)| *fence),
        "form": held.map(|(holder, _)| Form::of(holder).as_str()),
        "remaining_ms": remaining.and_then(millis_of),
        "expires": remaining.map(|remaining| *remaining != Remaining::Forever),
        "round_trip_us": u64::try_from(sighting.round_trip.as_micros()).unwrap_or(u64::MAX),
        "abstains": abstains,
        "error": sighting.key.as_ref().err(),
    })
}
