//! Whom to trust behind `rediss://`, and how to say who we are.

use std::{fmt, fs, path::PathBuf, sync::Arc};

use ::fred::{
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{
            CertificateDer, PrivateKeyDer,
            pem::{self, PemObject},
        },
    },
    rustls_native_certs,
    types::config::{TlsConfig, TlsConnector},
};
use thiserror::Error;

#[cfg(test)]
mod tests;

/// TLS options for the masters under `rediss://` and `valkeys://`.
///
/// Without any, the system's certificate authorities are trusted and no client certificate is shown. The
/// certificate of a master must carry the host its URL names.
///
/// `Debug` shows names of files and lengths, never a key.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    authorities: Vec<Pem>,
    identity: Option<(Pem, Pem)>,
}

#[derive(Clone)]
enum Pem {
    File(PathBuf),
    Bytes(Vec<u8>),
}

impl Tls {
    /// The system's certificate authorities, no client certificate.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts the certificates in this PEM file, and no longer the system's. May be called several times.
    #[must_use]
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.authorities.push(Pem::File(path.into()));
        self
    }

    /// Trusts the certificates in this PEM text, and no longer the system's. May be called several times.
    #[must_use]
    pub fn ca_pem(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.authorities.push(Pem::Bytes(pem.into()));
        self
    }

    /// Shows the masters this certificate (its chain, leaf first), proved by this unencrypted key; PEM files.
    #[must_use]
    pub fn client_certificate_files(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        self.identity = Some((Pem::File(certificate.into()), Pem::File(key.into())));
        self
    }

    /// Shows the masters this certificate (its chain, leaf first), proved by this unencrypted key; PEM texts.
    #[must_use]
    pub fn client_certificate_pem(
        mut self,
        certificate: impl Into<Vec<u8>>,
        key: impl Into<Vec<u8>>,
    ) -> Self {
        self.identity = Some((Pem::Bytes(certificate.into()), Pem::Bytes(key.into())));
        self
    }

    /// Reads the files and makes of them what fred connects with. Blocks for as long as the files take.
    pub(crate) fn load(&self) -> Result<TlsConfig, TlsError> {
        // The provider by name: without it rustls panics where a program has two of them and installed none.
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|e| TlsError::Rejected {
                what: "protocol versions",
                from: "ring".into(),
                reason: e.to_string(),
            })?
            .with_root_certificates(self.roots()?);
        let config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificate.certificates(CLIENT_CERTIFICATE)?;
                builder.with_client_auth_cert(chain, key.key()?).map_err(|e| TlsError::Rejected {
                    what: "client certificate with its key",
                    from: format!("{certificate} and {key}"),
                    reason: e.to_string(),
                })?
            }
        };
        Ok(TlsConnector::from(config).into())
    }

    fn roots(&self) -> Result<RootCertStore, TlsError> {
        if self.authorities.is_empty() {
            let found = rustls_native_certs::load_native_certs();
            return system_roots(found.certs, &found.errors);
        }
        let mut roots = RootCertStore::empty();
        for authority in &self.authorities {
            for certificate in authority.certificates(AUTHORITY)? {
                roots.add(certificate).map_err(|e| TlsError::Rejected {
                    what: AUTHORITY,
                    from: authority.to_string(),
                    reason: e.to_string(),
                })?;
            }
        }
        Ok(roots)
    }
}

const AUTHORITY: &str = "certificate authority";
const CLIENT_CERTIFICATE: &str = "client certificate";
const CLIENT_KEY: &str = "client key";

/// One unreadable root among the system's is common and harms nobody who does not need it; fred would refuse all.
fn system_roots(
    certificates: Vec<CertificateDer<'static>>,
    errors: &[impl fmt::Display],
) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    let (added, ignored) = roots.add_parsable_certificates(certificates);
    let skipped = ignored + errors.len();
    if added == 0 {
        let reason = errors.first().map_or_else(|| "none found".to_owned(), ToString::to_string);
        return Err(TlsError::NoSystemRoots { reason });
    }
    if skipped > 0 {
        tracing::warn!(added, skipped, "some of the system's certificate authorities could not be loaded");
    }
    Ok(roots)
}

impl Pem {
    fn certificates(&self, what: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let bytes = self.bytes(what)?;
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(&bytes)
            .collect::<Result<_, _>>()
            .map_err(|e| self.malformed(what, &e))?;
        if certificates.is_empty() {
            return Err(self.malformed(what, &pem::Error::NoItemsFound));
        }
        Ok(certificates)
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        PrivateKeyDer::from_pem_slice(&self.bytes(CLIENT_KEY)?).map_err(|e| self.malformed(CLIENT_KEY, &e))
    }

    fn bytes(&self, what: &'static str) -> Result<std::borrow::Cow<'_, [u8]>, TlsError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.into()),
            Self::File(path) => fs::read(path).map(Into::into).map_err(|e| TlsError::Unreadable {
                what,
                path: path.clone(),
                reason: e.to_string(),
            }),
        }
    }

    /// In our own words: pem's errors quote the line they stumbled over, which may be part of a key.
    fn malformed(&self, what: &'static str, error: &pem::Error) -> TlsError {
        let reason = match error {
            pem::Error::NoItemsFound if what == CLIENT_KEY => {
                "it holds no unencrypted private key (PKCS#8, PKCS#1 or SEC1)"
            }
            pem::Error::NoItemsFound => "it holds no `BEGIN CERTIFICATE`",
            _ => "it is not well-formed PEM",
        };
        TlsError::Rejected { what, from: self.to_string(), reason: reason.to_owned() }
    }
}

impl fmt::Display for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Bytes(bytes) => write!(f, "<{} bytes of PEM>", bytes.len()),
        }
    }
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// TLS cannot be set up as asked. Nothing was sent to any master.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file could not be read.
    #[error("cannot read the {what} from {}: {reason}", path.display())]
    Unreadable {
        /// What the file is for.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// A file or text was read but is not what it should be.
    #[error("cannot use the {what} from {from}: {reason}")]
    Rejected {
        /// What it is for.
        what: &'static str,
        /// The file, or the length of the text.
        from: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No authority was given and the system has none.
    #[error("the system has no usable certificate authorities ({reason}): name one by its PEM file")]
    NoSystemRoots {
        /// The first failure.
        reason: String,
    },
    /// TLS was set up, and every master is reached without it.
    #[error(
        "TLS options are given, but no master uses TLS: write rediss:// (or valkeys://) in the masters' URLs"
    )]
    Unused,
}
