//! PostgreSQL, as the machine has it installed: a server of the test's own, on a socket in its own directory.

use std::ffi::OsString;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use quorlock::testbed::Testbed;
use tokio_postgres::{Client, NoTls};

use crate::fenced_postgres::{connection_task, prepare, take};
use crate::{frozen_between_look_and_write, runtime};

/// Set where the server must be there, so that its absence cannot pass for a success.
const REQUIRED: &str = "QUORLOCK_TEST_POSTGRES";

struct Server {
    child: Child,
    directory: tempfile::TempDir,
}

impl Server {
    /// `None` if there is no PostgreSQL on this machine.
    fn start() -> Option<Self> {
        let programs = programs()?;
        let directory = tempfile::tempdir().unwrap();
        // It does not run as root; the package has a user for it.
        let user = if number("-u", None) == Some(0) { Some("postgres") } else { None };
        let (uid, gid) = (number("-u", user)?, number("-g", user)?);
        chown(directory.path(), Some(uid), Some(gid)).unwrap();
        let data = directory.path().join("data");
        let command = |program: &str| {
            let mut command = Command::new(programs.join(program));
            command
                .current_dir(directory.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            if user.is_some() {
                command.uid(uid).gid(gid);
            }
            command.arg("-D").arg(&data);
            command
        };
        let made =
            command("initdb").args(["-U", "tester", "-A", "trust", "-N", "--no-locale"]).status().unwrap();
        assert!(made.success(), "initdb: {made}");
        let mut sockets = OsString::from("unix_socket_directories=");
        sockets.push(directory.path());
        let child = command("postgres")
            .args(["-c", "listen_addresses=", "-c", "fsync=off", "-c"])
            .arg(sockets)
            .spawn()
            .unwrap();
        Some(Self { child, directory })
    }

    async fn connect(&self) -> Client {
        let place = format!("host={} user=tester dbname=postgres", self.directory.path().display());
        for _ in 0..600 {
            if let Ok((client, connection)) = tokio_postgres::connect(&place, NoTls).await {
                connection_task(connection);
                return client;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("PostgreSQL does not answer at {place}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where the server's programs are: the newest of Debian's, or those of the path.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut places: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    places.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    places.extend(std::env::split_paths(&path));
    places.into_iter().rev().find(|place: &PathBuf| Path::new(place).join("initdb").exists())
}

fn number(which: &str, user: Option<&str>) -> Option<u32> {
    let said = Command::new("id").arg(which).args(user).output().ok()?;
    String::from_utf8(said.stdout).ok()?.trim().parse().ok()
}

#[test]
fn postgresql_refuses_a_holder_that_stood_still_past_its_ttl_or_is_not_installed() {
    let Some(server) = Server::start() else {
        assert!(std::env::var_os(REQUIRED).is_none(), "{REQUIRED} is set, and there is no PostgreSQL");
        println!("SKIPPED: no PostgreSQL is installed (apt-get install postgresql)");
        return;
    };
    let bed = Testbed::start(5).unwrap();
    let write = |token| {
        let runtime = runtime();
        runtime.block_on(async {
            let mut db = server.connect().await;
            take(&mut db, "ticket", token).await.unwrap()
        })
    };
    runtime().block_on(async { prepare(&server.connect().await).await.unwrap() });
    let mut later = None;
    let refused = std::sync::Mutex::new(None);
    frozen_between_look_and_write(
        &bed,
        |token| assert_eq!(write(token), Ok(9)),
        |token| {
            // In a runtime already: on a thread of its own.
            std::thread::scope(|scope| assert_eq!(scope.spawn(|| write(token)).join().unwrap(), Ok(8)));
            later = Some(token);
        },
        |token| *refused.lock().unwrap() = Some(write(token)),
    );
    let stale = refused.into_inner().unwrap().unwrap().unwrap_err();
    assert_eq!(Some(stale.seen), later);
    assert!(stale.token < stale.seen);
    let amount: i64 = runtime().block_on(async {
        let db = server.connect().await;
        db.query_one("SELECT amount FROM stock", &[]).await.unwrap().get(0)
    });
    assert_eq!(amount, 8, "the late write counted");
}
