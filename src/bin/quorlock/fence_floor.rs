//! `quorlock fence-floor`: where fencing goes on, when too many masters forgot together.

use quorlock::FencingToken;
use serde_json::json;

use crate::args::{FenceFloor, Global};
use crate::exit::{Exit, Failure};
use crate::fleet::Fleet;
use crate::output;

pub(crate) async fn run(global: &Global, args: &FenceFloor) -> Result<Exit, Failure> {
    let builder = Fleet::of(global)?.builder;
    let set = builder.set_fence_floor(args.floor.map(FencingToken::new)).await?;
    let mut text = match set.raised.as_slice() {
        [] => "no floor was set: no master that can be had needs one".to_owned(),
        raised => format!("fencing goes on above {} on {}", set.floor, raised.join(", ")),
    };
    for (master, why) in &set.left {
        text += &format!("\n  {master} takes no part yet: {why}");
    }
    let left: Vec<_> = set.left.iter().map(|(master, why)| json!({ "master": master, "why": why })).collect();
    let json = json!({
        "outcome": if set.raised.is_empty() { "unchanged" } else { "raised" },
        "floor": set.floor.as_u64(),
        "raised": set.raised,
        "left": left,
    });
    output::result(global, text, &json);
    Ok(if set.raised.is_empty() && !set.left.is_empty() { Exit::NoQuorum } else { Exit::Done })
}
