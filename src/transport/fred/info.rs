//! What a master tells of itself in INFO.

use std::sync::Arc;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MasterInfo {
    pub(super) run_id: Arc<str>,
    pub(super) role: String,
    pub(super) cluster_enabled: bool,
    pub(super) loading: bool,
    pub(super) maxmemory_policy: String,
}

impl MasterInfo {
    pub(super) fn read(text: &str) -> Self {
        let mut info = Self::default();
        for line in text.lines() {
            let Some((name, value)) = line.split_once(':') else { continue };
            match name {
                "run_id" => info.run_id = value.into(),
                "role" => info.role = value.to_owned(),
                "cluster_enabled" => info.cluster_enabled = value == "1",
                "loading" => info.loading = value == "1",
                "maxmemory_policy" => info.maxmemory_policy = value.to_owned(),
                _ => {}
            }
        }
        info
    }

    /// Why this is no master that may vote, if it is none.
    pub(super) fn unfit(&self) -> Option<String> {
        if self.run_id.is_empty() {
            Some("INFO shows no run_id: this is no Redis or Valkey server, or INFO is not allowed".to_owned())
        } else if self.cluster_enabled {
            Some(
                "it is part of a cluster, where a failover forgets locks: list independent masters"
                    .to_owned(),
            )
        } else if self.role != "master" {
            Some(format!(
                "its role is {:?}, not master: a replica forgets what its master granted",
                self.role
            ))
        } else if self.loading {
            Some("it is loading its data".to_owned())
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_master_is_fit_and_everything_else_is_not() {
        let master = "# Server\r\nrun_id:abc\r\nrole:master\r\nloading:0\r\ncluster_enabled:0\r\n";
        assert_eq!(MasterInfo::read(master).unfit(), None);
        for (from, to, says) in [
            ("role:master", "role:slave", "slave"),
            ("loading:0", "loading:1", "loading"),
            ("cluster_enabled:0", "cluster_enabled:1", "cluster"),
            ("run_id:abc", "run_id:", "run_id"),
        ] {
            let why = MasterInfo::read(&master.replace(from, to)).unfit().unwrap_or_default();
            assert!(why.contains(says), "{why}");
        }
    }
}
