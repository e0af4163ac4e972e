//! Where the server program comes from. Finding only: nothing here installs or downloads, that is
//! `docker/run.sh`'s business, by a person's wish.

use std::env;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::testbed::error::TestbedError;

/// Names a server program outright, before any search.
const VARIABLE: &str = "QUORLOCK_SERVER";

/// Valkey first: it is the one with the free licence in all its versions.
const NAMES: [&str; 2] = ["valkey-server", "redis-server"];

/// Where `docker/run.sh` puts the server that it downloads, below cargo's target directory.
const CACHED: &str = "quorlock-server/valkey-server";

/// The program that a master runs: a Valkey or Redis server.
///
/// The path is kept as it was found. It must not be resolved: `redis-server` is a symbolic link to a program of
/// several names in some distributions, which looks at the name it was called by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ServerBinary {
    path: PathBuf,
}

impl ServerBinary {
    /// The first of: `$QUORLOCK_SERVER`; `valkey-server` in `PATH`; `redis-server` in `PATH`; the server that
    /// `docker/run.sh` downloaded into cargo's target directory.
    ///
    /// # Errors
    /// [`TestbedError::NotAProgram`] if `$QUORLOCK_SERVER` names something that cannot be run (what was asked
    /// for by name is never silently replaced); [`TestbedError::NoServer`] if there is none, with all ways to
    /// get one.
    pub fn find() -> Result<Self, TestbedError> {
        Self::find_with_cache(&Self::cache())
    }

    /// As [`find`](Self::find), with another place for the downloaded server.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn find_with_cache(cache: &Path) -> Result<Self, TestbedError> {
        let named = env::var_os(VARIABLE).filter(|name| !name.is_empty());
        let path = env::var_os("PATH").unwrap_or_default();
        Self::choose(named.as_deref(), &path, cache)
    }

    /// This program, unseen.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        // A standing bed restarts its masters from other directories than the one it was started in.
        Self { path: std::path::absolute(&path).unwrap_or(path) }
    }

    /// Where the program lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The place of the downloaded server: only below the directory that cargo names, or the current one. Looking
    /// further up could find, and run, what somebody else put into a shared directory.
    fn cache() -> PathBuf {
        let target = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from).unwrap_or_else(|| {
            env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default().join("target")
        });
        target.join(CACHED)
    }

    fn choose(named: Option<&OsStr>, path: &OsStr, cache: &Path) -> Result<Self, TestbedError> {
        if let Some(named) = named {
            let asked = Path::new(named);
            let bare = asked.components().count() == 1;
            let found = if bare { in_path(path, asked) } else { None };
            return found.or_else(|| is_program(asked).then(|| asked.to_owned())).map(Self::at).ok_or_else(
                || TestbedError::NotAProgram {
                    variable: VARIABLE,
                    value: named.to_string_lossy().into_owned(),
                },
            );
        }
        NAMES
            .iter()
            .find_map(|name| in_path(path, Path::new(name)))
            .or_else(|| is_program(cache).then(|| cache.to_owned()))
            .map(Self::at)
            .ok_or_else(|| TestbedError::NoServer {
                looked: format!("${VARIABLE}, {} in PATH, {}", NAMES.join(" and "), cache.display()),
            })
    }
}

fn in_path(path: &OsStr, name: &Path) -> Option<PathBuf> {
    env::split_paths(path)
        // An empty entry means the current directory to a shell; a search that runs what it finds leaves it out.
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|candidate| is_program(candidate))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn program(folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        fs::create_dir_all(folder).unwrap();
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn the_named_server_comes_first_then_valkey_then_redis_then_the_cache() {
        let temp = tempfile::tempdir().unwrap();
        let (a, b) = (temp.path().join("a"), temp.path().join("b"));
        let path = env::join_paths([&a, &b]).unwrap();
        let cache = program(&temp.path().join("cache"), "valkey-server");
        let choose = |named: Option<&Path>| ServerBinary::choose(named.map(Path::as_os_str), &path, &cache);

        assert_eq!(choose(None).unwrap().path(), cache);
        let redis = program(&a, "redis-server");
        assert_eq!(choose(None).unwrap().path(), redis);
        let valkey = program(&b, "valkey-server");
        assert_eq!(choose(None).unwrap().path(), valkey);
        let own = program(temp.path(), "own");
        assert_eq!(choose(Some(&own)).unwrap().path(), own);
        assert_eq!(choose(Some(Path::new("redis-server"))).unwrap().path(), redis);
    }

    #[test]
    fn a_named_server_that_cannot_be_run_is_an_error_and_not_replaced() {
        let temp = tempfile::tempdir().unwrap();
        let cache = program(temp.path(), "valkey-server");
        let error = ServerBinary::choose(Some(OsStr::new("/no/such")), OsStr::new(""), &cache).unwrap_err();
        assert!(error.to_string().contains("QUORLOCK_SERVER=/no/such"), "{error}");
    }

    #[test]
    fn without_any_server_the_error_names_every_way_to_get_one() {
        let error =
            ServerBinary::choose(None, OsStr::new(""), Path::new("/no/cache")).unwrap_err().to_string();
        for way in ["QUORLOCK_SERVER", "valkey-server", "redis-server", "/no/cache", "sh docker/run.sh test"]
        {
            assert!(error.contains(way), "{way} is missing in: {error}");
        }
    }

    #[test]
    fn a_link_is_not_resolved_because_the_program_looks_at_its_name() {
        let temp = tempfile::tempdir().unwrap();
        let many = program(temp.path(), "redis-check-rdb");
        let link = temp.path().join("redis-server");
        std::os::unix::fs::symlink(many, &link).unwrap();
        assert_eq!(ServerBinary::choose(None, temp.path().as_os_str(), Path::new("")).unwrap().path(), link);
    }
}
