//! The checks of `doctor`: what each is about and why it matters, in both languages.

/// A language that texts are written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Lang {
    /// English.
    #[default]
    En,
    /// Chinese.
    Zh,
}

/// One check.
#[derive(Debug)]
pub(crate) struct Check {
    /// `P1` to `P5` for the pitfalls, `D01` to `D16` for what leads to them.
    pub(crate) id: &'static str,
    title: [&'static str; 2],
    why: [&'static str; 2],
}

impl Check {
    /// The check with that id. All ids in this program are in the table, which a test looks after.
    pub(crate) fn of(id: &str) -> &'static Self {
        CHECKS.iter().find(|check| check.id.eq_ignore_ascii_case(id)).unwrap_or(&CHECKS[0])
    }

    pub(crate) fn find(id: &str) -> Option<&'static Self> {
        CHECKS.iter().find(|check| check.id.eq_ignore_ascii_case(id))
    }

    pub(crate) const fn title(&self, lang: Lang) -> &'static str {
        self.title[lang as usize]
    }

    pub(crate) const fn why(&self, lang: Lang) -> &'static str {
        self.why[lang as usize]
    }
}

const fn check(id: &'static str, title: [&'static str; 2], why: [&'static str; 2]) -> Check {
    Check { id, title, why }
}

