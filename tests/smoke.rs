//! x
use quorlock::{Admission, Redlock, testbed::Testbed};
use std::time::{Duration, Instant};
#[tokio::test]
async fn smoke() {
    let bed = Testbed::start(5).unwrap();
    let r = Redlock::builder().masters(bed.urls()).admission(Admission::Off).connect().await.unwrap();
    let g = r.lock("a").acquire().await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    println!("{g:?} votes {}", g.votes());
    println!("{:?}", bed[0].get("a"));
    let e = r.lock("a").wait(Duration::from_millis(300)).acquire().await.unwrap_err();
    println!("{e}");
    println!("{:?}", g.extend(Duration::from_secs(40)).await);
    println!("{:?}", g.remaining());
    println!("{:?}", g.release().await);
    let mut best = Duration::MAX;
    for _ in 0..2000 {
        let t = Instant::now();
        let g = r.lock("b").acquire().await.unwrap();
        best = best.min(t.elapsed());
        let _ = g.release().await;
    }
    println!("best {best:?}");
    for i in 0..3 {
        bed[i].freeze().unwrap();
    }
    let t = Instant::now();
    let e = r.lock("a").wait(Duration::ZERO).acquire().await.unwrap_err();
    println!("{e} in {:?}", t.elapsed());
    println!("{:?}", r.close().await);
}
