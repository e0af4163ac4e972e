//! Whether a connection may vote: the checks of rule 14, and JOIN.

use std::time::Duration;

use ::fred::clients::Client;
use ::fred::interfaces::LuaInterface;

use super::connect::explain;
use crate::protocol::policy::Policy;

/// The hash in which a master remembers its fleet.
pub(super) const ADMITTED: &str = "quorlock:admitted";
/// The key that lasts as long as the quarantine.
pub(super) const QUARANTINE: &str = "quorlock:quarantine";

/// Whether masters that may have forgotten votes are kept from voting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Admission {
    /// A master votes once it is known to have been silent for the fleet's longest ttl since it started. It
    /// remembers that in the hash `quorlock:admitted`.
    #[default]
    Quarantine,
    /// Every master votes at once, as with other Redlock libraries. **A master that restarts without its data
    /// forgets a lock that is still held, and its vote can give the same lock to a second holder.** For fleets that
    /// cannot have the hash.
    Off,
}

/// What JOIN said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Joined {
    Admitted,
    /// In quarantine for this long.
    Wait(Duration),
}

pub(super) async fn join(client: &Client, run_id: &str, policy: &Policy) -> Result<Joined, String> {
    let max_ttl = policy.max_ttl().as_millis();
    let args = vec![run_id.to_owned(), max_ttl.to_string(), policy.quarantine().as_millis().to_string()];
    let said: String = client
        .eval(include_str!("../lua/join.lua"), vec![ADMITTED, QUARANTINE], args)
        .await
        .map_err(|error| explain(&error))?;
    match said.split_once(' ') {
        None if said == "admitted" => Ok(Joined::Admitted),
        Some(("wait", millis)) => millis
            .parse()
            .map(|millis| Joined::Wait(Duration::from_millis(millis)))
            .map_err(|_| format!("JOIN answered {said:?}")),
        Some(("max_ttl", theirs)) => Err(format!(
            "its fleet's longest ttl is {theirs} ms, this client's is {max_ttl} ms: they must agree (max_ttl)"
        )),
        _ => Err(format!("JOIN answered {said:?}")),
    }
}