pub(crate) static CHECKS: [Check; 21] = [
    check(
        "P1",
        ["nobody deletes another's lock", "没有人误删别人的锁"],
        [
            "A value that everybody writes, or a DEL without a look at it, lets one holder end the lock of the next.",
            "锁的值如果人人相同，或者不看值就直接 DEL，前一个持有者就会把后一个持有者的锁删掉。",
        ],
    ),
    check(
        "P2",
        ["the lock outlasts the work", "锁的有效期长于业务耗时"],
        [
            "A lock that expires under its holder raises no error: two work at once, and only the data show it.",
            "锁在持有者干活途中过期时不会报任何错误：两方同时在执行，事后只能从数据里看出来。",
        ],
    ),
    check(
        "P3",
        ["the lock and its ttl come in one command", "加锁与设置过期时间是一条命令"],
        [
            "A process that dies between SETNX and EXPIRE leaves a lock that nobody ever gets again.",
            "进程若死在 SETNX 与 EXPIRE 之间，留下的锁永不过期，谁也拿不到。",
        ],
    ),
    check(
        "P4",
        ["the release compares and deletes at once", "释放时比较与删除是一个原子操作"],
        [
            "Between GET and DEL the lock can expire and become somebody else's, whom the DEL then hits.",
            "GET 与 DEL 之间锁可能过期并归了别人，随后的 DEL 删掉的就是别人的锁。",
        ],
    ),
    check(
        "P5",
        ["no failover forgets a lock", "主从切换不会丢锁"],
        [
            "A replica that is promoted, or a server that restarts empty, does not know who holds what, and grants it again.",
            "被提升的从节点，或者重启后数据为空的节点，不知道谁持有什么锁，会再发一次。",
        ],
    ),
    check(
        "D01",
        ["masters answer, and fast enough", "各主节点可达且够快"],
        [
            "A master that is down or slower than the master timeout is a missing vote; without a quorum nothing is locked.",
            "宕机或慢于单节点超时的主节点等于少一票；凑不齐多数派就加不了锁。",
        ],
    ),
    check(
        "D02",
        ["each of them is a master", "名单里全是主节点"],
        [
            "A replica follows its master: what it was asked to keep is overwritten, and its vote is worth nothing.",
            "从节点只跟随它的主节点：让它记住的东西会被覆盖，它的票毫无意义。",
        ],
    ),
    check(
        "D03",
        ["each of them is another server", "名单里没有重复的服务器"],
        [
            "One server under two names votes twice, and its failure takes two votes away.",
            "一台服务器用两个名字出现就投了两票，它一出故障也就同时少了两票。",
        ],
    ),
    check(
        "D04",
        ["an odd number of independent masters", "奇数个相互独立的主节点"],
        [
            "Majorities protect only if the masters fail apart from each other: no cluster, no Sentinel, three or more.",
            "只有各节点独立发生故障，多数派才有意义：不能是集群成员或哨兵，且至少三个。",
        ],
    ),
    check(
        "D05",
        ["no master forgot its votes", "没有主节点忘掉自己的投票"],
        [
            "A master that restarts without its last writes can give the vote it gave already to a second client.",
            "重启后丢了最近写入的主节点，会把已经投出的票再投给另一个客户端。",
        ],
    ),
    check(
        "D06",
        ["no master evicts locks", "主节点不会淘汰锁的键"],
        [
            "Under memory pressure any other policy than noeviction deletes locks that are held.",
            "内存吃紧时，除 noeviction 之外的任何策略都会删掉正被持有的锁。",
        ],
    ),
    check(
        "D07",
        ["keys without a ttl", "没有过期时间的键"],
        [
            "A lock without a ttl stays when its holder dies. On masters for locks only, every key has one.",
            "没有过期时间的锁在持有者死后依然存在。专用于锁的节点上，每个键都应有过期时间。",
        ],
    ),
    check(
        "D08",
        ["the type of the keys", "键的类型"],
        [
            "Some libraries keep their locks as hashes or sorted sets: they exclude a string lock, and are excluded, only in part.",
            "有些库用哈希或有序集合存锁，与字符串锁之间只能部分互斥。",
        ],
    ),
    check(
        "D09",
        ["who holds what, by the masters' votes", "各主节点的投票情况"],
        [
            "Only a value on a majority is a held lock; split votes and leftovers block others until they expire.",
            "同一个值占多数才算持有；选票分裂和残留的键在过期之前会挡住别人。",
        ],
    ),
    check(
        "D10",
        ["wall clocks", "系统时钟"],
        [
            "Masters expire keys by their wall clock: one that is stepped forward ends its locks early.",
            "主节点按系统时钟让键过期：时钟向前一跳，它上面的锁就提前失效。",
        ],
    ),
    check(
        "D11",
        ["pauses", "停顿"],
        [
            "A command, a fork or a swap that stops a master for longer than the master timeout is a missing vote.",
            "慢命令、fork 或换页让节点停顿超过单节点超时，就等于少一票。",
        ],
    ),
    check(
        "D12",
        ["connections", "连接"],
        [
            "A full connection table or a cut idle connection costs a vote just when the lock is wanted.",
            "连接数用满或空闲连接被切断，恰好会在要加锁时少一票。",
        ],
    ),
    check(
        "D13",
        ["rights", "权限"],
        [
            "A user who may SET but not EVAL takes locks that he can neither renew nor release.",
            "能 SET 却不能 EVAL 的用户，加得了锁，却既不能续期也不能释放。",
        ],
    ),
    check(
        "D14",
        ["the servers' software", "服务器软件"],
        [
            "Compare-and-delete must be one step: a script everywhere, a command of its own on some.",
            "比较并删除必须一步完成：处处可用脚本，部分新版本有原生命令。",
        ],
    ),
    check(
        "D15",
        ["ttl, renewal and timeouts fit together", "有效期、续期与超时相互匹配"],
        [
            "A renewal needs room for more than one try before the ttl is over, and the longest ttl is the same for all.",
            "在有效期结束之前，续期要留出不止一次尝试的余地；最长有效期必须全体一致。",
        ],
    ),
    check(
        "D16",
        ["replicas and what depends on them", "从节点及对它们的依赖"],
        [
            "Redlock needs no replicas: promoted ones forget locks, and masters that wait for them refuse locks.",
            "Redlock 不需要从节点：被提升的会忘掉锁，要求从节点确认的主节点会拒绝加锁。",
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_has_its_texts() {
        for check in &CHECKS {
            for lang in [Lang::En, Lang::Zh] {
                assert!(
                    !check.title(lang).is_empty() && check.why(lang).ends_with(['.', '。']),
                    "{}",
                    check.id
                );
            }
            assert_eq!(Check::of(check.id).id, check.id);
        }
        assert!(Check::find("d07").is_some() && Check::find("D17").is_none());
    }
}
