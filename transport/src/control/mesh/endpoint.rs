//! The UDP socket and quinn's settings.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use bench_core::ids::BuildHash;
use bench_core::message::Role;
use quinn::{
    ClientConfig, Endpoint, EndpointConfig, IdleTimeout, ServerConfig, TokioRuntime, TransportConfig, VarInt,
};
use socket2::{Domain, Protocol, Socket, Type};

use super::{Access, ControlError, Limits, tls};
use crate::control::identity::Identity;

/// Opens the endpoint. An agent's accepts; a client's only dials, so it may sit on any address even without a key.
pub(super) fn open(
    listen: SocketAddr,
    role: &Role,
    access: Access,
    identity: &Identity,
    build: &BuildHash,
    limits: &Limits,
) -> Result<Endpoint, ControlError> {
    let transport = Arc::new(transport(limits)?);
    let server = match role {
        Role::Agent { .. } if !access.allows(listen) => return Err(ControlError::NoKey { address: listen }),
        Role::Agent { .. } => {
            let mut config = ServerConfig::with_crypto(Arc::new(tls::server(identity, build)?));
            config.migration(false).max_incoming(MAX_INCOMING).transport_config(Arc::clone(&transport));
            Some(config)
        }
        Role::Client => None,
    };
    let mut client = ClientConfig::new(Arc::new(tls::client(identity, build)?));
    client.transport_config(transport);

    let socket = socket(listen)?;
    let mut endpoint = Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(TokioRuntime))?;
    endpoint.set_default_client_config(client);
    Ok(endpoint)
}

fn transport(limits: &Limits) -> Result<TransportConfig, ControlError> {
    let idle = IdleTimeout::try_from(limits.idle).map_err(|_| ControlError::Tls {
        reason: format!("an idle time-out of {:?} is more than QUIC can say", limits.idle),
    })?;
    let mut config = TransportConfig::default();
    config
        .max_concurrent_bidi_streams(VarInt::from_u32(limits.streams))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(None)
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW_BYTES))
        .receive_window(VarInt::from_u32(CONNECTION_WINDOW_BYTES))
        .initial_rtt(limits.first_rtt)
        .max_idle_timeout(Some(idle))
        .keep_alive_interval(Some(limits.keep_alive));
    Ok(config)
}

/// One dual-stack socket. A host without IPv6 gets an IPv4 one for the unspecified address.
fn socket(listen: SocketAddr) -> Result<UdpSocket, ControlError> {
    let bound = bind(listen).or_else(|error| match listen {
        SocketAddr::V6(v6) if v6.ip().is_unspecified() && lacks_ipv6(&error) => {
            bind((Ipv4Addr::UNSPECIFIED, v6.port()).into())
        }
        SocketAddr::V4(_) | SocketAddr::V6(_) => Err(error),
    });
    bound.map_err(|source| ControlError::Listen { address: listen, source })
}

fn bind(listen: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(listen), Type::DGRAM, Some(Protocol::UDP))?;
    if listen.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // The kernel cuts both to net.core.rmem_max and wmem_max without an error.
    socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
    socket.set_send_buffer_size(SOCKET_BUFFER_BYTES)?;
    socket.bind(&listen.into())?;
    Ok(socket.into())
}

fn lacks_ipv6(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrNotAvailable
        || error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error())
}

/// Handshakes that wait for a place, quinn's own queue: 4,096 agents start at once, each tries again by itself.
const MAX_INCOMING: usize = 1024;

/// Credit of one stream, bytes: a control message passes at once, a batch in a few round trips.
const STREAM_WINDOW_BYTES: u32 = 2 << 20;

/// Credit of one connection, bytes: what one peer can make this process hold in unread data.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// Socket buffers, bytes: an elector hears thousands of agents on one socket.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;
