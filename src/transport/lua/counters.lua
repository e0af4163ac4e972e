-- Looks at a master's fencing counters. KEYS: the counters. ARGV: run_id, and "all" to read them.
-- Answers "none" where fencing was never used, "lost" where the process that knew them all is another, else "counts"; or
-- all of it: "run" with that process, and each shard with its counter.
-- A claim needs the right to this, so a lack of it is told here, before any claim.
redis.call('TIME')
if ARGV[2] == 'all' then
  return redis.call('HGETALL', KEYS[1])
elseif redis.call('HMGET', KEYS[1], 'run')[1] == ARGV[1] then
  return 'counts'
end
return redis.call('EXISTS', KEYS[1]) == 1 and 'lost' or 'none'
