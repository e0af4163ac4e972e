//! Endpoints against real servers: what fred makes of our configuration shows only on the wire.

use std::{
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use ::fred::{
    prelude::*,
    types::{ClusterHash, CustomCommand},
};

use super::endpoint::{Encryption, Endpoint};

/// A server of this test's own, ended with it.
struct Master {
    child: Child,
    directory: tempfile::TempDir,
    port: u16,
}

impl Master {
    /// `arguments` may use `{dir}` and `{port}`.
    async fn start(directory: tempfile::TempDir, arguments: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let socket = directory.path().join("socket");
        let arguments = arguments
            .replace("{dir}", directory.path().to_str().unwrap())
            .replace("{port}", &port.to_string());
        let start = |program: &str| {
            Command::new(program)
                .args(["--save", "", "--appendonly", "no", "--unixsocket"])
                .arg(&socket)
                .args(arguments.split_whitespace())
                .current_dir(directory.path())
                .stdout(Stdio::null())
                .spawn()
        };
        let child = start("redis-server")
            .or_else(|_| start("valkey-server"))
            .expect("these tests need redis-server or valkey-server, with TLS, in the PATH");
        let mut master = Self { child, directory, port };
        for _ in 0..500 {
            if tokio::net::UnixStream::connect(&socket).await.is_ok() {
                return master;
            }
            if let Some(status) = master.child.try_wait().unwrap() {
                panic!("the server ended at once ({status}): has it TLS, and was its port free?");
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the server does not listen on {}", socket.display());
    }

    fn directory(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn connect(url: &str, encryption: &Encryption) -> Result<Client, Error> {
    let config = Endpoint::parse(url).unwrap().to_fred(encryption).unwrap();
    let client = Builder::from_config(config)
        .with_connection_config(|c| {
            c.connection_timeout = Duration::from_secs(5);
            c.internal_command_timeout = Duration::from_secs(5);
        })
        .build()?;
    tokio::time::timeout(Duration::from_secs(10), client.init()).await.expect("an answer, good or bad")?;
    Ok(client)
}

/// Writes and reads, so that the way there is known to be open; and leaves no connection.
async fn works(url: &str, encryption: &Encryption) -> Result<(), Error> {
    let client = connect(url, encryption).await?;
    let set: Result<(), Error> = client.set("key", "value", None, None, false).await;
    let got: Result<String, Error> = client.get("key").await;
    let _ = client.quit().await;
    set?;
    assert_eq!(got?, "value");
    Ok(())
}

#[tokio::test]
async fn socket_login_and_database() {
    let plain = Encryption::default();
    let master = Master::start(
        tempfile::tempdir().unwrap(),
        "--bind 127.0.0.1 --port {port} --requirepass s3:cr@t/ --user ann on >pw ~* &* +@all --user bob on nopass ~* +@all",
    )
    .await;
    let (socket, port) = (master.directory().join("socket"), master.port);
    let socket = socket.display();

    works(&format!("redis+unix://:s3%3Acr%40t%2F@{socket}?db=3"), &plain).await.unwrap();
    works(&format!("redis://ann:pw@127.0.0.1:{port}/4"), &plain).await.unwrap();
    works(&format!("valkey://bob:@LOCALHOST:{port}/5"), &plain).await.unwrap();

    // Each key lies in the database its URL names.
    for (db, here) in [(0, false), (3, true), (4, true), (5, true), (6, false)] {
        let client = connect(&format!("redis://ann:pw@127.0.0.1:{port}/{db}"), &plain).await.unwrap();
        assert_eq!(client.exists::<u32, _>("key").await.unwrap() == 1, here, "db {db}");
        client.quit().await.unwrap();
    }

    for url in [
        format!("redis://:wr0ng@127.0.0.1:{port}"),
        format!("redis://ann:wr0ng@127.0.0.1:{port}"),
        format!("redis+unix://ann:wr0ng@{socket}"),
    ] {
        let error = connect(&url, &plain).await.unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Auth, "{url}: {error}");
        assert!(!format!("{error} {error:?}").contains("wr0ng"), "{error}");
    }
    let error = works(&format!("redis://127.0.0.1:{port}"), &plain).await.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Auth, "{error}");
}

#[tokio::test]
async fn any_password_reaches_the_master() {
    let plain = Encryption::default();
    let master = Master::start(tempfile::tempdir().unwrap(), "--bind 127.0.0.1 --port {port}").await;
    let url = format!("redis://127.0.0.1:{}", master.port);
    let admin = connect(&url, &plain).await.unwrap();
    works(&url, &plain).await.unwrap();

    for password in [
        "two words",
        " ",
        "\"",
        "a'b",
        "back\\slash",
        "\\x41",
        "pässwörd",
        "x\r\nFLUSHALL",
        "\"q\" SETNAME n",
        "\0\t\u{b}",
    ] {
        let config = CustomCommand::new_static("CONFIG", ClusterHash::FirstKey, false);
        let _: () = admin.custom(config, vec!["SET", "requirepass", password]).await.unwrap();
        let encoded: String = password.bytes().map(|b| format!("%{b:02x}")).collect();
        let url = format!("redis://:{encoded}@127.0.0.1:{}", master.port);
        works(&url, &plain).await.unwrap_or_else(|e| panic!("{password:?}: {e}"));
    }
    assert_eq!(admin.exists::<u32, _>("key").await.unwrap(), 1);
}

#[cfg(feature = "tls")]
mod tls {
    use std::fs;

    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

    use super::*;
    use crate::transport::fred::tls::Tls;

    struct Authority {
        pem: String,
        issuer: Issuer<'static, KeyPair>,
    }

    impl Authority {
        fn new(name: &str) -> Self {
            let mut params = CertificateParams::default();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.distinguished_name.push(DnType::CommonName, name);
            let key = KeyPair::generate().unwrap();
            let pem = params.self_signed(&key).unwrap().pem();
            Self { pem, issuer: Issuer::new(params, key) }
        }

        /// A certificate for these names, and its key.
        fn certify(&self, names: &[&str]) -> (String, String) {
            let names: Vec<_> = names.iter().map(ToString::to_string).collect();
            let key = KeyPair::generate().unwrap();
            let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &self.issuer).unwrap();
            (certificate.pem(), key.serialize_pem())
        }
    }

    async fn master(authority: &Authority, names: &[&str], auth_clients: &str) -> Master {
        let directory = tempfile::tempdir().unwrap();
        let (certificate, key) = authority.certify(names);
        for (name, pem) in [("ca.pem", &authority.pem), ("cert.pem", &certificate), ("key.pem", &key)] {
            fs::write(directory.path().join(name), pem).unwrap();
        }
        let arguments = format!(
            "--bind 127.0.0.1 --port 0 --tls-port {{port}} --tls-cert-file {{dir}}/cert.pem \
             --tls-key-file {{dir}}/key.pem --tls-ca-cert-file {{dir}}/ca.pem --tls-auth-clients {auth_clients}"
        );
        Master::start(directory, &arguments).await
    }

    async fn try_with(url: &str, options: Option<&Tls>) -> Result<(), Error> {
        let list = Endpoint::parse_all([url]).unwrap();
        works(url, &Encryption::prepare(&list, options).unwrap()).await
    }

    #[tokio::test]
    async fn a_master_is_trusted_by_its_authority_and_its_name() {
        let authority = Authority::new("ours");
        let master = master(&authority, &["localhost", "127.0.0.1"], "no").await;
        let url = |host: &str| format!("rediss://{host}:{}", master.port);
        let right = Tls::new().ca_pem(authority.pem.clone());
        let file = Tls::new().ca_file(master.directory().join("ca.pem"));

        try_with(&url("localhost"), Some(&right)).await.unwrap();
        try_with(&url("127.0.0.1"), Some(&right)).await.unwrap();
        try_with(&url("LocalHost"), Some(&file)).await.unwrap();
        // An authority that did not sign this one does no harm beside the one that did.
        let two = right.clone().ca_pem(Authority::new("stranger").pem);
        try_with(&url("localhost"), Some(&two)).await.unwrap();

        let stranger = Tls::new().ca_pem(Authority::new("stranger").pem);
        let error = try_with(&url("localhost"), Some(&stranger)).await.unwrap_err();
        assert!(error.to_string().contains("UnknownIssuer"), "{error}");

        let plain = works(&format!("redis://localhost:{}", master.port), &Encryption::default()).await;
        assert!(plain.is_err(), "a TLS port took plain text");
    }

    #[tokio::test]
    async fn a_certificate_for_another_name_is_refused() {
        let authority = Authority::new("ours");
        let master = master(&authority, &["m2.example"], "no").await;
        let right = Tls::new().ca_pem(authority.pem.clone());
        let error = try_with(&format!("rediss://localhost:{}", master.port), Some(&right)).await.unwrap_err();
        assert!(error.to_string().contains("NotValidForName"), "{error}");
    }

    #[tokio::test]
    async fn a_client_certificate_where_the_master_asks_for_one() {
        let authority = Authority::new("ours");
        let master = master(&authority, &["localhost"], "yes").await;
        let url = format!("valkeys://localhost:{}", master.port);
        let trusting = Tls::new().ca_pem(authority.pem.clone());

        let (certificate, key) = authority.certify(&["client"]);
        try_with(&url, Some(&trusting.clone().client_certificate_pem(certificate, key))).await.unwrap();

        let error = try_with(&url, Some(&trusting)).await.unwrap_err();
        assert!(error.to_string().contains("CertificateRequired"), "{error}");
        let (certificate, key) = Authority::new("stranger").certify(&["client"]);
        let stranger = trusting.client_certificate_pem(certificate, key);
        let error = try_with(&url, Some(&stranger)).await.unwrap_err();
        assert!(error.to_string().contains("AlertReceived"), "{error}");
    }
}
