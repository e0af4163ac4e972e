//! One call to a master: some asks, as fred wants them, and what comes back.

use std::task::{Context, Poll};

use ::fred::bytes_utils::Str;
use ::fred::clients::Client;
use ::fred::error::Error;
use ::fred::interfaces::{ClientInterface, KeysInterface, LuaInterface};
use ::fred::types::{Expiration, Key, SetOptions, Value};
use bytes::Bytes;
use tokio::time::Instant;
use tokio_util::sync::ReusableBoxFuture;

use super::classify;
use crate::protocol::fanout::{Act, Link};
use crate::protocol::votes::{Fault, Vote};
use crate::transport::{Ask, script};

/// Kept with its buffers for the next call.
pub(super) struct Call {
    reply: ReusableBoxFuture<'static, Result<Value, Error>>,
    pub(super) asks: Vec<Ask>,
    kind: Kind,
    pub(super) sent: Instant,
}

/// The scripts a master needs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Named {
    Act,
    Release,
    Pass,
    All,
    Line,
}

impl Named {
    pub(super) const EACH: [Self; 5] = [Self::Act, Self::Release, Self::Pass, Self::All, Self::Line];

    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Act => script::ACT,
            Self::Release => script::RELEASE,
            Self::Pass => script::PASS,
            Self::All => script::ALL,
            Self::Line => script::LINE,
        }
    }
}

/// How the scripts are called.
#[derive(Clone, Debug)]
pub(super) enum Scripts {
    /// Their digests, in the order of [`Named::EACH`].
    Loaded([Str; 5]),
    /// The master does not let us load scripts.
    Text,
}

impl Scripts {
    fn script(&self, named: Named) -> Script {
        match self {
            Self::Loaded(digests) => Script::Loaded(digests[named as usize].clone()),
            Self::Text => Script::Text(named.text()),
        }
    }
}

/// How the master is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A claim alone is a plain `SET`.
    Claim,
    /// A release alone needs less than the script for many.
    Release,
    /// Asks for several keys each, all or none.
    All,
    /// Places in lines.
    Line,
    Batch,
}

/// What goes in one call: asks of a kind, with no more keys and bytes together than a master does at once.
#[derive(Default)]
pub(super) struct Load {
    keys: usize,
    bytes: usize,
    /// Whether for several keys each, and whether for places in lines.
    sort: (bool, bool),
}

impl Load {
    /// Counts `ask` in, unless it has to wait for the next call.
    pub(super) fn takes(&mut self, ask: &Ask) -> bool {
        let keys = self.keys + ask.keys().len();
        let bytes = self.bytes + ask.bytes();
        let sort = (ask.is_for_several(), ask.dispatch().act.is_of_line());
        let fits = keys <= script::MOST_KEYS && bytes <= script::MOST_BYTES;
        // An ask that is too much by itself goes alone.
        let goes = self.keys == 0 || fits && self.sort == sort;
        if goes {
            *self = Self { keys, bytes, sort };
        }
        goes
    }
}

impl Call {
    pub(super) fn new() -> Self {
        let reply = ReusableBoxFuture::new(std::future::pending());
        Self { reply, asks: Vec::new(), kind: Kind::Batch, sent: Instant::now() }
    }

