//! How long the script holds a master, which does nothing else meanwhile.

use std::error::Error;

use quorlock::testbed::{LocalMaster, Reply, ServerBinary};

use crate::transport::script::ACT;
use crate::{HOLDER, key};

/// Of each kind.
const CALLS: usize = 300;

/// What the call is for, its letter, and its ttl: a renewal finds less than it asks for, as is the rule.
const ACTS: [(&str, &str, &str); 3] =
    [("claims", "c", "20000"), ("renewals", "x", "30000"), ("releases", "d", "0")];

pub(crate) fn measure(counts: &[usize]) -> Result<(), Box<dyn Error>> {
    let master = LocalMaster::start(&ServerBinary::find()?, &[])?;
    let sha = master.command(&["SCRIPT", "LOAD", ACT])?.text().ok_or("no hash of the script")?;
    println!("\nmicroseconds of a master, by its own clock, means of {CALLS} calls");
    println!("  acts of a call         a call   an act");
    for &count in counts {
        for (what, letter, ttl) in ACTS {
            master.command(&["CONFIG", "RESETSTAT"])?;
            for call in 0..CALLS {
                let keys: Vec<String> = (0..count).map(|nth| key(call * count + nth)).collect();
                let (number, letters) = (count.to_string(), letter.repeat(count));
                let mut command = vec!["EVALSHA", &sha, &number];
                command.extend(keys.iter().map(String::as_str));
                command.extend([letters.as_str(), ttl]);
                command.extend(keys.iter().map(|_| HOLDER));
                let said = master.command(&command)?;
                if said != Reply::Array(vec![Reply::Integer(1); count]) {
                    return Err(format!("{what}: {said:?}").into());
                }
            }
            let spent = spent(&master)?;
            println!("  {count:>2} {what:<10}{spent:>14.1}{:>9.2}", spent / count as f64);
        }
    }
    Ok(())
}

/// Microseconds a call since the last reset.
fn spent(master: &LocalMaster) -> Result<f64, Box<dyn Error>> {
    let info = master.info()?;
    let told = info.get("cmdstat_evalsha").map_or("", String::as_str);
    let mean = told.split(',').find_map(|part| part.strip_prefix("usec_per_call="));
    Ok(mean.ok_or("the master does not say what its commands took")?.parse()?)
}
