//! A call of the script that does many acts at once: what it costs the client, and what it costs a master.
//!
//! ```text
//! cargo bench --features testbed --bench script
//! ```
//!
//! The client's part is from the asks to the arguments that fred gets, and from fred's answer to a vote for each ask. What fred
//! does in between, and the way, are in `quorlock bench` and `benches/instructions.sh`. The master's part is by its own clock,
//! and needs the feature.
#![allow(missing_docs, reason = "what the macro makes is public")]

#[cfg(feature = "testbed")]
mod server;
// These files are private to the library, and no feature is to open them: they are compiled in here once more.
#[allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "the library uses more of it, and runs its tests"
)]
mod transport;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use criterion::{BatchSize, Criterion, criterion_group};
// For the files of the library.
use quorlock::protocol;

use protocol::fanout::{Act, Dispatch};
use protocol::policy::Policy;
use protocol::quorum::MasterId;
use protocol::request::Ttl;
use protocol::time::Moment;
use protocol::votes::{Reply, Vote};
use transport::fred::Caller;
use transport::{Ask, Asker, Resources};

/// As many as one call carries at the most.
const COUNTS: [usize; 3] = [1, 8, 64];

/// Of the usual length.
const HOLDER: &str = "some-host/4242/0123456789abcdef0123456789abcdef";

struct Someone {
    resource: Resources,
    holder: Bytes,
}

impl Asker for Someone {
    fn resources(&self) -> &Resources {
        &self.resource
    }

    fn holder(&self) -> &Bytes {
        &self.holder
    }

    fn wants(&self, _: &Dispatch) -> bool {
        true
    }

    fn answered(self: Arc<Self>, _: &Dispatch, reply: Reply) {
        // Calls that are made up and never sent end without a link.
        let reply = black_box(reply);
        assert!(reply.link.is_none() || reply.vote == Vote::Granted, "{reply:?}");
    }
}

fn key(nth: usize) -> String {
    format!("resource:{nth:07}")
}

fn renewals(count: usize, to: MasterId, ttl: Ttl) -> Vec<Ask> {
    let ask = |nth| {
        let resource = Resources::one(key(nth).as_bytes());
        let by = Arc::new(Someone { resource, holder: Bytes::from_static(HOLDER.as_bytes()) });
        let stamp = Moment::from_nanos(1);
        Ask::new(Dispatch { to, act: Act::Renew, round: 1, stamp, ttl, urgent: true, fence: None }, by)
    };
    (0..count).map(ask).collect()
}

fn client(criterion: &mut Criterion) {
    let ttl = Ttl::new(Duration::from_secs(30), &Policy::new());
    let (Ok(ttl), Some(to), Some(caller)) = (ttl, MasterId::new(0), Caller::new()) else {
        return eprintln!("error: fred makes no client");
    };
    for count in COUNTS {
        let filled = || caller.filled(renewals(count, to, ttl));
        criterion.bench_function(&format!("a call of {count} renewals, made up"), |bencher| {
            bencher.iter_batched(
                filled,
                |mut call| {
                    caller.prepare(&mut call);
                    call
                },
                BatchSize::SmallInput,
            );
        });
        criterion.bench_function(&format!("its answer, read into {count} votes"), |bencher| {
            bencher.iter_batched(
                || {
                    let mut call = filled();
                    caller.prepare(&mut call);
                    (call, Caller::granted(count))
                },
                |(mut call, reply)| {
                    let no_master = caller.answer(&mut call, reply);
                    (call, no_master)
                },
                BatchSize::SmallInput,
            );
        });
    }
}

criterion_group!(script, client);

fn main() {
    script();
    Criterion::default().configure_from_args().final_summary();
    #[cfg(feature = "testbed")]
    if let Err(error) = server::measure(&COUNTS) {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}
