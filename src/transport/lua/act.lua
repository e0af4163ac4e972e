-- Many acts on many keys in one call; each is judged by itself, none can spoil another.
-- KEYS[i]: the resource. ARGV[1]: one letter an act. ARGV[2]: the ttl of all in milliseconds, or "" where they differ.
-- ARGV[2+i]: the holder; then, where they differ, ARGV[2+#KEYS+i]: the ttl.
-- The answer to each: 1 yes, 0 no such key, 2 another's, "=pttl holder" another's in detail, "!words" an error.
local call = redis.pcall
local acts, common = ARGV[1], ARGV[2] ~= '' and ARGV[2]
local answers = {}
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
