-- A lock from hand to hand: one compare-and-delete and the claim that follows it, as act.lua does them one after the other.
-- KEYS[1]: the resource. ARGV: the holder that gives it back, the one that claims, the ttl of the latter in milliseconds.
-- The answers are those of act.lua to "d" and "c".
local call = redis.pcall
local key, old, new, ttl = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local value = call('GET', key)
if value == old then
  local set = call('SET', key, new, 'PX', ttl)
  if not set.err then
    return {1, 1}
  end
  -- No room for the new one; the old one has to go all the same.
  local done = call('DEL', key)
  return {type(done) == 'table' and '!' .. done.err or 1, '!' .. set.err}
end
local given = 0
if type(value) == 'table' then
  given = string.sub(value.err, 1, 9) == 'WRONGTYPE' and 2 or '!' .. value.err
elseif value and string.sub(value, 1, #old + 1) == old .. '|' then
  local done = call('DEL', key)
  given = type(done) == 'table' and '!' .. done.err or 1
elseif value then
  given = 2
end
local set = call('SET', key, new, 'NX', 'PX', ttl)
return {given, set and (set.err and '!' .. set.err or 1) or 2}
