//! A bound on how long an answer may take to send.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// A connection on which whatever is being sent must be on its way within a
/// time. A client that reads slowly or not at all would otherwise keep an old
/// page, perhaps a hundred megabytes, in memory for as long as it likes.
#[derive(Debug)]
pub(super) struct WriteDeadline<S> {
    stream: S,
    limit: Duration,
    sending: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteDeadline<S> {
    /// `limit` counts from the first byte held back until none is.
    pub(super) fn new(stream: S, limit: Duration) -> Self {
        Self {
            stream,
            limit,
            sending: None,
        }
    }

    /// Passes on the outcome of a write; one that must wait starts the time,
    /// and fails when the time is up.
    fn bounded<T>(&mut self, outcome: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            return outcome;
        }
        let limit = self.limit;
        let sending = self.sending.get_or_insert_with(|| Box::pin(sleep(limit)));
        match sending.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteDeadline<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteDeadline<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.bounded(outcome, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.bounded(outcome, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The server flushes once everything it holds has been written.
        let outcome = Pin::new(&mut self.stream).poll_flush(cx);
        if outcome.is_ready() {
            self.sending = None;
        }
        self.bounded(outcome, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.bounded(outcome, cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test]
    async fn a_reader_that_stops_reading_ends_the_connection() {
        let (server, _client) = duplex(16);
        let mut server = WriteDeadline::new(server, Duration::from_millis(20));
        let error = server.write_all(&[0; 64]).await.expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_reader_that_reads_gets_everything() {
        let (server, mut client) = duplex(16);
        let mut server = WriteDeadline::new(server, Duration::from_mins(1));
        let reader = tokio::spawn(async move {
            let mut read = Vec::new();
            client.read_to_end(&mut read).await.map(|_| read)
        });
        server.write_all(&[7; 64]).await.expect("written");
        server.flush().await.expect("flushed");
        assert!(server.sending.is_none());
        drop(server);
        assert_eq!(reader.await.expect("joined").expect("read"), [7; 64]);
    }
}
