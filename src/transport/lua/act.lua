-- Many acts on many keys in one call; each is judged by itself, none can spoil another.
-- KEYS[i]: the resource. ARGV[3i-2], ARGV[3i-1], ARGV[3i]: the act, the holder, the ttl in milliseconds.
-- The answer to each: 1 yes, 0 no such key, 2 another's, "=pttl holder" another's in detail, "!words" an error.
local call = redis.pcall
local answers = {}
for i = 1, #KEYS do
  local key, act, holder, ttl = KEYS[i], ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i]
  local answer
  if act == 'c' or act == 'w' then
    local set = call('SET', key, holder, 'NX', 'PX', ttl)
    if set then
      answer = set.err and '!' .. set.err or 1
    elseif act == 'c' then
      answer = 2
    end
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
