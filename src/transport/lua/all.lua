-- One act on several keys in one call, all or none: nothing is written before every key was looked at.
-- KEYS: the resources. ARGV: the letter of the act as in act.lua, the holder, the ttl in milliseconds.
-- The answer: 1 yes; 0 no other's key, but one of ours is missing; "nth=pttl holder" the nth key is another's, of several
-- the one that stays longest; "!words" an error. A release answers 1 if any was ours.
local call = redis.pcall
local act, holder, ttl = ARGV[1], ARGV[2], ARGV[3]
local claims, releases, marked = act == 'c' or act == 'w', act == 'd', holder .. '|'
local ours, missing, other, longest, trouble = {}, {}, nil, nil, nil
for nth, key in ipairs(KEYS) do
  local value = call('GET', key)
  local err = type(value) == 'table' and value.err
  if not value then
    missing[#missing + 1] = key
  elseif err and string.sub(err, 1, 9) ~= 'WRONGTYPE' then
    trouble = err
  elseif not err and not claims and (value == holder or string.sub(value, 1, #marked) == marked) then
    ours[#ours + 1] = key
  else
    -- A key of another type is somebody's all the same, and one without a ttl stays longest.
    local pttl = redis.call('PTTL', key)
    local stays = pttl == -1 and math.huge or pttl
    if not other or stays > longest then
      other, longest = nth .. '=' .. pttl .. ' ' .. (err and '' or value), stays
    end
  end
end
if releases then
  for _, key in ipairs(ours) do
    local done = call('DEL', key)
    trouble = type(done) == 'table' and done.err or trouble
  end
  return trouble and '!' .. trouble or #ours > 0 and 1 or other or 0
elseif trouble then
  return '!' .. trouble
elseif other then
  return other
elseif act == 'x' and #missing > 0 then
  return 0
end
for _, key in ipairs(ours) do
  local done = redis.call('PTTL', key) < tonumber(ttl) and call('PEXPIRE', key, ttl)
  if type(done) == 'table' then
    return '!' .. done.err
  end
end
for nth, key in ipairs(missing) do
  local set = call('SET', key, holder, 'NX', 'PX', ttl)
  if not set or set.err then
    -- What was created is taken back, so that the error is that of an act that did nothing.
    for created = 1, nth - 1 do
      redis.call('DEL', missing[created])
    end
    return '!' .. (set and set.err or 'a key came to be within the call')
  end
end
return 1
