-- Raises a master's fencing counters to those of others, after which it takes part in fencing. KEYS: the counters, the
-- hash of admission. ARGV: run_id, "first" where fencing was never used or "", then each shard with its counter.
-- Answers "counts"; "quarantine" where the master may not vote yet; "lost" where fencing was used after all.
if redis.call('HMGET', KEYS[2], 'run')[1] ~= ARGV[1] then
  return 'quarantine'
end
if ARGV[2] == 'first' and redis.call('EXISTS', KEYS[1]) == 1 then
  return redis.call('HMGET', KEYS[1], 'run')[1] == ARGV[1] and 'counts' or 'lost'
end
for i = 3, #ARGV, 2 do
  if tonumber(redis.call('HMGET', KEYS[1], ARGV[i])[1] or 0) < tonumber(ARGV[i + 1]) then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  end
end
-- Last: an error before leaves the master outside.
redis.call('HSET', KEYS[1], 'run', ARGV[1])
return 'counts'
