//! Certificates of a mesh: a CA that follows from the key, and leaves that carry a name.

use std::fmt;

use bench_core::ids::{MeshId, NodeId, NodeIdError};
use hkdf::Hkdf;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ED25519, SanType, SerialNumber, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::MeshKey;

/// Whom a leaf names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The agent of a node.
    Node(NodeId),
    /// A command such as `sweep`.
    Client,
}

impl Holder {
    /// Reads the name out of a leaf. Call it only with a leaf that TLS has verified.
    ///
    /// # Errors
    /// [`HolderError`] if the leaf has no name of ours.
    pub fn of(leaf: &CertificateDer<'_>) -> Result<Self, HolderError> {
        let parsed = webpki::EndEntityCert::try_from(leaf).map_err(|_| HolderError::Unreadable)?;
        for name in parsed.valid_dns_names() {
            if name == CLIENT_NAME {
                return Ok(Self::Client);
            }
            if let Some(labels) = name.strip_suffix(NODE_SUFFIX) {
                return decode_node(labels).map(Self::Node);
            }
        }
        Err(HolderError::Nameless)
    }

    fn names(&self) -> Vec<String> {
        match self {
            Self::Node(node) => vec![AGENT_SERVER_NAME.to_owned(), encode_node(node)],
            Self::Client => vec![CLIENT_NAME.to_owned()],
        }
    }

    fn usages(&self) -> Vec<ExtendedKeyUsagePurpose> {
        match self {
            Self::Node(_) => vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth],
            Self::Client => vec![ExtendedKeyUsagePurpose::ClientAuth],
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(node) => node.fmt(f),
            Self::Client => f.write_str("a client"),
        }
    }
}

/// What a process shows to others: the CA of its mesh, its leaf, and the leaf's key.
pub struct Identity {
    holder: Holder,
    mesh: MeshId,
    authority: CertificateDer<'static>,
    leaf: CertificateDer<'static>,
    leaf_key: PrivatePkcs8KeyDer<'static>,
}

impl Identity {
    /// Issues a leaf for `holder` with a fresh key, signed by the CA that follows from `key`.
    ///
    /// # Errors
    /// [`IdentityError`] if the certificate library refuses, which a sound build does not see.
    pub fn issue(key: &MeshKey, holder: Holder) -> Result<Self, IdentityError> {
        let authority_key = authority_key(key)?;
        let mesh = mesh_id(&authority_key);
        let params = authority_params();
        let authority = params.self_signed(&authority_key)?.der().clone();
        let issuer = Issuer::new(params, authority_key);
        let leaf_key = KeyPair::generate_for(&PKCS_ED25519)?;
        let leaf = leaf_params(&holder)?.signed_by(&leaf_key, &issuer)?.der().clone();
        Ok(Self {
            holder,
            mesh,
            authority,
            leaf,
            leaf_key: PrivatePkcs8KeyDer::from(leaf_key.serialize_der()),
        })
    }

    /// Which mesh this is: a hash of the CA's public key, so it tells keys apart and betrays none.
    pub fn mesh_id(&self) -> MeshId {
        self.mesh
    }

    /// Whom the leaf names.
    pub fn holder(&self) -> &Holder {
        &self.holder
    }

    pub(crate) fn authority(&self) -> &CertificateDer<'static> {
        &self.authority
    }

    pub(crate) fn leaf(&self) -> &CertificateDer<'static> {
        &self.leaf
    }

    pub(crate) fn leaf_key(&self) -> PrivatePkcs8KeyDer<'static> {
        self.leaf_key.clone_key()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("holder", &self.holder)
            .field("mesh", &self.mesh)
            .finish_non_exhaustive()
    }
}

