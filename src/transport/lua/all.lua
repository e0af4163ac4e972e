-- Acts of several locks in one call, each on several keys, all or none: nothing of a lock is written before every key of
-- it was looked at. No lock can spoil another, so nothing here may raise an error.
-- KEYS: the resources, lock by lock. ARGV[1]: the letter of each lock's act as in act.lua. Then for each lock: the number
-- of its keys, its holder, its ttl in milliseconds.
-- Last the run_id, if an act is fenced; then the holder is "holder|shard,shard,…|number", with one number for all of the
-- lock's keys, above all of their counters.
-- The answer to each: 1 yes; 0 no other's key, but one of ours is missing; "nth=pttl holder" the nth key is another's, of
-- several the one that stays longest; "!words" an error; "+number" and "~" as in act.lua. A
-- release answers 1 if any was ours.
local call = redis.pcall

local function error_of(answer)
  return type(answer) == 'table' and answer.err
end

-- Raises the counters of a fenced lock, all of whose keys are as the act wants them. The value that signs what is created,
-- what is to be answered; or the answer alone, if it is not a yes.
local function raise(act, holder, shards, number)
  local fields = {}
  for shard in string.gmatch(shards, '%d+') do
    fields[#fields + 1] = shard
  end
  local known = call('HMGET', 'quorlock:fence', 'run', unpack(fields))
  if known.err then
    return nil, '!' .. known.err
  end
  local counts, wish, greatest = known[1] == ARGV[#ARGV], tonumber(number), 0
  for nth, shard in ipairs(fields) do
    known[nth] = tonumber(known[nth + 1] or 0)
    if not known[nth] then
      return nil, '!DENIED the fencing counter ' .. shard .. ' is no number'
    end
    greatest = math.max(greatest, known[nth])
  end
  if not counts then
    -- A key that is healed is for exclusion, which needs no counter.
    return act == 'h' and holder .. '|' .. number or nil, act == 'h' and 1 or '~'
  elseif act ~= 'h' and act ~= 'r' then
    local time = call('TIME')
    if time.err then
      return nil, '!NOPERM TIME: ' .. time.err
    elseif wish > time[1] * 1000000 + time[2] + 86400000000 then
      wish = 0
    end
    wish = math.max(greatest + 1, wish)
    if wish >= 9007199254740992 then
      return nil, '!DENIED a fencing counter is used up'
    end
  end
  number = string.format('%.0f', wish)
  for nth, shard in ipairs(fields) do
    local done = known[nth] < wish and call('HSET', 'quorlock:fence', shard, number)
    if error_of(done) then
      return nil, '!' .. done.err
    end
  end
  return act ~= 'r' and holder .. '|' .. number or nil, (act == 'h' or act == 'r') and 1 or '+' .. number
end

local function decide(act, holder, ttl, before, count)
  local shards, number
  if act < 'a' then
    act = string.lower(act)
    holder, shards, number = string.match(holder, '^(.*)|([%d,]+)|(%d+)$')
  end
  local claims, marked = act == 'c' or act == 'w', holder .. '|'
  local ours, missing, other, longest, trouble = {}, {}, nil, nil, nil
  for nth = 1, count do
    local key = KEYS[before + nth]
    local value = call('GET', key)
    local err = error_of(value)
    if not value then
      missing[#missing + 1] = key
    elseif err and string.sub(err, 1, 9) ~= 'WRONGTYPE' then
      trouble = err
    elseif not err and not claims and (value == holder or act ~= 'r' and string.sub(value, 1, #marked) == marked) then
      ours[#ours + 1] = key
    else
      -- A key of another type is somebody's all the same, and one without a ttl stays longest.
      local pttl = call('PTTL', key)
      local stays = pttl == -1 and math.huge or pttl
      if error_of(pttl) then
        trouble = pttl.err
      elseif not other or stays > longest then
        other, longest = nth .. '=' .. pttl .. ' ' .. (err and '' or value), stays
      end
    end
  end
  if act == 'd' then
    for _, key in ipairs(ours) do
      trouble = error_of(call('DEL', key)) or trouble
    end
    return trouble and '!' .. trouble or #ours > 0 and 1 or other or 0
  elseif trouble then
    return '!' .. trouble
  elseif other then
    return other
  elseif (act == 'x' or act == 'r') and #missing > 0 then
    return 0
  end
  local sign, yes = holder, 1
  if shards then
    sign, yes = raise(act, holder, shards, number)
    if not sign then
      return yes
    end
  end
  for _, key in ipairs(ours) do
    local done = call('PTTL', key)
    if not error_of(done) and done < tonumber(ttl) then
      done = call('PEXPIRE', key, ttl)
    end
    if error_of(done) then
      return '!' .. done.err
    end
  end
  for nth, key in ipairs(missing) do
    local set = call('SET', key, sign, 'NX', 'PX', ttl)
    if not set or set.err then
      -- What was created is taken back, so that the error is that of an act that did nothing.
      local left
      for created = 1, nth - 1 do
        left = error_of(call('DEL', missing[created])) or left
      end
      return '!' .. (left and 'half done: ' .. left or set and set.err or 'a key came to be within the call')
    end
  end
  return yes
end

local answers, before = {}, 0
for nth = 1, #ARGV[1] do
  local count = tonumber(ARGV[3 * nth - 1])
  answers[nth] = decide(string.sub(ARGV[1], nth, nth), ARGV[3 * nth], ARGV[3 * nth + 1], before, count)
  before = before + count
end
return answers
