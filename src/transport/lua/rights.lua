-- Which of the commands that a client needs this user may not give: their names as an ACL has them, "" if none. The
-- master judges them by its ACL and executes none. An error where it cannot judge (before Redis 7.0).
local needed = {
  {'set', 'a', 'b'}, {'get', 'a'}, {'del', 'a'}, {'pttl', 'a'}, {'pexpire', 'a', '1'}, {'evalsha', 'a', '0'},
  {'script', 'load', 'a'}, {'hset', 'quorlock:admitted', 'a', 'b'}, {'hmget', 'quorlock:admitted', 'a'},
  {'exists', 'quorlock:admitted'}, {'hello'}, {'client', 'id'},
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
