-- Many acts on many keys in one call; each is judged by itself, none can spoil another.
-- KEYS[i]: the resource. ARGV[3i-2], ARGV[3i-1], ARGV[3i]: the act, the holder, the ttl in milliseconds.
-- The answer to each: 1 yes, 0 no such key, 2 another's, "=pttl holder" another's in detail, "!words" an error.
local function is_ours(value, holder)
  return value == holder or string.sub(value, 1, #holder + 1) == holder .. '|'
end

local function act(key, what, holder, ttl)
  if what == 'c' or what == 'w' then
    local set = redis.pcall('SET', key, holder, 'NX', 'PX', ttl)
    if set then
      return set.err and '!' .. set.err or 1
    end
    if what == 'c' then
      return 2
    end
  end
  local value = redis.pcall('GET', key)
  if type(value) == 'table' then
    -- A key of another type is somebody's all the same.
    if string.sub(value.err, 1, 9) ~= 'WRONGTYPE' then
      return '!' .. value.err
    end
    return what == 'w' and '=' .. redis.call('PTTL', key) .. ' ' or 2
  end
  if not value then
    if what ~= 'h' then
      -- A watched key that expired between SET and GET is as good as free, and not ours.
      return what == 'w' and '=0 ' or 0
    end
    local set = redis.pcall('SET', key, holder, 'NX', 'PX', ttl)
    return set and (set.err and '!' .. set.err or 1) or 2
  end
  if what == 'w' then
    return '=' .. redis.call('PTTL', key) .. ' ' .. value
  end
  if not is_ours(value, holder) then
    return 2
  end
  local done
  if what == 'd' then
    done = redis.pcall('DEL', key)
  elseif redis.call('PTTL', key) < tonumber(ttl) then
    done = redis.pcall('PEXPIRE', key, ttl)
  end
  return type(done) == 'table' and '!' .. done.err or 1
end

local answers = {}
for i = 1, #KEYS do
  answers[i] = act(KEYS[i], ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i])
end
return answers
