//! What a container of the test bed runs beside servers.
//!
//!     bedtool proxy CONTROL NAME=LISTEN=TARGET…    proxies in front of masters, until it is ended
//!     bedtool tell CONTROL WORDS…                  one line to them: `m1 slow=100`, `m1 undo slow=100`, `status`
//!     redis-cli [-h HOST] [-p PORT] WORDS…         where the machine has a server but no client: just enough of one

use std::error::Error;
use std::net::{SocketAddr, ToSocketAddrs};
use std::process::ExitCode;

use quorlock::testbed::{Reply, Switchboard, Wire};

type Outcome = Result<bool, Box<dyn Error>>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [name, words @ ..] if name.ends_with("-cli") => client(words),
        [_, "proxy", control, ways @ ..] => proxy(control, ways),
        [_, "tell", control, words @ ..] => tell(control, &words.join(" ")),
        _ => Err("usage: bedtool proxy CONTROL NAME=LISTEN=TARGET… | bedtool tell CONTROL WORDS…".into()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bedtool: {error}");
            ExitCode::from(2)
        }
    }
}

fn proxy(control: &str, ways: &[&str]) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut switchboard = Switchboard::start(control.parse()?).await?;
        for way in ways {
            let [name, listen, target] = way.split('=').collect::<Vec<_>>()[..] else {
                return Err(format!("{way}: not NAME=LISTEN=TARGET").into());
            };
            switchboard.add(name, listen.parse::<SocketAddr>()?, target).await?;
        }
        // As process 1 of a container it would not be ended by a signal it does not listen for.
        let mut term = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        tokio::select! {
            served = switchboard.serve() => served?,
            _ = term.recv() => {}
            interrupted = tokio::signal::ctrl_c() => interrupted?,
        }
        Ok(true)
    })
}

fn tell(control: &str, line: &str) -> Outcome {
    println!("{}", Switchboard::tell(control.parse()?, line)?);
    Ok(true)
}

fn client(mut words: &[&str]) -> Outcome {
    let (mut host, mut port) = ("127.0.0.1", 6379);
    loop {
        words = match words {
            ["-h", value, rest @ ..] => {
                host = value;
                rest
            }
            ["-p", value, rest @ ..] => {
                port = value.parse()?;
                rest
            }
            ["-e" | "--raw", rest @ ..] => rest,
            _ => break,
        };
    }
    let address = (host, port).to_socket_addrs()?.next().ok_or("no such host")?;
    let reply = Wire::connect(address)?.command(words)?;
    print(&reply);
    Ok(!matches!(reply, Reply::Error(_)))
}

fn print(reply: &Reply) {
    match reply {
        Reply::Integer(number) => println!("{number}"),
        Reply::Array(replies) => replies.iter().for_each(print),
        other => println!("{}", other.text().unwrap_or_default()),
    }
}
