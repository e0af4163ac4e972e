//! A path to a master that is slow, lossy or silent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use quorlock::testbed::LocalMaster;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

use crate::fleet::{Fleet, ms};

/// One path. Ends with its connections when dropped.
pub(crate) struct Proxy {
    port: u16,
    path: Arc<Path>,
    task: AbortHandle,
}

#[derive(Default)]
struct Path {
    requests_late_ms: AtomicU64,
    replies_late_ms: AtomicU64,
    swallow: AtomicBool,
    silent: AtomicBool,
    cut: Notify,
}

impl Proxy {
    pub(crate) async fn before(master: &LocalMaster) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let path = Arc::new(Path::default());
        let (shared, to) = (path.clone(), master.address());
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                let path = shared.clone();
                connections.spawn(async move {
                    if let Ok(far) = TcpStream::connect(to).await {
                        path.carry(near, far).await;
                    }
                });
            }
        });
        Self { port, path, task: task.abort_handle() }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn delay_requests(&self, by: Duration) {
        self.path.requests_late_ms.store(by.as_millis() as u64, Ordering::Relaxed);
    }

    pub(crate) fn delay_replies(&self, by: Duration) {
        self.path.replies_late_ms.store(by.as_millis() as u64, Ordering::Relaxed);
    }

    /// The next reply is lost, and its connection closed.
    pub(crate) fn swallow_a_reply(&self) {
        self.path.swallow.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_swallowed(&self) -> bool {
        !self.path.swallow.load(Ordering::Relaxed)
    }

    /// Closes the client's connections. What they had sent is still delivered.
    pub(crate) fn cut(&self) {
        self.path.cut.notify_waiters();
    }

    /// Nothing passes, nothing is closed.
    pub(crate) fn be_silent(&self, silent: bool) {
        self.path.silent.store(silent, Ordering::Relaxed);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Path {
    async fn carry(&self, near: TcpStream, far: TcpStream) {
        let _ = (near.set_nodelay(true), far.set_nodelay(true));
        let (near_read, near_write) = near.into_split();
        let (far_read, far_write) = far.into_split();
        let requests = self.pump(near_read, far_write, &self.requests_late_ms, None);
        tokio::pin!(requests);
        // Either direction's end ends both.
        tokio::select! {
            () = &mut requests => return,
            () = self.pump(far_read, near_write, &self.replies_late_ms, Some(&self.swallow)) => return,
            () = self.cut.notified() => {}
        }
        requests.await;
    }

    async fn pump(
        &self,
        mut from: impl AsyncReadExt + Unpin,
        mut to: impl AsyncWriteExt + Unpin,
        late_ms: &AtomicU64,
        swallow: Option<&AtomicBool>,
    ) {
        let (put, mut take) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
        let read = async move {
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(length @ 1..) = from.read(&mut buffer).await {
                if swallow.is_some_and(|swallow| swallow.swap(false, Ordering::Relaxed)) {
                    return false;
                }
                let due = Instant::now() + ms(late_ms.load(Ordering::Relaxed));
                let _ = put.send((due, buffer[..length].to_vec()));
            }
            // What was sent before the end still arrives.
            true
        };
        let write = async {
            while let Some((due, bytes)) = take.recv().await {
                sleep_until(due).await;
                while self.silent.load(Ordering::Relaxed) {
                    sleep(ms(5)).await;
                }
                if to.write_all(&bytes).await.is_err() {
                    return;
                }
            }
        };
        tokio::pin!(write);
        tokio::select! {
            deliver = read => if deliver { write.await },
            () = &mut write => {}
        }
    }
}

/// A path before each master of a fleet.
pub(crate) struct Paths(pub(crate) Vec<Proxy>);

impl Paths {
    pub(crate) async fn to(fleet: &Fleet) -> Self {
        let mut paths = Vec::new();
        for master in fleet.masters() {
            paths.push(Proxy::before(master).await);
        }
        Self(paths)
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.0.iter().map(Proxy::url).collect()
    }
}

impl std::ops::Index<usize> for Paths {
    type Output = Proxy;

    fn index(&self, index: usize) -> &Proxy {
        &self.0[index]
    }
}
