use super::*;

const SECRET: &str = "s3cret";

fn parsed(url: &str) -> Endpoint {
    Endpoint::parse(url).unwrap_or_else(|e| panic!("{url}: {e}"))
}

fn refused(url: &str) -> BadUrl {
    match Endpoint::parse(url) {
        Ok(endpoint) => panic!("{url} was read as {endpoint:?}"),
        Err(problem) => problem,
    }
}

fn config(url: &str) -> Config {
    parsed(url).to_fred(&Encryption::default()).unwrap()
}

#[test]
fn addresses_are_normalised() {
    for (url, shown) in [
        ("redis://m1.example", "m1.example:6379"),
        ("valkey://M1.Example:7000/", "m1.example:7000"),
        ("REDIS://m_1:1/255", "m_1:1"),
        ("redis://[::1]", "[::1]:6379"),
        ("redis://[0:0::0001]:65535", "[::1]:65535"),
        ("  redis://10.0.0.1:6380\n", "10.0.0.1:6380"),
        ("redis+unix:///run/valkey.sock", "/run/valkey.sock"),
        ("valkey+unix://localhost/run/my%20sock?db=3", "/run/my sock"),
        ("valkey+unix://u:p@/run/v.sock", "/run/v.sock"),
    ] {
        assert_eq!(parsed(url).to_string(), shown, "{url}");
    }
}

#[test]
fn fred_gets_what_the_url_says() {
    let tcp = config("redis://al%3Aice:p%40ss%2Fw%25@M1:7000/5");
    assert_eq!(tcp.server, ServerConfig::new_centralized("m1", 7000));
    assert_eq!((tcp.username.as_deref(), tcp.password.as_deref()), (Some("al:ice"), Some("p@ss/w%")));
    assert_eq!((tcp.database, tcp.version.clone(), tcp.fail_fast), (Some(5), RespVersion::RESP3, true));

    let socket = config("redis+unix://:pw@/run/v.sock?db=2");
    assert_eq!(socket.server, ServerConfig::Unix { path: "/run/v.sock".into() });
    assert_eq!((socket.username.as_deref(), socket.password.as_deref()), (Some("default"), Some("pw")));
    assert_eq!(socket.database, Some(2));

    let bare = config("redis://[::1]");
    assert_eq!(bare.server, ServerConfig::new_centralized("::1", 6379));
    assert_eq!((bare.username, bare.password, bare.database), (None, None, None));
}

#[test]
fn logins() {
    // The last '@' ends the login, the first ':' the user.
    let odd = config("redis://u:p@s:s@h");
    assert_eq!((odd.username.as_deref(), odd.password.as_deref()), (Some("u"), Some("p@s:s")));
    // A user that needs no password is still logged in.
    let nopass = config("redis://u:@h");
    assert_eq!((nopass.username.as_deref(), nopass.password.as_deref()), (Some("u"), Some("\"\"")));
    assert_eq!(refused("redis://name@h"), BadUrl::OneWordLogin);
    assert_eq!(refused("redis://@h"), BadUrl::EmptyLogin);
    assert_eq!(refused("redis://:@h"), BadUrl::EmptyLogin);
    assert_eq!(refused("redis://u:%zz@h"), BadUrl::Percent { part: "password" });
    assert_eq!(refused("redis://u%2:p@h"), BadUrl::Percent { part: "user" });
    assert_eq!(refused("redis://u:%ff@h"), BadUrl::Percent { part: "password" });
    assert_eq!(refused("redis://u:p%+1@h"), BadUrl::Percent { part: "password" });
}

