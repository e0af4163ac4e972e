//! The fault proxy: in front of a socket of the test's own where bytes matter, of a real master where commands do.

#![allow(clippy::unwrap_used, reason = "a test's own helpers are no less tests")]

use std::future::Future;
use std::io::ErrorKind;
use std::time::Duration;

use quorlock::testbed::{
    Data, Direction, Fault, Flow, LocalMaster, Outcome, Proxy, ServerBinary, Switchboard,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

/// Far above what any step here takes, so that only a hang meets it.
const BOUND: Duration = Duration::from_secs(30);

/// Long enough for something wrong to show.
const WHILE: Duration = Duration::from_millis(100);

async fn bounded<T>(step: impl Future<Output = T>) -> T {
    timeout(BOUND, step).await.expect("it hangs")
}

/// A proxy, a connection through it, and its other end.
struct Way {
    proxy: Proxy,
    client: TcpStream,
    master: TcpStream,
    listener: TcpListener,
}

impl Way {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Proxy::start(listener.local_addr().unwrap().to_string()).await.unwrap();
        let (client, master) = connect(&proxy, &listener).await;
        Self { proxy, client, master, listener }
    }

    /// Sends a request and waits for it at the other end.
    async fn request(&mut self, bytes: &[u8]) {
        pass(&mut self.client, &mut self.master, bytes).await;
    }

    async fn reply(&mut self, bytes: &[u8]) {
        pass(&mut self.master, &mut self.client, bytes).await;
    }
}

async fn connect(proxy: &Proxy, listener: &TcpListener) -> (TcpStream, TcpStream) {
    let client = bounded(TcpStream::connect(proxy.address())).await.unwrap();
    let (master, _) = bounded(listener.accept()).await.unwrap();
    client.set_nodelay(true).unwrap();
    master.set_nodelay(true).unwrap();
    (client, master)
}

async fn pass(from: &mut TcpStream, to: &mut TcpStream, bytes: &[u8]) {
    from.write_all(bytes).await.unwrap();
    let mut got = vec![0; bytes.len()];
    bounded(to.read_exact(&mut got)).await.unwrap();
    assert_eq!(got, bytes);
}

/// Whether nothing arrives, not even the end.
async fn is_silent(stream: &mut TcpStream) -> bool {
    timeout(WHILE, stream.read(&mut [0])).await.is_err()
}

async fn is_reset(stream: &mut TcpStream) -> bool {
    bounded(stream.read(&mut [0])).await.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset)
}

