-- One act on several keys in one call, all or none: nothing is written before every key was looked at.
-- KEYS: the resources. ARGV: the letter of the act as in act.lua, the holder, the ttl in milliseconds; for a fenced act
-- also run_id, its number, and the shard of each resource. One number is for all of them, above all their counters.
-- The answer: 1 yes; 0 no other's key, but one of ours is missing; "nth=pttl holder" the nth key is another's, of several
-- the one that stays longest; "!words" an error; "+number" and "~" as in act.lua. A release answers 1 if any was ours.
local call = redis.pcall
local letter, holder, ttl = ARGV[1], ARGV[2], ARGV[3]
local fenced, act = letter < 'a', string.lower(letter)
local claims, releases, marked = act == 'c' or act == 'w', act == 'd', holder .. '|'
local sign, taken = holder, nil
local ours, missing, other, longest, trouble = {}, {}, nil, nil, nil
for nth, key in ipairs(KEYS) do
  local value = call('GET', key)
  local err = type(value) == 'table' and value.err
  if not value then
    missing[#missing + 1] = key
  elseif err and string.sub(err, 1, 9) ~= 'WRONGTYPE' then
    trouble = err
  elseif not err and not claims and (value == holder or act ~= 'r' and string.sub(value, 1, #marked) == marked) then
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
elseif (act == 'x' or act == 'r') and #missing > 0 then
  return 0
end
if fenced then
  local known = call('HMGET', 'quorlock:fence', 'run', unpack(ARGV, 6))
  if known.err then
    return '!' .. known.err
  end
  local counts, wish, greatest = known[1] == ARGV[4], tonumber(ARGV[5]), 0
  for nth = 1, #KEYS do
    known[nth] = tonumber(known[nth + 1] or 0)
    if not known[nth] then
      return '!DENIED the fencing counter ' .. ARGV[5 + nth] .. ' is no number'
    end
    greatest = math.max(greatest, known[nth])
  end
  if claims then
    local time = call('TIME')
    if not counts then
      return '~'
    elseif time.err then
      return '!NOPERM TIME: ' .. time.err
    elseif wish > time[1] * 1000000 + time[2] + 86400000000 then
      wish = 0
    end
    wish = math.max(greatest + 1, wish)
    if wish >= 9007199254740992 then
      return '!DENIED a fencing counter is used up'
    end
    taken = string.format('%.0f', wish)
  elseif act == 'r' and not counts then
    return '~'
  end
  for nth = 1, counts and #KEYS or 0 do
    local done = known[nth] < wish and call('HSET', 'quorlock:fence', ARGV[5 + nth], string.format('%.0f', wish))
    if type(done) == 'table' then
      return '!' .. done.err
    end
  end
  if act == 'r' then
    return 1
  end
  sign = marked .. (taken or ARGV[5])
end
for _, key in ipairs(ours) do
  local done = redis.call('PTTL', key) < tonumber(ttl) and call('PEXPIRE', key, ttl)
  if type(done) == 'table' then
    return '!' .. done.err
  end
end
for nth, key in ipairs(missing) do
  local set = call('SET', key, sign, 'NX', 'PX', ttl)
  if not set or set.err then
    -- What was created is taken back, so that the error is that of an act that did nothing.
    for created = 1, nth - 1 do
      redis.call('DEL', missing[created])
    end
    return '!' .. (set and set.err or 'a key came to be within the call')
  end
end
return taken and '+' .. taken or 1
