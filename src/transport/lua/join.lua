-- Admits this process of the master to voting, at once or after one quarantine that all clients share.
-- KEYS: the hash of admission, the quarantine. ARGV: run_id, the fleet's longest ttl, the quarantine, both in ms.
-- Answers "admitted", "wait <ms>", or "max_ttl <ms>" where the fleet uses another longest ttl.
local known = redis.call('HMGET', KEYS[1], 'run', 'qrun', 'max_ttl')
if known[3] and known[3] ~= ARGV[2] then
  return 'max_ttl ' .. known[3]
end
if known[1] == ARGV[1] then
  return 'admitted'
end
local left = -2
if known[2] == ARGV[1] then
  left = redis.call('PTTL', KEYS[2])
end
if left > 0 then
  return 'wait ' .. left
end
if known[2] ~= ARGV[1] or left == -1 then
  redis.call('HSET', KEYS[1], 'qrun', ARGV[1], 'max_ttl', ARGV[2])
  redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[3])
  return 'wait ' .. ARGV[3]
end
redis.call('HSET', KEYS[1], 'run', ARGV[1])
return 'admitted'
