//! `quorlock extend`: gives a lock of another process more time.

use quorlock::HolderId;
use quorlock::protocol::request::Ttl;
use serde_json::json;

use crate::acquire::{closing, leave};
use crate::args::{Extend, Global};
use crate::exit::{Exit, Failure};
use crate::fleet::{self, Fleet};
use crate::output;

pub(crate) async fn run(global: &Global, args: &Extend) -> Result<Exit, Failure> {
    let Fleet { builder, policy } = Fleet::of(global)?;
    let resources = fleet::resources(&args.resources)?;
    let holder = HolderId::parse(&args.holder)?;
    // Before any traffic.
    let ttl = fleet::ttl(args.ttl, &policy);
    Ttl::new(ttl, &policy)?;
    let redlock = builder.connect().await?;
    let extended = closing(&redlock, async {
        match redlock.extend_all_as(&resources, &holder, ttl).await {
            Ok(guard) => Ok(leave(guard, policy.master_timeout()).await),
            Err(error) => Err(error),
        }
    });
    match extended.await {
        Ok(lease) => {
            lease.print(global, "extended", &resources);
            Ok(Exit::Done)
        }
        Err(error) => {
            let (key, names) = output::of(&resources);
            let of = json!({ key: names, "holder": args.holder, "validity_ms": 0, "fence": null });
            Err(Failure::from(error).with(of))
        }
    }
}
