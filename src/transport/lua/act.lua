-- Many acts on many keys in one call; each is judged by itself, none can spoil another.
-- KEYS[i]: the resource. ARGV[1]: one letter an act. ARGV[2]: the ttl of all in milliseconds, or "" where they differ.
-- ARGV[2+i]: the holder; then, where they differ, ARGV[2+#KEYS+i]: the ttl. The last: the run_id, if an act is fenced.
-- The answer to each: 1 yes, 0 no such key, 2 another's, "=pttl holder" another's in detail, "!words" an error;
-- of fenced acts also "+number" yes, "~" no part in fencing.
local call = redis.pcall
local acts, common = ARGV[1], ARGV[2] ~= '' and ARGV[2]
local answers = {}

-- Acts with a counter: C claims, W claims and watches, R raises, H heals. Their argument is "holder|shard|number", of R
-- "holder|seen|shard|number". Counters are below 2^53, where doubles are exact; %.0f writes them in full.
local function fenced(key, act, argument, ttl)
  local holder, shard, number = string.match(argument, '^(.*)|(%d+)|(%d+)$')
  local value = call('GET', key)
  local wrong = type(value) == 'table'
  if wrong and string.sub(value.err, 1, 9) ~= 'WRONGTYPE' then
    return '!' .. value.err
  end
  local ours = value and not wrong and (value == holder or string.sub(value, 1, #holder + 1) == holder .. '|')
  if value and not ours then
    return act == 'W' and '=' .. redis.call('PTTL', key) .. ' ' .. (wrong and '' or value) or 2
  elseif act == 'R' and not value then
    return 0
  end
  local known = call('HMGET', 'quorlock:fence', 'run', shard)
  if known.err then
    return '!' .. known.err
  end
  local counts, counter, wish = known[1] == ARGV[#ARGV], tonumber(known[2] or 0), tonumber(number)
  if not counter then
    return '!DENIED the fencing counter ' .. shard .. ' is no number'
  end
  if act == 'H' then
    -- The key is for exclusion, which needs no counter.
    local done
    if counts and counter < wish then
      done = call('HSET', 'quorlock:fence', shard, number)
    end
    if type(done) == 'table' then
      return '!' .. done.err
    elseif not value then
      done = call('SET', key, holder .. '|' .. number, 'PX', ttl)
    elseif redis.call('PTTL', key) < tonumber(ttl) then
      done = call('PEXPIRE', key, ttl)
    end
    return type(done) == 'table' and done.err and '!' .. done.err or 1
  elseif not counts then
    return '~'
  elseif act == 'R' then
    local done = counter < wish and call('HSET', 'quorlock:fence', shard, number)
    return type(done) == 'table' and '!' .. done.err or 1
  elseif value then
    -- Said before: a claim is never executed twice.
    return '+' .. string.sub(value, #holder + 2)
  end
  local time = call('TIME')
  if time.err then
    -- A missing right, told in various words; nothing is written yet.
    return '!NOPERM TIME: ' .. time.err
  elseif wish > time[1] * 1000000 + time[2] + 86400000000 then
    wish = 0
  end
  local taken = math.max(counter + 1, wish)
  if taken >= 9007199254740992 then
    return '!DENIED the fencing counter ' .. shard .. ' is used up'
  end
  taken = string.format('%.0f', taken)
  -- The counter first: what fails in between wastes a number, nothing else.
  local counted = call('HSET', 'quorlock:fence', shard, taken)
  if type(counted) == 'table' then
    return '!' .. counted.err
  end
  local set = call('SET', key, holder .. '|' .. taken, 'PX', ttl)
  return set.err and '!' .. set.err or '+' .. taken
end

for i = 1, #KEYS do
  local key, act, holder, ttl = KEYS[i], string.sub(acts, i, i), ARGV[2 + i], common or ARGV[2 + #KEYS + i]
  local answer
  if act == 'c' or act == 'w' then
    local set = call('SET', key, holder, 'NX', 'PX', ttl)
    if set then
      answer = set.err and '!' .. set.err or 1
    elseif act == 'c' then
      answer = 2
    end
  elseif act < 'a' then
    answer = fenced(key, act, holder, ttl)
  end
  local value = not answer and call('GET', key)
  if answer then
    -- claimed, or refused without a word
  elseif not value then
    if act == 'h' then
      local set = call('SET', key, holder, 'NX', 'PX', ttl)
      answer = set and (set.err and '!' .. set.err or 1) or 2
    else
      -- A watched key that expired between SET and GET is as good as free, and not ours.
      answer = act == 'w' and '=0 ' or 0
    end
  elseif type(value) == 'table' then
    if string.sub(value.err, 1, 9) ~= 'WRONGTYPE' then
      answer = '!' .. value.err
    else
      -- A key of another type is somebody's all the same.
      answer = act == 'w' and '=' .. redis.call('PTTL', key) .. ' ' or 2
    end
  elseif act == 'w' then
    answer = '=' .. redis.call('PTTL', key) .. ' ' .. value
  elseif value ~= holder and string.sub(value, 1, #holder + 1) ~= holder .. '|' then
    answer = 2
  else
    local done
    if act == 'd' then
      done = call('DEL', key)
    elseif redis.call('PTTL', key) < tonumber(ttl) then
      done = call('PEXPIRE', key, ttl)
    end
    answer = type(done) == 'table' and '!' .. done.err or 1
  end
  answers[i] = answer
end
return answers
