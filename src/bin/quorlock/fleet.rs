//! The masters and the rules of their fleet, from options, environment and file.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use quorlock::protocol::request::{check_resource, check_resources};
use quorlock::{Builder, Policy, Redlock};

use crate::args::Global;
use crate::config::Config;
use crate::exit::Failure;

const NO_MASTERS: &str = "\
no masters given. Name five independent Redis or Valkey masters in one of these ways:
  export QUORLOCK_MASTERS=redis://m1:6379,redis://m2:6379,redis://m3:6379,redis://m4:6379,redis://m5:6379
  --config FILE.toml, with the line  masters = [\"redis://m1:6379\", …]
  --masters redis://m1:6379,…  (others see it in `ps`: not for URLs with passwords)
To have five on this machine: eval \"$(quorlock testbed up)\"";

/// What locks are taken with unless told otherwise.
const USUAL_TTL: Duration = Duration::from_secs(30);

/// What a client is made of.
pub(crate) struct Fleet {
    pub(crate) builder: Builder,
    pub(crate) policy: Policy,
}

impl Fleet {
    /// Checked as far as that goes without any traffic.
    pub(crate) fn of(global: &Global) -> Result<Self, Failure> {
        let config = global.config.as_deref().map(Config::read).transpose()?.unwrap_or_default();
        let masters = if is_given(&global.masters) { &global.masters } else { &config.masters };
        if masters.is_empty() {
            return Err(Failure::config(NO_MASTERS));
        }
        let policy = policy(global, &config)?;
        let mut builder = Redlock::builder().masters(masters).policy(policy);
        if let Some(timeout) = global.connect_timeout.or(config.connect_timeout) {
            builder = builder.connect_timeout(timeout);
        }
        if let Some(votes) = global.min_votes.or(config.min_votes) {
            builder = builder.min_votes(votes);
        }
        if let Some(label) = global.label.as_ref().or(config.label.as_ref()) {
            builder = builder.label(label);
        }
        builder = match (&config.user, &config.password) {
            (user, Some(password)) => builder.credentials(user.as_deref().unwrap_or("default"), password),
            (Some(_), None) => {
                return Err(Failure::config("the configuration has a `user` without a `password`: add it"));
            }
            (None, None) => builder,
        };
        Ok(Self { builder: tls(builder, &config)?, policy })
    }
}

/// An empty variable counts as none.
pub(crate) fn is_given(masters: &[String]) -> bool {
    masters.iter().any(|master| !master.trim().is_empty())
}

/// The bytes of an argument, if they can be a lock.
pub(crate) fn resource(argument: &OsStr) -> Result<&[u8], Failure> {
    check_resource(argument.as_bytes())?;
    Ok(argument.as_bytes())
}

/// The same of several, each once.
pub(crate) fn resources(arguments: &[OsString]) -> Result<Vec<&[u8]>, Failure> {
    let mut resources = Vec::new();
    for argument in arguments {
        let resource = argument.as_bytes();
        if !resources.contains(&resource) {
            resources.push(resource);
        }
    }
    check_resources(&resources)?;
    Ok(resources)
}

/// The ttl that was asked for, or the usual one as far as the fleet allows it.
pub(crate) fn ttl(asked: Option<Duration>, policy: &Policy) -> Duration {
    asked.unwrap_or(USUAL_TTL.min(policy.max_ttl()))
}

pub(crate) fn policy(global: &Global, config: &Config) -> Result<Policy, Failure> {
    let mut policy = Policy::new();
    if let Some(timeout) = global.master_timeout.or(config.master_timeout) {
        policy = policy.with_master_timeout(timeout);
    }
    if let Some(ttl) = global.max_ttl.or(config.max_ttl) {
        policy = policy.with_max_ttl(ttl);
    }
    policy.check().map_err(|error| Failure::config(error.to_string()))?;
    Ok(policy)
}

#[cfg(feature = "tls")]
fn tls(builder: Builder, config: &Config) -> Result<Builder, Failure> {
    let mut tls = quorlock::Tls::new();
    match (&config.client_certificate, &config.client_key) {
        (Some(certificate), Some(key)) => tls = tls.client_certificate_files(certificate, key),
        (None, None) if config.ca.is_none() => return Ok(builder),
        (None, None) => {}
        _ => {
            return Err(Failure::config(
                "`client_certificate` and `client_key` belong together: give both, or neither",
            ));
        }
    }
    if let Some(ca) = &config.ca {
        tls = tls.ca_file(ca);
    }
    Ok(builder.tls(tls))
}

#[cfg(not(feature = "tls"))]
fn tls(builder: Builder, config: &Config) -> Result<Builder, Failure> {
    if config.ca.is_some() || config.client_certificate.is_some() || config.client_key.is_some() {
        return Err(Failure::config(
            "`ca`, `client_certificate` and `client_key` need TLS, which this build lacks: build with `--features tls`",
        ));
    }
    Ok(builder)
}