    /// Makes the call ready for its first poll, which sends it. `tells`: the master tells of changes, if asked.
    pub(super) fn prepare(&mut self, client: &Client, scripts: &Scripts, run_id: &Str, tells: bool) {
        let (kind, request) = match self.asks.as_slice() {
            asks @ [first, ..] if first.is_for_several() => (Kind::All, Request::all(asks, scripts, run_id)),
            asks @ [first, ..] if first.dispatch().act.is_of_line() => {
                (Kind::Line, Request::line(asks, scripts))
            }
            [ask] => match (ask.single(), ask.dispatch().act) {
                (Some(key), Act::Claim) if ask.dispatch().fence.is_none() => {
                    (Kind::Claim, Request::claim(key, ask))
                }
                (Some(key), Act::Release) => (Kind::Release, Request::release(key, ask, scripts)),
                _ => (Kind::Batch, Request::batch(&self.asks, scripts, run_id)),
            },
            [old, new] if is_pass(old, new) => (Kind::Batch, Request::pass(old, new, scripts)),
            asks => (Kind::Batch, Request::batch(asks, scripts, run_id)),
        };
        self.kind = kind;
        self.sent = Instant::now();
        let listens = |ask: &Ask| matches!(ask.dispatch().act, Act::Watch | Act::QueueUp);
        if tells && self.asks.iter().any(listens) {
            self.reply.set(request.send_and_be_told(client.clone(), kind));
        } else {
            self.reply.set(request.send(client.clone()));
        }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Value, Error>> {
        self.reply.poll(cx)
    }

    /// Whether the master does not know the script any more.
    pub(super) fn needs_script(&self, reply: &Result<Value, Error>) -> bool {
        self.kind != Kind::Claim && classify::is_noscript(reply)
    }

    /// Hands each ask its answer. Inside a script a replica refuses key by key: its words are given back.
    pub(super) fn answer(&mut self, reply: Result<Value, Error>, link: Link) -> Option<String> {
        let vote = match (self.kind, reply) {
            (Kind::Claim, reply) => classify::plain_claim(reply),
            (Kind::Release, reply) => classify::lone_release(reply),
            (Kind::Batch | Kind::Line | Kind::All, reply) => match classify::batch(reply, self.asks.len()) {
                Ok(said) => {
                    let mut no_master = None;
                    for (ask, said) in self.asks.drain(..).zip(&said) {
                        let (act, number) = (ask.dispatch().act, classify::number(ask.dispatch(), said));
                        let vote = match self.kind {
                            _ if number.is_some() => Vote::Granted,
                            Kind::All => classify::on_all(act, said, ask.keys()),
                            _ => classify::one(act, said),
                        };
                        if let Some(words) = says_no_master(&vote) {
                            no_master = Some(words.to_owned());
                        }
                        ask.answer_numbered(vote, number, link);
                    }
                    return no_master;
                }
                Err(vote) => vote,
            },
        };
        let no_master = says_no_master(&vote).map(ToOwned::to_owned);
        self.asks.drain(..).for_each(|ask| ask.answer(vote.clone(), link));
        no_master
    }
}

fn says_no_master(vote: &Vote) -> Option<&str> {
    match vote {
        Vote::Failed(Fault::Refused(words)) if script::closes_link(words) => Some(words),
        _ => None,
    }
}

enum Request {
    Claim { key: Bytes, holder: Bytes, ttl: i64 },
    Script { script: Script, keys: Vec<Key>, args: Vec<Value> },
}

enum Script {
    Loaded(Str),
    Text(&'static str),
}

impl Request {
    fn claim(key: Bytes, ask: &Ask) -> Self {
        let ttl = ask.dispatch().ttl.as_millis().into();
        Self::Claim { key, holder: ask.holder(), ttl }
    }

    fn release(key: Bytes, ask: &Ask, scripts: &Scripts) -> Self {
        let script = scripts.script(Named::Release);
        Self::Script { script, keys: vec![key.into()], args: vec![Value::Bytes(ask.holder())] }
    }

    fn pass(old: &Ask, new: &Ask, scripts: &Scripts) -> Self {
        let script = scripts.script(Named::Pass);
        let ttl = Value::Integer(new.dispatch().ttl.as_millis().into());
        let args = vec![Value::Bytes(old.holder()), Value::Bytes(new.holder()), ttl];
        Self::Script { script, keys: old.keys().iter().cloned().map(Key::from).collect(), args }
    }

    fn batch(asks: &[Ask], scripts: &Scripts, run_id: &Str) -> Self {
        let keys = asks.iter().flat_map(Ask::keys).cloned().map(Key::from).collect();
        let ttl = common_ttl(asks);
        let mut args = Vec::with_capacity(3 + asks.len() * if ttl.is_some() { 1 } else { 2 });
        args.push(Value::from(letters(asks)));
        args.push(ttl.map_or(Value::from_static_str(""), |ttl| Value::Integer(ttl.into())));
        args.extend(asks.iter().map(holder));
        if ttl.is_none() {
            args.extend(asks.iter().map(|ask| Value::Integer(ask.dispatch().ttl.as_millis().into())));
        }
        args.extend(process(asks, run_id));
        let script = scripts.script(Named::Act);
        Self::Script { script, keys, args }
    }

