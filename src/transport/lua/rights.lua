-- Which of the commands that a client gives this user may not give: their names as an ACL has them, "" if none. The
-- master judges them by its ACL and executes none. An error where it cannot judge (before Redis 7.0). They are judged with a
-- key that each client needs: which others this user may touch is another question.
local key = 'quorlock:admitted'
local needed = {
  {'set', key, 'b'}, {'get', key}, {'del', key}, {'pttl', key}, {'pexpire', key, '1'}, {'evalsha', 'a', '0'},
  {'script', 'load', 'a'}, {'hset', key, 'a', 'b'}, {'hmget', key, 'a'}, {'exists', key}, {'hello'}, {'client', 'id'}, {'client', 'caching', 'yes'}, {'client', 'tracking', 'on'},
  {'zadd', key, '1', 'a'}, {'zrange', key, '0', '0'}, {'zrank', key, 'a'}, {'zremrangebyrank', key, '0', '0'},
  {'hgetall', 'quorlock:fence'}, {'time'},
}
local missing = {}
for _, command in ipairs(needed) do
  if not redis.acl_check_cmd(unpack(command)) then
    local name = command[1]
    if name == 'script' or name == 'client' then
      name = name .. '|' .. command[2]
    end
    missing[#missing + 1] = name
  end
end
return table.concat(missing, ' ')
