//! What the lock is for: a counter for each resource, in a process of its own. It is asked by lines of JSON.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use quorlock::fence::{FencingToken, Gate};
use serde::{Deserialize, Serialize};

use crate::history::{Event, Op};
use crate::log::Log;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) client: String,
    pub(crate) claim: u64,
    pub(crate) resource: String,
    /// 0 from who has no token.
    pub(crate) fence: u64,
    pub(crate) op: Op,
    /// To write.
    pub(crate) value: u64,
}

/// What comes without a token. Nothing is older, so that all of it gets in.
const NONE: FencingToken = FencingToken::new(0);

/// The value read or written, or nothing: there was a greater token.
pub(crate) type Answer = Option<u64>;

type Entries = Mutex<BTreeMap<String, Arc<Gate<u64>>>>;

/// Until standard input ends.
pub(crate) fn serve(listener: TcpListener, log: &Log) -> io::Result<()> {
    let entries = Arc::new(Entries::default());
    let (served, told) = (Arc::clone(&entries), log.clone());
    // It ends with the process.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (entries, log) = (Arc::clone(&served), told.clone());
            std::thread::spawn(move || attend(&stream, &entries, &log));
        }
    });
    io::stdin().lock().read_to_end(&mut Vec::new())?;
    for (resource, counter) in &*entries.lock().unwrap_or_else(PoisonError::into_inner) {
        let last = counter.seen().unwrap_or(NONE);
        let value = counter.enter(last, |value| *value).unwrap_or_default();
        log.say(Event::Counter { resource: resource.clone(), value });
    }
    Ok(())
}

fn attend(stream: &TcpStream, entries: &Entries, log: &Log) {
    let _ = stream.set_nodelay(true);
    let mut replies = stream;
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let Ok(request) = serde_json::from_str::<Request>(&line) else { return };
        let answer = answer(request, entries, log);
        let mut reply = serde_json::to_string(&answer).unwrap_or_default();
        reply.push('\n');
        if replies.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

/// The look at the token, the work and its line are one step. Reading counts as an effect: who reads has everybody
/// before him refused, or what he read would be written over behind his back.
fn answer(request: Request, entries: &Entries, log: &Log) -> Answer {
    let Request { client, claim, resource, fence, op, value } = request;
    let mut entries = entries.lock().unwrap_or_else(PoisonError::into_inner);
    let counter = Arc::clone(entries.entry(resource.clone()).or_insert_with(|| Arc::new(Gate::new(0))));
    drop(entries);
    let done = counter.enter(FencingToken::new(fence), |counter| {
        let found = *counter;
        if op == Op::Write {
            *counter = value;
        }
        let (resource, client) = (resource.clone(), client.clone());
        log.say(Event::Applied { resource, client, claim, op, found, value: *counter, fence });
        *counter
    });
    done.map_err(|stale| {
        let seen = stale.seen.as_u64();
        log.say(Event::TurnedAway { resource, client, claim, op, fence, seen });
    })
    .ok()
}