    fn all(asks: &[Ask], scripts: &Scripts, run_id: &Str) -> Self {
        let script = scripts.script(Named::All);
        let keys = asks.iter().flat_map(Ask::keys).cloned().map(Key::from).collect();
        let mut args = Vec::with_capacity(2 + 3 * asks.len());
        args.push(Value::from(letters(asks)));
        for ask in asks {
            args.push(Value::from(ask.keys().len() as i64));
            args.push(holder(ask));
            args.push(Value::Integer(ask.dispatch().ttl.as_millis().into()));
        }
        args.extend(process(asks, run_id));
        Self::Script { script, keys, args }
    }

    fn line(asks: &[Ask], scripts: &Scripts) -> Self {
        let script = scripts.script(Named::Line);
        let keys = asks.iter().flat_map(Ask::keys).cloned().map(Key::from).collect();
        let args = std::iter::once(Value::from(letters(asks))).chain(asks.iter().map(holder)).collect();
        Self::Script { script, keys, args }
    }

    /// Has the master remember the keys that the call reads. Both commands go out in one poll, so that nothing else
    /// does in between; where the first fails, nothing will be told, and whoever waits asks again in time.
    async fn send_and_be_told(self, client: Client, kind: Kind) -> Result<Value, Error> {
        let told = client.clone();
        if let (Kind::Line, Self::Script { keys, .. }) = (kind, &self) {
            // The script reads lines, of which nobody wants to be told: the bells are read before.
            let bells = told.exists::<i64, _>(keys.clone());
            return tokio::join!(told.client_caching::<()>(true), bells, self.send(client)).2;
        }
        tokio::join!(told.client_caching::<()>(true), self.send(client)).1
    }

    async fn send(self, client: Client) -> Result<Value, Error> {
        match self {
            Self::Claim { key, holder, ttl } => {
                let expiry = Some(Expiration::PX(ttl));
                client.set(key, Value::Bytes(holder), expiry, Some(SetOptions::NX), false).await
            }
            Self::Script { script, keys, args } => match script {
                Script::Loaded(sha) => client.evalsha(sha, keys, args).await,
                Script::Text(text) => client.eval(text, keys, args).await,
            },
        }
    }
}

/// Whether a lock goes from hand to hand: `old` gives back what `new` claims.
fn is_pass(old: &Ask, new: &Ask) -> bool {
    let acts = (old.dispatch().act, new.dispatch().act);
    acts == (Act::Release, Act::Claim) && new.dispatch().fence.is_none() && old.keys() == new.keys()
}

/// Who signs the keys, and what there is to do with their counters.
fn holder(ask: &Ask) -> Value {
    Value::Bytes(match ask.dispatch().fence {
        None => ask.holder(),
        Some(fence) => script::fenced_holder(&ask.holder(), ask.keys(), fence).into(),
    })
}

/// The process whose counters they are, if any act has to do with one.
fn process(asks: &[Ask], run_id: &Str) -> Option<Value> {
    asks.iter().any(|ask| ask.dispatch().fence.is_some()).then(|| Value::String(run_id.clone()))
}

/// Their acts, as the scripts read them.
fn letters(asks: &[Ask]) -> String {
    asks.iter().map(|ask| script::letter(ask.dispatch())).collect()
}

/// The ttl that all asks share; deletes share any.
fn common_ttl(asks: &[Ask]) -> Option<u32> {
    let mut ttls = asks.iter().map(Ask::dispatch).filter(|dispatch| dispatch.act != Act::Release);
    let first = ttls.next().map_or(0, |dispatch| dispatch.ttl.as_millis());
    ttls.all(|dispatch| dispatch.ttl.as_millis() == first).then_some(first)
}
