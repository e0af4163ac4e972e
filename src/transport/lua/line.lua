-- Lines of clients that wait for a lock. Each client has a bell, a key that is written and deleted in one step when it
-- becomes the first: it listens, so it is told, and nothing stays. Who goes rings his own, which ends the listening.
-- Another key says for a while that the client is there; it asks again sooner than that. Who is not is never called.
-- Bells of others and lines are not declared, which a server that is no cluster does not ask for.
-- KEYS[i]: the bell. ARGV[1]: one letter an act. ARGV[1+i]: the line, a sorted set of bells.
-- "q" queues up, unless it stands there already; the answer: "+" and how many stand before it. "l" leaves. "o" leaves, and
-- so does the first, whom it overtook. The answer to both: 1 it stood there, 0 not. "!words" is an error.
local call = redis.pcall
local answers = {}

local function here(bell)
  return 'quorlock:here:' .. bell
end

-- A line that nobody joins any more is forgotten after a minute.
local function queue_up(line, bell)
  local rank = call('ZRANK', line, bell)
  if type(rank) == 'table' then
    return rank
  elseif not rank then
    local last = call('ZRANGE', line, -1, -1, 'WITHSCORES')
    local joined = last.err and last or call('ZADD', line, (last[2] or 0) + 1, bell)
    if type(joined) == 'table' then
      return joined
    end
    rank = call('ZRANK', line, bell)
  end
  local kept, said = call('PEXPIRE', line, 60000), call('SET', here(bell), '', 'PX', 20000)
  return type(kept) == 'table' and kept or said.err and said or '+' .. rank
end

local function ring(bell)
  local rung = call('SET', bell, '')
  call('DEL', bell)
  return rung.err and rung
end

-- Not all of very many that are gone at once: those that are there ask again.
local function call_next(line)
  for _ = 1, 100 do
    local first = call('ZRANGE', line, 0, 0)
    if first.err or not first[1] then
      return first.err and first
    elseif call('EXISTS', here(first[1])) == 1 then
      return ring(first[1])
    end
    call('ZREMRANGEBYRANK', line, 0, 0)
  end
end

local function go(line, bell, overtakes)
  local rank = call('ZRANK', line, bell)
  if type(rank) == 'table' then
    return rank
  end
  local failed = ring(bell)
  call('DEL', here(bell))
  if not rank then
    return failed or 0
  end
  local gone = call('ZREMRANGEBYRANK', line, rank, rank)
  if type(gone) == 'table' then
    return gone
  elseif overtakes and rank > 0 then
    call('ZREMRANGEBYRANK', line, 0, 0)
  end
  if overtakes or rank == 0 then
    failed = call_next(line) or failed
  end
  return failed or 1
end

for i = 1, #KEYS do
  local act, line = string.sub(ARGV[1], i, i), ARGV[1 + i]
  local done
  if act == 'q' then
    done = queue_up(line, KEYS[i])
  else
    done = go(line, KEYS[i], act == 'o')
  end
  answers[i] = type(done) == 'table' and '!' .. done.err or done
end
return answers
