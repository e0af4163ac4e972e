//! `quorlock init`: admits fresh masters at once.

use serde_json::json;

use crate::args::Global;
use crate::exit::{Exit, Failure};
use crate::fleet::Fleet;
use crate::output;

pub(crate) async fn run(global: &Global) -> Result<Exit, Failure> {
    let admitted = Fleet::of(global)?.builder.init().await?;
    let text = format!("admitted {}", admitted.join(", "));
    output::result(global, text, &json!({ "outcome": "admitted", "masters": admitted }));
    Ok(Exit::Done)
}