#[tokio::test]
async fn bytes_pass_and_are_counted_and_each_side_may_close() {
    let mut way = Way::new().await;
    way.request(b"request").await;
    way.reply(b"a reply").await;
    way.client.shutdown().await.unwrap();
    assert_eq!(bounded(way.master.read(&mut [0])).await.unwrap(), 0);
    way.reply(b"still open this way").await;
    let traffic = way.proxy.traffic();
    assert_eq!((traffic.connections, traffic.open), (1, 1));
    assert_eq!((traffic.to_master, traffic.to_client), (7, 26));
    drop(way.master);
    assert_eq!(bounded(way.client.read(&mut [0])).await.unwrap(), 0);
    bounded(async {
        while way.proxy.traffic().open > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn delay_is_met_closely_in_each_direction_by_itself() {
    let mut way = Way::new().await;
    let delay = Duration::from_millis(10);
    way.proxy.set(Direction::ToMaster, Flow::new().delayed(delay));
    // The best of several: a busy machine adds to some, and nothing may take away from any.
    let mut best = Duration::MAX;
    for _ in 0..20 {
        let asked = Instant::now();
        way.request(b"x").await;
        let took = asked.elapsed();
        assert!(took >= delay, "after {took:?}");
        best = best.min(took);
    }
    assert!(best < delay + Duration::from_millis(1), "{best:?} at best");
    let asked = Instant::now();
    way.reply(b"x").await;
    assert!(asked.elapsed() < delay, "the other direction is delayed too");
}

#[tokio::test]
async fn jitter_keeps_the_order() {
    let mut way = Way::new().await;
    way.proxy.set(Direction::ToMaster, Flow::new().jittered(Duration::from_millis(20)));
    let sent: Vec<u8> = (0..100).collect();
    let asked = Instant::now();
    let (client, master) = (&mut way.client, &mut way.master);
    let send = async {
        for byte in &sent {
            client.write_all(&[*byte]).await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    let mut got = vec![0; sent.len()];
    let (_, read) = bounded(async { tokio::join!(send, master.read_exact(&mut got)) }).await;
    read.unwrap();
    assert_eq!(got, sent);
    assert!(asked.elapsed() < Duration::from_secs(1), "the jitters were added up: {:?}", asked.elapsed());
}

#[tokio::test]
async fn delay_does_not_limit_throughput() {
    let Way { proxy, mut client, mut master, listener: _listener } = Way::new().await;
    proxy.set(Direction::ToMaster, Flow::new().delayed(Duration::from_millis(200)));
    // If each chunk of 64 KiB waited for the one before, this would take 100 s.
    let size = 32 << 20;
    let asked = Instant::now();
    let sent = vec![7; size];
    let mut got = vec![0; size];
    let both = async { tokio::join!(client.write_all(&sent), master.read_exact(&mut got)) };
    let (written, read) = bounded(both).await;
    written.unwrap();
    read.unwrap();
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    assert!(got.iter().all(|byte| *byte == 7));
}

#[tokio::test]
async fn what_is_held_arrives_afterwards_and_what_was_delayed_waits_too() {
    let mut way = Way::new().await;
    way.proxy.set(Direction::ToMaster, Flow::new().delayed(Duration::from_millis(20)));
    way.client.write_all(b"on its way ").await.unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    way.proxy.set(Direction::ToMaster, Flow::new().held());
    way.client.write_all(b"held").await.unwrap();
    assert!(is_silent(&mut way.master).await);
    way.reply(b"the other way is open").await;
    way.proxy.clear().await;
    let mut got = [0; 15];
    bounded(way.master.read_exact(&mut got)).await.unwrap();
    assert_eq!(&got, b"on its way held");
    way.request(b"and so on").await;
}

#[tokio::test]
async fn after_a_gap_nothing_follows_and_the_end_of_it_is_a_reset() {
    let mut way = Way::new().await;
    way.proxy.set(Direction::ToMaster, Flow::new().dropped());
    way.client.write_all(b"lost").await.unwrap();
    assert!(is_silent(&mut way.master).await);
    way.reply(b"the other way is open").await;
    let (mut idle, mut idle_master) = connect(&way.proxy, &way.listener).await;
    way.proxy.clear().await;
    assert!(is_reset(&mut way.client).await && is_reset(&mut way.master).await);
    assert_eq!((way.proxy.traffic().lost_to_master, way.proxy.traffic().to_master), (4, 0));
    pass(&mut idle, &mut idle_master, b"a connection that lost nothing goes on").await;
}

#[tokio::test]
async fn a_connection_is_cut_after_so_many_bytes_counted_from_the_setting_on() {
    let mut way = Way::new().await;
    way.request(b"before").await;
    way.proxy.set(Direction::ToMaster, Flow::new().cut_after(5));
    way.request(b"123").await;
    way.client.write_all(b"4567").await.unwrap();
    let mut got = Vec::new();
    bounded(way.master.read_to_end(&mut got)).await.unwrap();
    assert_eq!(got, b"45");
    // In good order, or with a reset where bytes were left unread; closed in any case.
    assert!(!matches!(bounded(way.client.read(&mut [0])).await, Ok(1)));

    way.proxy.set_both(Flow::new().cut_after(0));
    let mut second = TcpStream::connect(way.proxy.address()).await.unwrap();
    assert_eq!(bounded(second.read(&mut [0])).await.unwrap(), 0);
}

#[tokio::test]
async fn a_reset_is_felt_on_both_sides_also_while_one_of_them_is_stuck() {
    let mut way = Way::new().await;
    // More than all buffers hold, towards a master that reads nothing.
    let flood = async { while way.client.write_all(&[0; 1 << 20]).await.is_ok() {} };
    assert!(timeout(WHILE * 5, flood).await.is_err(), "it never got stuck");
    way.proxy.reset();
    assert!(is_reset(&mut way.client).await);
    assert!(bounded(way.master.read_to_end(&mut Vec::new())).await.is_err());
    let (mut next, mut next_master) = connect(&way.proxy, &way.listener).await;
    pass(&mut next, &mut next_master, b"a new connection is not reset").await;
}

#[tokio::test]
async fn refused_and_accepted_again_on_the_same_port() {
    let mut way = Way::new().await;
    bounded(way.proxy.refuse()).await;
    for _ in 0..3 {
        let refused = bounded(TcpStream::connect(way.proxy.address())).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    }
    way.request(b"what was open stays open").await;
    bounded(way.proxy.accept()).await;
    let (mut next, mut next_master) = connect(&way.proxy, &way.listener).await;
    pass(&mut next, &mut next_master, b"open").await;
}

#[tokio::test]
async fn dropping_the_proxy_closes_its_port_and_its_connections() {
    let mut way = Way::new().await;
    let address = way.proxy.address();
    drop(way.proxy);
    assert!(!matches!(bounded(way.client.read(&mut [0])).await, Ok(1)));
    assert!(!matches!(bounded(way.master.read(&mut [0])).await, Ok(1)));
    assert_eq!(TcpStream::connect(address).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

/// Sends one command through the proxy and reads as much as comes.
async fn command(stream: &mut TcpStream, words: &[&str]) -> Option<String> {
    let words: String = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
    let command = format!("*{}\r\n{words}", words.matches('$').count());
    stream.write_all(command.as_bytes()).await.unwrap();
    let mut reply = [0; 256];
    let read = timeout(WHILE, stream.read(&mut reply)).await.ok()?.unwrap();
    Some(String::from_utf8_lossy(&reply[..read]).into_owned())
}

#[tokio::test]
async fn a_lost_reply_was_applied_and_a_lost_request_was_not() {
    let master = LocalMaster::start(&ServerBinary::find().unwrap(), &[]).unwrap();
    let proxy = Proxy::start(master.url()).await.unwrap();
    assert!(proxy.url().starts_with("redis://127.0.0.1:") && proxy.url() != master.url());
    let client = async || bounded(TcpStream::connect(proxy.address())).await.unwrap();
    assert_eq!(command(&mut client().await, &["SET", "a", "1"]).await.unwrap(), "+OK\r\n");

    proxy.set(Direction::ToClient, Flow::new().dropped());
    assert_eq!(command(&mut client().await, &["SET", "b", "1"]).await, None);
    assert_eq!(master.get("b").unwrap().unwrap(), b"1");

    proxy.clear().await;
    proxy.set(Direction::ToMaster, Flow::new().dropped());
    assert_eq!(command(&mut client().await, &["SET", "c", "1"]).await, None);
    assert_eq!(master.get("c").unwrap(), None);
}

#[tokio::test]
async fn a_master_that_is_down_is_a_reset_and_one_that_comes_back_is_found() {
    let master = LocalMaster::start(&ServerBinary::find().unwrap(), &[]).unwrap();
    let proxy = Proxy::start(master.url()).await.unwrap();
    master.kill().unwrap();
    let mut client = bounded(TcpStream::connect(proxy.address())).await.unwrap();
    assert!(is_reset(&mut client).await);
    master.restart(Data::Empty).unwrap();
    let mut client = bounded(TcpStream::connect(proxy.address())).await.unwrap();
    assert_eq!(command(&mut client, &["PING"]).await.unwrap(), "+PONG\r\n");
}

#[tokio::test]
async fn a_failover_leads_new_connections_elsewhere() {
    let (old, new) =
        (TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let proxy = Proxy::start(old.local_addr().unwrap().to_string()).await.unwrap();
    let (mut first, mut first_master) = connect(&proxy, &old).await;
    proxy.point_at(new.local_addr().unwrap().to_string()).unwrap();
    let (mut second, mut second_master) = connect(&proxy, &new).await;
    pass(&mut second, &mut second_master, b"to the new one").await;
    pass(&mut first, &mut first_master, b"still to the old one").await;
}

#[tokio::test]
async fn faults_have_the_same_words_here() {
    let mut way = Way::new().await;
    let word = |word: &str| word.parse::<Fault>().unwrap();
    assert!(way.proxy.inject(word("slow=30")).await.is_installed());
    let asked = Instant::now();
    way.request(b"x").await;
    way.reply(b"x").await;
    assert!(asked.elapsed() >= Duration::from_millis(60));
    assert!(way.proxy.inject(word("cut")).await.is_installed());
    way.client.write_all(b"held").await.unwrap();
    assert!(is_silent(&mut way.master).await);
    assert!(way.proxy.inject(word("join")).await.is_installed());
    bounded(way.master.read_exact(&mut [0; 4])).await.unwrap();
    assert!(way.proxy.inject(word("refuse")).await.is_installed());
    assert!(TcpStream::connect(way.proxy.address()).await.is_err());
    assert!(way.proxy.undo(word("refuse")).await.is_installed());
    assert!(TcpStream::connect(way.proxy.address()).await.is_ok());
    for fault in ["kill", "flush", "clock-step=1"] {
        assert!(matches!(way.proxy.inject(word(fault)).await, Outcome::Skipped { .. }), "{fault}");
    }
    assert!(way.proxy.inject(word("blackhole")).await.is_installed());
    way.client.write_all(b"lost").await.unwrap();
    way.master.write_all(b"lost").await.unwrap();
    assert!(is_silent(&mut way.master).await && is_silent(&mut way.client).await);
    assert!(way.proxy.undo(word("blackhole")).await.is_installed());
    assert!(is_reset(&mut way.client).await);
}

#[tokio::test]
async fn a_switchboard_does_as_it_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let any = "127.0.0.1:0".parse().unwrap();
    let mut board = Switchboard::start(any).await.unwrap();
    board.add("m1", any, &listener.local_addr().unwrap().to_string()).await.unwrap();
    let control = board.control().unwrap();
    let told = tokio::task::spawn_blocking(move || {
        [
            "status",
            "m1 slow=20",
            "status",
            "m1 undo slow=20",
            "m2 slow",
            "m1 melt",
            "m1 kill",
            "",
            "m1 point a:1",
        ]
        .map(|line| Switchboard::tell(control, line).unwrap())
    });
    let told = bounded(async {
        tokio::select! {
            told = told => told.unwrap(),
            served = board.serve() => panic!("{served:?}"),
        }
    })
    .await;
    assert_eq!(told[..4], ["m1 - 0 0 0", "installed", "m1 slow=20 0 0 0", "installed"]);
    for (answer, why) in
        told[4..8].iter().zip(["no proxy", "unknown fault", "not a fault on the way", "nothing"])
    {
        assert!(answer.starts_with("skipped: ") && answer.contains(why), "{answer}");
    }
    assert_eq!(told[8], "installed");
}
