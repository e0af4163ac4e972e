//! Containers exclude each other.

use std::time::Duration;

use quorlock::AcquireError;

use crate::bed::{Bed, bounded, client, docker, docker_ok};

/// The command `quorlock` in a container of its own, on the masters' network.
fn quorlock(bed: &Bed, words: &[&str]) -> std::process::Output {
    let image = std::env::var("QUORLOCK_APP_IMAGE").expect("docker/run.sh names the project's image");
    let label = format!("com.docker.compose.project={}", bed.containers.project());
    let network = bed.name("lock");
    let masters =
        "QUORLOCK_MASTERS=redis://m1:6379,redis://m2:6379,redis://m3:6379,redis://m4:6379,redis://m5:6379";
    let run = [
        "run",
        "--rm",
        "--label",
        &label,
        "--network",
        &network,
        "--read-only",
        "--cap-drop",
        "ALL",
        "-e",
        masters,
    ];
    docker(&[&run[..], &[image.as_str(), "--max-ttl", "4s"], words].concat())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "on containers: sh docker/run.sh test"]
async fn a_lock_taken_in_one_container_excludes_another() {
    bounded(async {
        let bed = Bed::fresh().await;
        let taken = quorlock(&bed, &["acquire", "order:1", "--ttl", "4s"]);
        let holder = String::from_utf8(taken.stdout).unwrap().trim().to_owned();
        assert!(taken.status.success() && !holder.is_empty(), "{}", String::from_utf8_lossy(&taken.stderr));
        assert_eq!(bed.copies("order:1"), 5);

        let refused = quorlock(&bed, &["acquire", "order:1", "--ttl", "4s", "--wait", "0s"]);
        assert_eq!(refused.status.code(), Some(75), "{}", String::from_utf8_lossy(&refused.stderr));
        let here = client(&bed.urls).await;
        let refused = here.lock("order:1").ttl(Duration::from_secs(2)).try_acquire().await;
        assert!(matches!(refused, Err(AcquireError::Contended(_))), "{refused:?}");

        // Given back, or over by itself if the container took its time.
        quorlock(&bed, &["release", "order:1", "--holder", &holder]);
        let guard = here.lock("order:1").ttl(Duration::from_secs(2)).acquire().await.unwrap();
        assert!(guard.release().await.is_freed());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "on containers: sh docker/run.sh test"]
async fn masters_are_what_the_compose_file_says() {
    bounded(async {
        let bed = Bed::fresh().await;
        for nth in 1..=5 {
            let name = bed.name(&format!("m{nth}"));
            let look = "{{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}} {{.HostConfig.Memory}} {{.State.Health.Status}} \
                        {{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}} {{range $p := .NetworkSettings.Ports}}{{(index $p 0).HostIp}}{{end}}";
            let seen = docker_ok(&["inspect", "-f", look, &name]);
            let seen: Vec<&str> = seen.split_whitespace().collect();
            assert_eq!(seen[..4], ["true", "[ALL]", "67108864", "healthy"], "{name}");
            assert!(seen[4].ends_with(&format!(".1{nth}")), "{name} has the address {}", seen[4]);
            assert_eq!(seen[5], "127.0.0.1", "{name}");
        }
    })
    .await;
}
