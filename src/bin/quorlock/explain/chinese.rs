//! The five pitfalls in Chinese.

use super::page::Page;

pub(super) static PAGES: [Page; 5] = [
    Page {
        title: "坑 1：误删了别人的锁",
        text: "\
现象
  两个进程同时在处理同一笔订单。会校验归属的库在解锁时报错，其余的库一声不吭。

成因
  A 持锁但干得慢，锁到期；B 拿到锁；A 做完后删除这个键，可它此时已是 B 的；于是 C 趁 B 还没做完就进来了。
  造成这种局面的有两点：锁的值人人相同（\"1\"、\"locked\"、用户号、订单号），以及删除前不看值的 DEL。

取证
  在锁被持有时，看各个主节点上的值。随机值是对的，固定值就不对：
      quorlock inspect order:123
      redis-cli -h m1 -p 6379 GET order:123
  看是谁不校验就删除。MONITOR 开销很大，只能在低峰期开几秒：
      quorlock doctor order:123 --monitor 5s
  查日志：同一个编号被两个进程处理，而且时间段有重叠。

修复
  每次加锁都用全新的值（主机、进程，再加随机 UUID），释放时比较与删除一步完成。
  这里只有这一种做法：acquire 每次都生成新的持有者标识，下面的命令只在值仍然相同时才删除：
      quorlock release order:123 --holder 'web-3:1842/0f2c…'
  若用别的库：加锁用 SET key $UUID NX PX 30000，释放用 Lua 脚本先取值、再比较、再删除。
  返回 0 说明锁早已不是自己的：应当记日志并告警，而不是重试。
  锁的后面还要有唯一索引，或由数据库比较的栅栏令牌。锁让冲突变少，它们让冲突无害。
",
    },
    Page {
        title: "坑 2：活没干完，锁先过期",
        text: "\
现象
  没有任何报错。只是偶尔多扣了一次库存，或者多发了一条消息，而且总在数据库变慢或垃圾回收停顿的日子。

成因
  有效期只是对耗时的估计。一百次里总有一次更久，键一过期，下一个就被放了进来，而前一个毫不知情。

取证
  看看自己曾持有的锁后来怎样了：没了，还是已归别人：
      quorlock doctor order:123 --expect 'web-3:1842/0f2c…'
  拿有效期与业务耗时的 P99 相比，P99 要在业务现场测量：
      quorlock doctor order:123 --p99 8s --ttl 30s
      redis-cli -h m1 -p 6379 PTTL order:123       （-2：已经没了；远小于 P99：快没了）

修复
  有效期至少取 P99 的三倍。再加续期：每隔三分之一有效期，用脚本先比较值再延长时间；业务在跑就续，业务一停就停。
  本客户端默认自动续期，只有 .no_renewal() 才会关闭。（Redisson 一旦显式指定租期，看门狗就不再工作，不少人栽在这里。）
  续期也会失败，这时持有者必须停手：哪怕所有报文都丢了，guard.lost() 也会在截止时刻触发；
  每次产生副作用之前，先看一眼 guard.is_valid()。截止前已发出的请求仍可能迟到，只有栅栏令牌或版本号拦得住。
  请监控两项指标：持锁时长与有效期之比，以及失败的续期次数。
",
    },
    Page {
        title: "坑 3：先 SETNX，再 EXPIRE",
        text: "\
现象
  某个资源从一次发布或崩溃之后再也锁不上，所有人一直超时。

成因
  先用 SETNX 加锁，再用第二条命令设置过期时间。进程或连接若断在两者之间，键就没有过期时间，而它的持有者已不存在。
  只写 SET key value NX 而不带 PX，也是同样的错，只不过写成了一条命令。

取证
  剩余时间为 -1 就是铁证：
      quorlock inspect order:123
      redis-cli -h m1 -p 6379 PTTL order:123
  温和地找出全部这样的键：
      quorlock list --json | jq 'select(.expires | not)'
  看是谁干的：
      quorlock doctor --monitor 5s

修复
  只用一条命令：SET key value NX PX 30000。本客户端从来只发这一条。
  对已经卡住的键：先确认持有者确实已死，再在值未变的前提下删除：
      quorlock release order:123 --holder VALUE
  并设告警：专用于锁的节点上，INFO keyspace 里 keys 减 expires 应恒为 1（quorlock 自己的键）。
",
    },
    Page {
        title: "坑 4：释放不是原子操作",
        text: "\
现象
  与坑 1 相同，但更少见，代码看上去也没错：删除之前比较过值。只在高负载或有停顿时，两个进程才会重叠。

成因
  GET 说锁是自己的；DEL 还在路上，锁到期，别人拿到了；DEL 浑然不觉，删掉的是后来者的锁。
  GET 之后再 EXPIRE 也一样：延长的是别人的锁。

取证
  只有命令的先后顺序能说明问题：同一个客户端的 GET 与 DEL 是两条命令，最坏时中间还夹着别人的 SET。
  在一个节点上看五秒就够了；其间该节点的吞吐可能减半：
      quorlock doctor order:123 --monitor 5s
      redis-cli -h m1 -p 6379 MONITOR | grep order:123
  MONITOR 里标为 lua 的 GET 与 DEL 出自脚本，是对的。

修复
  比较与删除一步完成：用 Lua 脚本，或在支持的服务器上用 DELIFEQ（Valkey 9）：
      if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0
  WATCH、GET、MULTI、DEL、EXEC 也对，只是更慢。返回 0 表示锁早已丢失：要记日志。
  本客户端的释放与续期全都是这样的脚本；在命令行里则是：
      quorlock release order:123 --holder 'web-3:1842/0f2c…'
",
    },
    Page {
        title: "坑 5：主从切换把锁弄丢了",
        text: "\
现象
  刚发生过主从切换或重启，有一阵子出现两个持有者；代码没错，有效期也正常。

成因
  主节点发出了锁，还没复制给从节点就宕机；从节点被提升后不知道有这把锁，又发了一次。
  单个节点重启时若丢了最近的写入，也是同样的结果。名单里一台服务器出现两次，或者主从同时在列，同样如此。

取证
  新主节点上没有这个键，或者值是别人的、有效期几乎是满的，而先前的持有者还在干活：
      quorlock doctor order:123 --expect 'web-3:1842/0f2c…'
  角色、从节点、重启、重复的服务器，逐一点名：
      quorlock doctor
      redis-cli -h m1 -p 6379 INFO replication
  单看键，与坑 2 一模一样。要看时间：当时有没有发生切换？

修复
  五个相互独立的主节点，都不是从节点，也都不带从节点，每把锁取得多数票；重启过的节点在最长有效期内不投票。
  本客户端正是这样做的。所有客户端都设 min_votes = 4，还能承受两个节点同时失忆。
  若是带从节点的单个主节点：SET 之后执行 WAIT 1 100，无人确认就算加锁失败。这能缩小窗口，但不能消除它。
  绝不能发生两次的事，光有锁还不够：要有数据库比较的栅栏令牌，或者基于共识的存储（etcd、ZooKeeper）。
",
    },
];
