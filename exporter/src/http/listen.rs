//! Accepts connections and bounds what each may take.

use std::{io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::write_deadline::WriteDeadline;

/// Connections at once; more wait in the listen queue.
const MAX_CONNECTIONS: usize = 256;
/// Time for a client to send its request's header, idle time included.
const HEADER_READ_LIMIT: Duration = Duration::from_secs(90);
/// Time for an answer to be on its way.
const WRITE_LIMIT: Duration = Duration::from_mins(2);
/// A connection is closed between two requests after this time, and for good
/// when its last answer takes longer than [`WRITE_LIMIT`].
const MAX_AGE: Duration = Duration::from_mins(30);
/// Request line and header fields together, in bytes.
const MAX_HEADER: usize = 64 * 1024;
/// Pause after the system refused a connection, e.g. for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long a stop waits for answers that are being sent.
const STOP_LIMIT: Duration = Duration::from_secs(2);

/// Why the server could not listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Not an address with a port, or a name that cannot be looked up.
    #[error(
        "cannot listen on {address}: not an address of this machine with a port, such as 127.0.0.1:9836 ({source})"
    )]
    Address {
        /// What was configured.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody else listens there.
    #[error(
        "cannot listen on {address}: the port is in use by another program; stop it or choose another with --listen"
    )]
    InUse {
        /// What was configured.
        address: String,
    },
    /// Anything else, such as a privileged port.
    #[error("cannot listen on {address}: {source}")]
    Other {
        /// What was configured.
        address: String,
        /// What the system said.
        source: io::Error,
    },
}

/// Opens the listening socket.
///
/// # Errors
/// When the address cannot be used.
pub async fn bind(address: &str) -> Result<TcpListener, ListenError> {
    let own = || address.to_owned();
    let candidates: Vec<SocketAddr> = tokio::net::lookup_host(address)
        .await
        .map_err(|source| ListenError::Address { address: own(), source })?
        .collect();
    TcpListener::bind(candidates.as_slice())
        .await
        .map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => ListenError::InUse { address: own() },
            io::ErrorKind::InvalidInput | io::ErrorKind::AddrNotAvailable => {
                ListenError::Address { address: own(), source }
            }
            _ => ListenError::Other { address: own(), source },
        })
}

/// Serves until stopped, then lets answers in flight finish for a moment.
pub async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = accept(&listener, &places) => accepted,
        };
        match accepted {
            Ok((stream, peer, place)) => {
                let router = router.clone();
                let stop = stop.clone();
                connections.spawn(async move {
                    // An answer goes out at once, not when the peer has
                    // acknowledged the one before.
                    let _ = stream.set_nodelay(true);
                    serve_connection(stream, peer, router, stop).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(STOP_LIMIT, connections.wait()).await.is_err() {
        tracing::warn!(open = connections.len(), "stopped with answers unsent");
    }
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, place))
}

/// Serves one connection over any stream, so that TLS is one more layer.
async fn serve_connection<S>(stream: S, peer: SocketAddr, router: Router, stop: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = TokioIo::new(WriteDeadline::new(stream, WRITE_LIMIT));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_READ_LIMIT)
        .max_buf_size(MAX_HEADER)
        .serve_connection(stream, TowerToHyperService::new(router));
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = stop.cancelled() => None,
        () = tokio::time::sleep(MAX_AGE) => None,
    };
    let ended = if let Some(ended) = ended {
        ended
    } else {
        connection.as_mut().graceful_shutdown();
        let Ok(ended) = tokio::time::timeout(WRITE_LIMIT, connection).await else {
            return;
        };
        ended
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection ended early");
    }
}
