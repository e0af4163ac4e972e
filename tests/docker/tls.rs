//! TLS and an ACL user that may do just what the client needs.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use quorlock::{AcquireError, Redlock, Tls};

use crate::bed::{Bed, bounded, docker_ok, policy};

const TTL: Duration = Duration::from_secs(2);

struct Secure {
    urls: Vec<String>,
    folder: PathBuf,
    password: String,
}

impl Secure {
    fn new() -> Self {
        let bed = Bed::unadmitted();
        let port = |nth: u32| {
            let published = docker_ok(&["port", &bed.name(&format!("t{nth}")), "6379/tcp"]);
            published.rsplit_once(':').unwrap().1.to_owned()
        };
        let folder =
            PathBuf::from(std::env::var("QUORLOCK_TLS").expect("docker/run.sh names the certificates"));
        Self {
            urls: (1..=5).map(|nth| format!("rediss://localhost:{}", port(nth))).collect(),
            password: std::fs::read_to_string(folder.join("password")).unwrap().trim().to_owned(),
            folder,
        }
    }

    fn tls(&self) -> Tls {
        Tls::new().ca_file(self.folder.join("ca.pem"))
    }

    async fn client(&self, user: &str, password: &str, tls: Tls) -> Redlock {
        let builder =
            Redlock::builder().masters(&self.urls).policy(policy()).credentials(user, password).tls(tls);
        // Whoever came first admitted them; the others find them known.
        let _ = builder.init().await;
        builder.connect().await.unwrap()
    }

    /// What somebody who cannot lock is told.
    async fn refusal(&self, user: &str, password: &str, tls: Tls) -> String {
        let redlock = self.client(user, password, tls).await;
        let refused = redlock.lock("secret").ttl(TTL).wait(Duration::from_millis(300)).acquire().await;
        let Err(error @ AcquireError::NoQuorum(_)) = refused else { panic!("{refused:?}") };
        let said = error.to_string();
        assert!(!said.contains(&self.password), "the password is in the error: {said}");
        said
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "on containers: sh docker/run.sh test"]
async fn a_lock_behind_tls_with_no_more_rights_than_needed() {
    bounded(async {
        let secure = Secure::new();
        let redlock = secure.client("quorlock", &secure.password, secure.tls()).await;
        let other = secure.client("quorlock", &secure.password, secure.tls()).await;
        // Long enough for a renewal, and with somebody who waits: all commands there are.
        let guard = redlock.lock("secret").ttl(TTL).wait(Duration::from_secs(20)).acquire().await.unwrap();
        let refused = other.lock("secret").ttl(TTL).wait(Duration::from_millis(500)).acquire().await;
        assert!(matches!(refused, Err(AcquireError::Contended(_))), "{refused:?}");
        tokio::time::sleep(TTL * 2).await;
        assert!(guard.is_valid());
        guard.extend(Duration::from_secs(3)).await.unwrap();
        assert!(guard.release().await.is_freed());
        let inspection = Redlock::builder()
            .masters(&secure.urls)
            .credentials("quorlock", &secure.password)
            .tls(secure.tls())
            .inspect("secret")
            .await
            .unwrap();
        assert!(inspection.sightings.iter().all(|sighting| sighting.key.is_ok()), "{inspection:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "on containers: sh docker/run.sh test"]
async fn a_wrong_password_a_wrong_authority_and_a_missing_right_say_so() {
    bounded(async {
        let secure = Secure::new();
        let said = secure.refusal("quorlock", "wrong", secure.tls()).await;
        assert!(said.contains("WRONGPASS"), "{said}");

        let stranger = tempfile::tempdir().unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/docker/certs.sh");
        assert!(Command::new("sh").arg(script).arg(stranger.path()).status().unwrap().success());
        let tls = Tls::new().ca_file(stranger.path().join("ca.pem"));
        let said = secure.refusal("quorlock", &secure.password, tls).await;
        assert!(said.contains("InvalidCertificate"), "{said}");

        let said = secure.refusal("limited", &secure.password, secure.tls()).await;
        assert!(said.contains("NOPERM") || said.contains("permission"), "{said}");
    })
    .await;
}
