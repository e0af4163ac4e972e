use std::io::Write;

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};

use super::*;

fn pair(name: &str) -> CertifiedKey<KeyPair> {
    generate_simple_self_signed([name.to_owned()]).unwrap()
}

fn file(contents: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(contents.as_bytes()).unwrap();
    file
}

#[test]
fn files_and_texts_are_equal() {
    let (authority, client) = (pair("ca"), pair("client"));
    let (certificate, key) = (client.cert.pem(), client.signing_key.serialize_pem());
    let text =
        Tls::new().ca_pem(authority.cert.pem()).client_certificate_pem(certificate.clone(), key.clone());
    text.load().unwrap();

    // Several authorities in one file.
    let both = file(&(authority.cert.pem() + &certificate));
    let (certificate, key) = (file(&certificate), file(&key));
    let files = Tls::new().ca_file(both.path()).client_certificate_files(certificate.path(), key.path());
    files.load().unwrap();
    assert_eq!(files.roots().unwrap().len(), 2);
}

#[test]
fn errors_name_the_file_and_what_it_is_for() {
    let missing = Tls::new().ca_file("/no/such/ca.pem").load().unwrap_err().to_string();
    assert!(missing.starts_with("cannot read the certificate authority from /no/such/ca.pem: "), "{missing}");

    let empty = file("nothing in here");
    let error = Tls::new().ca_file(empty.path()).load().unwrap_err().to_string();
    assert!(error.contains(empty.path().to_str().unwrap()), "{error}");
    assert!(error.contains("BEGIN CERTIFICATE"), "{error}");

    let client = pair("client");
    let trusting = Tls::new().ca_pem(client.cert.pem());
    let no_key = trusting.clone().client_certificate_pem(client.cert.pem(), client.cert.pem());
    let error = no_key.load().unwrap_err().to_string();
    assert!(error.contains("client key") && error.contains("unencrypted"), "{error}");

    let other_key = pair("other").signing_key.serialize_pem();
    let error = trusting.client_certificate_pem(client.cert.pem(), other_key).load().unwrap_err().to_string();
    assert!(error.starts_with("cannot use the client certificate with its key"), "{error}");
}

#[test]
fn no_key_is_shown() {
    let client = pair("client");
    let key = client.signing_key.serialize_pem();
    let secret = key.lines().nth(1).unwrap().to_owned();
    let tls = Tls::new().client_certificate_pem(client.cert.pem(), key.clone());
    assert!(!format!("{tls:?}").contains(&secret));
    let debug: String = format!("{tls:?}").chars().filter(|c| !c.is_ascii_digit()).collect();
    assert_eq!(debug, "Tls { authorities: [], identity: Some((< bytes of PEM>, < bytes of PEM>)) }");

    // Broken so that the parser stumbles in the middle of the key.
    for broken in [
        key.replace("-----END", "-----BEGIN"),
        format!("-----BEGIN {secret}"),
        key.replace(&secret, &format!("{secret}*")),
        key.replace("-----END PRIVATE KEY-----", ""),
    ] {
        let tls = Tls::new().ca_pem(client.cert.pem()).client_certificate_pem(client.cert.pem(), broken);
        let error = tls.load().unwrap_err();
        assert!(!format!("{error} {error:?}").contains(&secret), "{error}");
    }
}

#[test]
fn one_bad_system_root_spoils_no_other() {
    let good = pair("ca").cert.der().clone();
    let bad = CertificateDer::from(vec![1, 2, 3]);
    let roots = system_roots(vec![bad.clone(), good], &["unreadable".to_owned()]).unwrap();
    assert_eq!(roots.len(), 1);

    let error = system_roots(vec![bad], &["unreadable".to_owned()]).unwrap_err();
    assert_eq!(error, TlsError::NoSystemRoots { reason: "unreadable".into() });
    let none: [String; 0] = [];
    assert!(system_roots(vec![], &none).unwrap_err().to_string().contains("none found"));
}
