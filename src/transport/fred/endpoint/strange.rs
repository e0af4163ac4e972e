//! URLs as nobody should write them: none makes us panic, and none gives its password away.

use proptest::prelude::*;

use super::{Encryption, Endpoint};

const SECRET: &str = "hunter2";

/// A URL, or what is left of one after an accident: the parts are sound or not, and any may be missing.
fn url() -> impl Strategy<Value = String> {
    let scheme = prop_oneof!["(redis|rediss|valkey|valkeys|redis\\+unix|valkey\\+unix)://", "[a-z+:/]{0,8}"];
    let user = prop_oneof!["", "[a-z%@:/?#\\[\\]]{0,6}"];
    let login = prop_oneof![
        user.clone().prop_map(|user| format!("{user}:{SECRET}@")),
        user.prop_map(|user| format!("{user}@{SECRET}:")),
        Just(format!(":{SECRET}%")),
    ];
    let rest = prop_oneof!["[a-z0-9.:/?#=&%\\[\\]@-]{0,20}", "(?s).{0,12}"];
    (scheme, login, rest).prop_map(|(scheme, login, rest)| format!("{scheme}{login}{rest}"))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_048) })]

    #[test]
    fn no_text_makes_the_reader_panic(text in "(?s).{0,60}") {
        let _ = Endpoint::parse(&text);
    }

    #[test]
    fn no_url_gives_its_password_away(url in url()) {
        let endpoints = match Endpoint::parse_all([&url]) {
            Ok(endpoints) => endpoints,
            Err(error) => {
                let told = format!("{error} {error:?}");
                prop_assert!(!told.contains(SECRET), "{:?} tells {:?}", url, told);
                return Ok(());
            }
        };
        // A host or a path is shown, whatever it is called.
        if url.rsplit('@').next().is_none_or(|host| !host.contains(SECRET)) {
            let prepared = endpoints[0].to_fred(&Encryption::default()).err().map(|error| error.to_string());
            let told = format!("{} {endpoints:?} {prepared:?}", endpoints[0]);
            prop_assert!(!told.contains(SECRET), "{:?} tells {:?}", url, told);
        }
    }
}
