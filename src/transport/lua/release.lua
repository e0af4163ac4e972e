-- One compare-and-delete, as act.lua does it, for a release that travels alone. KEYS[1]: the resource. ARGV[1]: the
-- holder. Answers 1, 0 or 2; an error comes as one, since the write is the last thing done.
local value = redis.pcall('GET', KEYS[1])
if value == ARGV[1] then
  return redis.call('DEL', KEYS[1])
elseif not value then
  return 0
elseif type(value) == 'table' then
  return string.sub(value.err, 1, 9) == 'WRONGTYPE' and 2 or value
elseif string.sub(value, 1, #ARGV[1] + 1) == ARGV[1] .. '|' then
  return redis.call('DEL', KEYS[1])
end
return 2