/// No certificate could be issued.
#[derive(Clone, Debug, Error)]
#[error("failed to issue the certificate of this process")]
pub struct IdentityError(#[from] rcgen::Error);

/// A leaf that names nobody of ours.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HolderError {
    /// Not a certificate.
    #[error("the certificate cannot be read")]
    Unreadable,
    /// Neither a node nor a client.
    #[error("the certificate names neither a node nor a client of a mesh")]
    Nameless,
    /// The encoded name is not hexadecimal text.
    #[error("the certificate's node name {text:?} is not encoded as this build does it")]
    Encoding {
        /// The labels before the suffix.
        text: String,
    },
    /// The decoded name is no node's name.
    #[error("the certificate's name is no node's name")]
    Name(#[from] NodeIdError),
}

fn authority_key(key: &MeshKey) -> Result<KeyPair, IdentityError> {
    let mut pkcs8 = [0; PKCS8_ED25519.len() + ED25519_SEED_BYTES];
    let (prefix, seed) = pkcs8.split_at_mut(PKCS8_ED25519.len());
    prefix.copy_from_slice(PKCS8_ED25519);
    Hkdf::<Sha256>::new(Some(HKDF_SALT), key.secret())
        .expand(HKDF_INFO, seed)
        .expect("HKDF-SHA256 gives up to 8160 bytes and the seed is 32");
    let der = PrivatePkcs8KeyDer::from(pkcs8.as_slice());
    Ok(KeyPair::from_pkcs8_der_and_sign_algo(&der, &PKCS_ED25519)?)
}

fn mesh_id(authority_key: &KeyPair) -> MeshId {
    let digest = Sha256::digest(authority_key.public_key_raw());
    let mut id = [0; 16];
    id.copy_from_slice(&digest[..16]);
    MeshId(id)
}

fn authority_params() -> CertificateParams {
    let mut params = lifetime(CertificateParams::default());
    params.serial_number = Some(SerialNumber::from_slice(&[1]));
    params.distinguished_name = common_name("railmesh");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

fn leaf_params(holder: &Holder) -> Result<CertificateParams, IdentityError> {
    let mut params = lifetime(CertificateParams::default());
    params.distinguished_name = common_name(&holder.to_string());
    params.subject_alt_names = holder
        .names()
        .into_iter()
        .map(|name| Ok(SanType::DnsName(name.try_into()?)))
        .collect::<Result<_, rcgen::Error>>()?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = holder.usages();
    Ok(params)
}

/// From 1970 to 2500: a node's wall clock at bring-up says anything.
fn lifetime(mut params: CertificateParams) -> CertificateParams {
    params.not_before = date_time_ymd(1970, 1, 1);
    params.not_after = date_time_ymd(2500, 1, 1);
    params
}

/// A label for people who look at the certificate; nothing reads it.
fn common_name(text: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, text);
    name
}

/// A node's name may have `:` and `_`, upper case, or be an address, none of which a DNS name in a certificate carries
/// unchanged: so it is written in hexadecimal, in labels of at most 62 digits.
fn encode_node(node: &NodeId) -> String {
    let labels: Vec<String> = node
        .as_str()
        .as_bytes()
        .chunks(BYTES_PER_LABEL)
        .map(|chunk| chunk.iter().map(|byte| format!("{byte:02x}")).collect())
        .collect();
    labels.join(".") + NODE_SUFFIX
}

fn decode_node(labels: &str) -> Result<NodeId, HolderError> {
    let wrong = || HolderError::Encoding { text: labels.to_owned() };
    let digits: Vec<u8> = labels
        .bytes()
        .filter(|b| *b != b'.')
        .map(|b| char::from(b).to_digit(16).map(|digit| digit as u8).ok_or_else(wrong))
        .collect::<Result<_, _>>()?;
    let (pairs, odd) = digits.as_chunks::<2>();
    if !odd.is_empty() {
        return Err(wrong());
    }
    let name = pairs.iter().map(|[high, low]| high << 4 | low).collect();
    let name = String::from_utf8(name).map_err(|_| wrong())?;
    Ok(NodeId::new(&name)?)
}

/// The name that every agent's leaf has and every dialer asks for: which agent it is follows from the other name.
pub(crate) const AGENT_SERVER_NAME: &str = "agent.railmesh";

/// The name of a client's leaf. It lacks [`AGENT_SERVER_NAME`], so a client cannot answer a dialer.
const CLIENT_NAME: &str = "client.railmesh";

/// Ends a node's encoded name.
const NODE_SUFFIX: &str = ".node.railmesh";

/// Bytes per label: 62 hexadecimal digits, below the 63 that RFC 1035 section 2.3.4 allows.
const BYTES_PER_LABEL: usize = 31;

/// HKDF's salt (RFC 5869 section 3.1): sets our use of the key apart from any other.
const HKDF_SALT: &[u8] = b"railmesh/v1";

/// HKDF's info (RFC 5869 section 3.2): what the output is for.
const HKDF_INFO: &[u8] = b"ed25519-ca";

/// A PKCS#8 version 1 key of Ed25519 up to its seed (RFC 8410 section 7).
const PKCS8_ED25519: &[u8] =
    &[0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// Bytes of an Ed25519 seed (RFC 8032 section 5.1.5).
const ED25519_SEED_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> Holder {
        Holder::Node(NodeId::new(name).unwrap())
    }

    #[test]
    fn two_nodes_with_one_key_derive_the_same_authority_and_fresh_leaves() {
        let key = MeshKey::generate().unwrap();
        let a = Identity::issue(&key, node("a")).unwrap();
        let again = Identity::issue(&key, node("a")).unwrap();
        assert_eq!(a.authority(), again.authority());
        assert_eq!(a.mesh_id(), again.mesh_id());
        assert_ne!(a.leaf(), again.leaf());
        let other = Identity::issue(&MeshKey::generate().unwrap(), node("a")).unwrap();
        assert_ne!(a.authority(), other.authority());
        assert_ne!(a.mesh_id(), other.mesh_id());
    }

    // The derivation is part of what a mesh id means: if it changes, every stored id changes.
    #[test]
    fn the_loopback_key_always_gives_the_same_mesh_id() {
        let identity = Identity::issue(&MeshKey::loopback(), Holder::Client).unwrap();
        assert_eq!(identity.mesh_id().to_string(), LOOPBACK_MESH);
    }

    #[test]
    fn every_name_that_a_node_can_have_reads_back_from_its_leaf() {
        let longest = "Xy_:.-".repeat(10) + "end";
        assert_eq!(longest.len(), 63);
        for name in ["gpu-001", "10.0.0.7", "fd00::1", "Node_3.rack2", "A", "a", &longest] {
            let identity = Identity::issue(&MeshKey::loopback(), node(name)).unwrap();
            assert_eq!(Holder::of(identity.leaf()), Ok(node(name)));
        }
        let client = Identity::issue(&MeshKey::loopback(), Holder::Client).unwrap();
        assert_eq!(Holder::of(client.leaf()), Ok(Holder::Client));
    }

    #[test]
    fn a_certificate_without_a_name_of_ours_names_nobody() {
        let identity = Identity::issue(&MeshKey::loopback(), Holder::Client).unwrap();
        assert_eq!(Holder::of(identity.authority()), Err(HolderError::Nameless));
        assert_eq!(Holder::of(&CertificateDer::from(vec![1, 2, 3])), Err(HolderError::Unreadable));
        for labels in ["", "6", "zz", "ff", "20"] {
            assert!(decode_node(labels).is_err(), "{labels:?}");
        }
    }

    /// Computed apart from this code, with HMAC of Python and `openssl pkey`.
    const LOOPBACK_MESH: &str = "305604a968413415c3e05b4974319b21";
}
