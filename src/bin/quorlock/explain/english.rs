//! The five pitfalls in English.

use super::page::Page;

pub(super) static PAGES: [Page; 5] = [
    Page {
        title: "Pitfall 1: somebody else's lock deleted",
        text: "\
Symptom
  Two workers handle the same order at the same time. Libraries that look whose lock it is complain when they unlock; the
  others say nothing.

How it happens
  A holds the lock and is slow; its ttl ends; B gets the lock; A finishes and deletes the key, which is B's by now; C comes
  in while B still works. Two things make it possible: a value that is the same for everybody (\"1\", \"locked\", a user's or
  an order's id), and a DEL that does not look at the value.

Evidence
  The value, on each master, while the lock is held. A random one is right; a constant is not:
      quorlock inspect order:123
      redis-cli -h m1 -p 6379 GET order:123
  Who deletes without looking. MONITOR is expensive: a few seconds, off the peak:
      quorlock doctor order:123 --monitor 5s
  In the logs: work on one id by two workers, whose times overlap.

Repair
  A value that is new for each acquisition (host, process and a random UUID), and a release that compares and deletes in one
  step. Here both is all there is: `acquire` makes a new holder id each time, and this deletes only while it stands there:
      quorlock release order:123 --holder 'web-3:1842/0f2c…'
  With another library: `SET key $UUID NX PX 30000`, and the release in Lua: get, compare, del. If it answers 0, the lock was
  no longer yours: that is an alarm, not a reason to try again.
  Behind the lock: a unique index, or a fencing token that the database compares. A lock makes collisions rare; those
  make them harmless.
",
    },
    Page {
        title: "Pitfall 2: the lock expired under its holder",
        text: "\
Symptom
  No error at all. Now and then stock is deducted twice, or a message goes out twice, on days when the database or the
  garbage collector is slow.

How it happens
  The ttl is a guess at how long the work takes. One run in a hundred takes longer, the key expires, and the next one is let in.
  Nobody told the first one.

Evidence
  What became of a lock that you had; gone, or somebody else's by now:
      quorlock doctor order:123 --expect 'web-3:1842/0f2c…'
  The ttl against the work's 99th percentile, measured where the work is done:
      quorlock doctor order:123 --p99 8s --ttl 30s
      redis-cli -h m1 -p 6379 PTTL order:123       (-2: gone; much less than the P99: soon)

Repair
  A ttl of three times the P99 at least. And renewal: each third of the ttl, by a script that compares the value before it
  sets the time, for as long as the work runs and no longer. This client does so by itself; only `.no_renewal()` ends it.
  (In Redisson an explicit lease time switches the watchdog off, which surprises many.)
  Renewal fails, too: then the holder must stop. `guard.lost()` resolves at the deadline, even if every packet is lost, and
  `guard.is_valid()` belongs right before each effect. Work that was sent before may still arrive after: only a fencing token
  or a version column catches that.
  Watch the time a lock is held against its ttl, and the renewals that fail.
",
    },
    Page {
        title: "Pitfall 3: SETNX, then EXPIRE",
        text: "\
Symptom
  One resource cannot be locked any more. Everybody times out, since some deployment or crash, and for ever.

How it happens
  The lock is taken by SETNX and gets its expiry by a second command. The process dies in between, or the connection does; the
  key stays without a ttl, and its holder does not exist any more. `SET key value NX` without PX is the same in one command.

Evidence
  A remaining time of -1 is the proof:
      quorlock inspect order:123
      redis-cli -h m1 -p 6379 PTTL order:123
  All of them, gently:
      quorlock list --json | jq 'select(.expires | not)'
  Who does it:
      quorlock doctor --monitor 5s

Repair
  One command: `SET key value NX PX 30000`. It is all that this client ever sends.
  The key that is stuck: make sure that its holder is dead, then delete it only while it is still his:
      quorlock release order:123 --holder VALUE
  Alarm on it: on masters that are for locks only, keys minus expires in INFO keyspace is 1 (quorlock's own), and must stay so.
",
    },
    Page {
        title: "Pitfall 4: the release is not atomic",
        text: "\
Symptom
  As in pitfall 1, but rarer, and the code looks right: it compares the value before it deletes. Only under load, or with pauses, two
  workers overlap.

How it happens
  GET says that the lock is ours. Before the DEL arrives the ttl ends and somebody else gets it. The DEL takes no notice and
  deletes the lock of the successor. The same goes for EXPIRE after a GET: it prolongs the lock of another.

Evidence
  Only the order of commands shows it: a GET and a DEL by one client, as two commands, with a SET by another in between at
  the worst. Five seconds on one master tell; it may halve what the master can do meanwhile:
      quorlock doctor order:123 --monitor 5s
      redis-cli -h m1 -p 6379 MONITOR | grep order:123
  GET and DEL that MONITOR shows as `lua` are a script, and right.

Repair
  Compare and delete in one step, that is in Lua, or by DELIFEQ where the server has it (Valkey 9):
      if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0
  WATCH, GET, MULTI, DEL, EXEC is right, too, and slower. The answer 0 means that the lock was lost before: log it.
  All releases and renewals of this client are such scripts; from a shell:
      quorlock release order:123 --holder 'web-3:1842/0f2c…'
",
    },
    Page {
        title: "Pitfall 5: the failover forgot the lock",
        text: "\
Symptom
  Two holders for a while, right after a failover or a restart, with no mistake in the code and a healthy ttl.

How it happens
  The master grants the lock and dies before its replica hears of it. The replica is promoted, does not know the lock, and grants
  it again. A single server that restarts without its last writes does the same. So does a fleet in which one server is listed
  twice, or a replica beside its master.

Evidence
  On the new master there is no key, or one with another's value and nearly its full ttl, while the first holder still works:
      quorlock doctor order:123 --expect 'web-3:1842/0f2c…'
  Roles, replicas, restarts and twins, by name:
      quorlock doctor
      redis-cli -h m1 -p 6379 INFO replication
  From the key alone it looks like pitfall 2. The time tells: was there a failover?

Repair
  Five independent masters, none of them a replica, none with one, and a majority of them for each lock; a master that
  restarted keeps out for the longest ttl. That is what this client does. `min_votes = 4`, in every client, covers two masters
  that forget at once.
  On a single master with replicas: WAIT 1 100 after the SET, and a failure if nobody acknowledged, makes the gap smaller. It
  does not close it.
  What may never happen twice needs more than a lock: a fencing token that the database compares, or a store with consensus
  (etcd, ZooKeeper).
",
    },
];
