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
    let resource = fleet::resource(&args.resource)?;
    let holder = HolderId::parse(&args.holder)?;
    // Before any traffic.
    Ttl::new(args.ttl, &policy)?;
    let redlock = builder.connect().await?;
    let extended = closing(&redlock, async {
        match redlock.extend_as(resource, &holder, args.ttl).await {
            Ok(guard) => Ok(leave(guard, policy.master_timeout()).await),
            Err(error) => Err(error),
        }
    });
    match extended.await {
        Ok(lease) => {
            lease.print(global, "extended", resource);
            Ok(Exit::Done)
        }
        Err(error) => Err(Failure::from(error).with(json!({
            "resource": output::text(resource), "holder": args.holder, "validity_ms": 0, "fence": null,
        }))),
    }
}