#[test]
fn words_of_an_inline_command() {
    assert_eq!(hello_word("p@ss:w0rd/#$%[]"), "p@ss:w0rd/#$%[]");
    assert_eq!(hello_word(""), r#""""#);
    assert_eq!(hello_word("a b"), r#""a\x20b""#);
    assert_eq!(hello_word("a\"'\\"), r#""a\x22\x27\x5c""#);
    assert_eq!(hello_word("\r\nFLUSHALL"), r#""\x0d\x0aFLUSHALL""#);
    assert_eq!(hello_word("é\0"), r#""\xc3\xa9\x00""#);
}

#[test]
fn schemes_are_a_closed_list() {
    for scheme in ["http", "foo", "tcp", "redis+tls", "rediss+unix"] {
        assert_eq!(refused(&format!("{scheme}://h")), BadUrl::UnknownScheme { scheme: scheme.into() });
    }
    for scheme in ["redis-sentinel", "rediss-sentinel", "valkey-cluster", "valkeys-cluster", "redis-cluster"]
    {
        assert_eq!(refused(&format!("{scheme}://h")), BadUrl::NotOneMaster { scheme: scheme.into() });
    }
    assert_eq!(refused("unix:///run/v.sock"), BadUrl::SocketScheme { scheme: "unix".into() });
    for (url, right) in [
        ("localhost:6379", "redis://localhost:6379"),
        ("localhost", "redis://localhost"),
        ("m1.example:7000", "redis://m1.example:7000"),
        ("10.0.0.1", "redis://10.0.0.1"),
        ("[::1]:6379", "redis://[::1]:6379"),
        ("::1", "redis://[::1]:6379"),
        ("/run/v.sock", "redis+unix:///path/to.sock"),
        ("u:p@h", "redis://user:password@host:6379"),
        ("word", "redis://host:6379"),
        ("redis:h", "redis://host:6379"),
        ("://h", "redis://host:6379"),
    ] {
        assert_eq!(refused(url), BadUrl::NoScheme { suggestion: right.into() }, "{url}");
    }
}

#[cfg(not(feature = "tls"))]
#[test]
fn tls_that_is_not_built_in_is_refused() {
    let problem = refused("rediss://h");
    assert_eq!(problem, BadUrl::TlsNotBuilt { scheme: "rediss".into() });
    assert!(problem.to_string().contains("--features tls"));
    assert_eq!(refused("valkeys://h"), BadUrl::TlsNotBuilt { scheme: "valkeys".into() });
}

#[cfg(feature = "tls")]
#[test]
fn tls_is_never_left_out_silently() {
    use crate::transport::fred::tls::{Tls, TlsError};

    let list = [parsed("redis://a"), parsed("valkeys://B.example")];
    assert_eq!(list[1].to_fred(&Encryption::default()), Err(NotPrepared));
    assert!(list[0].to_fred(&Encryption::default()).unwrap().tls.is_none());

    let authority = rcgen::generate_simple_self_signed(["ca".to_owned()]).unwrap().cert.pem();
    let options = Tls::new().ca_pem(authority);
    let encryption = Encryption::prepare(&list, Some(&options)).unwrap();
    assert!(list[0].to_fred(&encryption).unwrap().tls.is_none());
    let config = list[1].to_fred(&encryption).unwrap();
    assert!(config.tls.is_some());
    let ServerConfig::Centralized { server } = config.server else { panic!("{:?}", config.server) };
    assert_eq!(server.tls_server_name.as_deref(), Some("b.example"));

    assert_eq!(Encryption::prepare(&list[..1], Some(&options)).unwrap_err(), TlsError::Unused);
    assert!(Encryption::prepare(&list[..1], None).unwrap().tls.is_none());
}

#[test]
fn malformed_addresses() {
    use BadUrl::*;
    for (url, problem) in [
        ("", Empty),
        (" \t", Empty),
        ("redis://a redis://b", Blank),
        ("redis://u:p\tw@h", Blank),
        ("redis://", NoHost),
        ("redis://:6379", NoHost),
        ("redis:///0", NoHost),
        ("redis://u:p@", NoHost),
        ("redis://u:p@:6379", NoHost),
        ("redis://a..b", Host),
        ("redis://-a", Host),
        ("redis://höst", Host),
        ("redis://h%41", Host),
        ("redis://::1", Ipv6),
        ("redis://::1:6379", Ipv6),
        ("redis://[::1", Ipv6),
        ("redis://[::1]6379", Ipv6),
        ("redis://[::g]", Ipv6),
        ("redis://[h]", Ipv6),
        ("redis://h:", Port),
        ("redis://h:+1", Port),
        ("redis://h:1e3", Port),
        ("redis://h:123456", Port),
        ("redis://h:0", PortRange { port: 0 }),
        ("redis://h:70000", PortRange { port: 70000 }),
        ("redis://h/256", Path),
        ("redis://h/-1", Path),
        ("redis://h/1/", Path),
        ("redis://h/name", Path),
        ("redis://h?protocol=3", Parameter { name: "protocol".into() }),
        ("redis://h/?db=1", Parameter { name: "db".into() }),
        ("redis://h?word", Parameter { name: "?".into() }),
        ("redis://h#1", Fragment),
        ("redis+unix://run/v.sock", SocketHost),
        ("redis+unix://", SocketPath),
        ("redis+unix:///", SocketPath),
        ("redis+unix:///v%00", SocketPath),
        ("redis+unix:///v%", Percent { part: "path" }),
        ("redis+unix:///v?db=256", Db),
        ("redis+unix:///v?db=", Db),
        ("redis+unix:///v?db=1&db=1", Db),
        ("redis+unix:///v?db=1&user=u", Parameter { name: "user".into() }),
    ] {
        assert_eq!(refused(url), problem, "{url}");
    }
}

#[test]
fn one_master_has_one_vote() {
    for (a, b) in [
        ("redis://h", "valkey://H:6379/3"),
        ("redis://h", "redis://u:p@h."),
        ("redis://[::1]", "redis://[0::1]:6379/1"),
        ("redis+unix:///run/v.sock", "valkey+unix:///run//./v.sock?db=1"),
    ] {
        assert!(parsed(a).same_server_as(&parsed(b)), "{a} {b}");
        assert!(parsed(b).same_server_as(&parsed(a)), "{b} {a}");
    }
    assert!(!parsed("redis://h").same_server_as(&parsed("redis://h:6380")));
    assert!(!parsed("redis://h").same_server_as(&parsed("redis+unix:///h")));
}

#[test]
fn lists() {
    let none: [&str; 0] = [];
    assert_eq!(Endpoint::parse_all(none), Err(EndpointError::NoMasters));

    let many = |n: usize| (0..n).map(|i| format!("redis://h:{}", 7000 + i)).collect::<Vec<_>>();
    assert_eq!(Endpoint::parse_all(many(32)).unwrap().len(), 32);
    assert_eq!(Endpoint::parse_all(many(100)), Err(EndpointError::TooMany { count: 100 }));

    let error = Endpoint::parse_all(["redis://a", "redis://b", "redis://u:s3cret@A/1"]).unwrap_err();
    assert_eq!(error, EndpointError::Duplicate { first: 1, second: 3, address: "a:6379".into() });
    assert!(error.to_string().starts_with("m1 and m3 are the same master, a:6379 "), "{error}");

    let error = Endpoint::parse_all(["redis://a", ""]).unwrap_err();
    assert_eq!(error, EndpointError::Bad { position: 2, problem: BadUrl::Empty });
    assert!(error.to_string().starts_with("m2: the entry is empty"), "{error}");
}

#[test]
fn nothing_shows_the_password() {
    let good = parsed("redis://u:s3cret@h/2");
    assert_eq!(
        format!("{good:?}"),
        r#"Endpoint { scheme: "redis", host: "h", port: 6379, db: Some(2), login: <hidden> }"#
    );
    let whole = [
        "redis://u:s3cret@host",
        "redis://:s3cret@host/3",
        "redis+unix://u:s3cret@/run/v.sock",
        "redis://u:s3cret@host:notaport",
        "redis://u:s3cret@host:0",
        "redis://u:s3cret@",
        "redis://u:s3cret",
        "redis://:s3cret",
        "redis://s3cret@",
        "redis://s3cret@host",
        "http://u:s3cret@h",
        "rediss://u:s3cret@h",
        "redis-sentinel://u:s3cret@h",
        "unix://u:s3cret@/run/v.sock",
        "u:s3cret@h",
        "u:s3cret",
        "s3cret",
        "redis:u:s3cret@h",
        "redis:/u:s3cret@h",
        "u:s3cret://x@h",
        "redis://u:%s3cret@h",
        "redis://u:s3cret%@h",
        "redis://u:s3cret%ff@h",
        "redis://u:a@s3cret@h",
        "redis://u:s3cret@b@h:x",
        "redis://u:s3cret/b@h",
        "redis://u:a/s3cret@h",
        "redis://u:6379/s3cret@h",
        "redis://u:6379?s3cret@h",
        "redis://u:6379?s3cret=1@h",
        "redis://u:6379#s3cret@h",
        "redis://u:6379#s3cret",
        "redis://u:6379/s3cret",
        "redis://u:6379?s3cret",
        "redis://u:6379?password=s3cret",
        "redis://u:a s3cret@h",
        "redis://u:a[s3cret@h",
        "redis://u:a]s3cret@[::1",
        "redis://u:[s3cret",
        "redis://u:a:s3cret",
        "redis+unix:///u:s3cret@/run/v.sock",
        "redis+unix://u:s3cret@host/run/v.sock",
        "redis+unix:///run/v.sock?password=s3cret",
    ];
    for url in whole {
        match Endpoint::parse(url) {
            Ok(endpoint) => hides(url, &endpoint),
            Err(problem) => hides(url, &problem),
        }
        // In a list, twice: as a bad entry, or as a duplicate.
        if let Err(error) = Endpoint::parse_all([url, url]) {
            hides(url, &error);
        }
    }
    // A list split at the commas of a password.
    hides("split", &Endpoint::parse_all("redis://u:a,s3cret,b@h".split(',')).unwrap_err());
    hides("split", &Endpoint::parse_all("redis://u:12,s3cret,b@h".split(',')).unwrap_err());
}

fn hides<T: fmt::Debug + fmt::Display>(url: &str, value: &T) {
    for shown in [format!("{value}"), format!("{value:?}"), format!("{value:#?}")] {
        assert!(!shown.contains(SECRET), "{url}: {shown}");
    }
}
