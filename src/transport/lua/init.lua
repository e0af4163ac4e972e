-- Admits a master nobody held a lock on before. KEYS: the hash of admission, the fencing counters. ARGV: run_id, the
-- longest ttl in ms, "first" where no master of the fleet has fencing counters.
-- Answers "admitted", or "known" where the master already belongs to a fleet.
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 'known'
end
if ARGV[3] == 'first' then
  redis.call('HSET', KEYS[2], 'run', ARGV[1])
end
redis.call('HSET', KEYS[1], 'run', ARGV[1], 'qrun', ARGV[1], 'max_ttl', ARGV[2])
return 'admitted'
