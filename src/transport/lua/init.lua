-- Admits a master nobody held a lock on before. KEYS: the hash of admission. ARGV: run_id, the longest ttl in ms.
-- Answers "admitted", or "known" where the master already belongs to a fleet.
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 'known'
end
redis.call('HSET', KEYS[1], 'run', ARGV[1], 'qrun', ARGV[1], 'max_ttl', ARGV[2])
return 'admitted'
