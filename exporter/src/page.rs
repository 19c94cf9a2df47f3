//! The metrics page in memory, ready to send, plain and compressed.
//!
//! A page has two parts: the fleet's, encoded once per snapshot, and the
//! program's own (a few hundred series), refreshed more often. Neither is
//! copied to serve or to refresh the other: a plain answer is the two parts
//! after one another, a compressed answer is one gzip stream whose first
//! deflate blocks are the fleet's and whose last ones are the program's.

use std::sync::Arc;

use bytes::Bytes;
use flate2::{Compress, Compression, Crc, FlushCompress, Status};

/// Header of a gzip stream without name or time (RFC 1952): deflate, no
/// flags, fastest compression, unknown system.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];

/// Room for one more stretch of compressed output.
const STRETCH: usize = 64 * 1024;

/// Compression failed; only a defect of the compressor can be the cause.
#[derive(Debug, thiserror::Error)]
#[error("compressing the page failed: {0}")]
pub struct CompressError(String);

/// The fleet's part of a page.
#[derive(Debug)]
pub struct FleetPart {
    /// Which snapshot it shows.
    pub generation: u64,
    plain: Bytes,
    /// Gzip header and deflate blocks up to a byte boundary, stream not ended.
    compressed: Bytes,
    checksum: Crc,
}

impl FleetPart {
    /// Compresses the text; `expected` is about how long the result will be.
    ///
    /// # Errors
    /// When the compressor fails.
    pub fn new(generation: u64, text: Vec<u8>, expected: usize) -> Result<Self, CompressError> {
        let mut compressed = Vec::with_capacity(expected.max(STRETCH));
        compressed.extend_from_slice(&GZIP_HEADER);
        // A full flush ends at a byte boundary and leaves nothing that the
        // blocks of the second part could refer to.
        deflate(&text, FlushCompress::Full, &mut compressed)?;
        let mut checksum = Crc::new();
        checksum.update(&text);
        Ok(Self {
            generation,
            plain: text.into(),
            compressed: compressed.into(),
            checksum,
        })
    }

    /// Length of the text in bytes.
    #[must_use]
    pub fn plain_len(&self) -> usize {
        self.plain.len()
    }

    /// Length of the compressed text in bytes.
    #[must_use]
    pub fn compressed_len(&self) -> usize {
        self.compressed.len()
    }
}

/// A whole page.
#[derive(Debug)]
pub struct Page {
    fleet: Arc<FleetPart>,
    own_plain: Bytes,
    own_compressed: Bytes,
}

impl Page {
    /// Puts the program's own text after the fleet's part.
    ///
    /// # Errors
    /// When the compressor fails.
    pub fn new(fleet: Arc<FleetPart>, own: Vec<u8>) -> Result<Self, CompressError> {
        let mut compressed = Vec::with_capacity(own.len() / 4 + 1024);
        deflate(&own, FlushCompress::Finish, &mut compressed)?;
        let mut own_checksum = Crc::new();
        own_checksum.update(&own);
        let mut checksum = Crc::new();
        checksum.combine(&fleet.checksum);
        checksum.combine(&own_checksum);
        compressed.extend_from_slice(&checksum.sum().to_le_bytes());
        compressed.extend_from_slice(&checksum.amount().to_le_bytes());
        Ok(Self {
            fleet,
            own_plain: own.into(),
            own_compressed: compressed.into(),
        })
    }

    /// The fleet's part.
    #[must_use]
    pub fn fleet(&self) -> &Arc<FleetPart> {
        &self.fleet
    }

    /// The text, in pieces that share the page's memory.
    #[must_use]
    pub fn plain(&self) -> [Bytes; 2] {
        [self.fleet.plain.clone(), self.own_plain.clone()]
    }

    /// The gzip stream of the text, in pieces that share the page's memory.
    #[must_use]
    pub fn gzip(&self) -> [Bytes; 2] {
        [self.fleet.compressed.clone(), self.own_compressed.clone()]
    }
}

/// Appends raw deflate blocks of `input` to `out`.
fn deflate(input: &[u8], flush: FlushCompress, out: &mut Vec<u8>) -> Result<(), CompressError> {
    let mut compressor = Compress::new(Compression::fast(), false);
    let mut rest = input;
    loop {
        if out.capacity() - out.len() < STRETCH {
            out.reserve(out.len().max(STRETCH) / 2);
        }
        let consumed_before = compressor.total_in();
        let status = compressor
            .compress_vec(rest, out, flush)
            .map_err(|error| CompressError(error.to_string()))?;
        let consumed = usize::try_from(compressor.total_in() - consumed_before).unwrap_or(rest.len());
        rest = rest.get(consumed..).unwrap_or_default();
        match status {
            Status::StreamEnd => return Ok(()),
            Status::BufError => return Err(CompressError("no progress".to_owned())),
            // A flush is complete when the compressor left output space unused.
            Status::Ok if flush != FlushCompress::Finish && rest.is_empty() && out.len() < out.capacity() => {
                return Ok(());
            }
            Status::Ok => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::bufread::GzDecoder;

    use super::*;

    fn page(fleet: &str, own: &str) -> Page {
        let fleet = FleetPart::new(1, fleet.into(), 0).expect("compressed");
        Page::new(Arc::new(fleet), own.into()).expect("compressed")
    }

    /// Decodes exactly one gzip member and insists that nothing follows it:
    /// not every client reads a second member.
    fn unzip(page: &Page) -> String {
        let stream = page.gzip().concat();
        let mut decoder = GzDecoder::new(stream.as_slice());
        let mut text = String::new();
        decoder
            .read_to_string(&mut text)
            .expect("valid gzip, right checksum and length");
        assert!(decoder.into_inner().is_empty(), "bytes after the stream");
        text
    }

    #[test]
    fn the_compressed_page_is_one_gzip_stream_of_the_plain_page() {
        let lines: Vec<String> = (0..200_000)
            .map(|i| format!("series{{id=\"{}\"}} {i}\n", i * 7919 % 10_007))
            .collect();
        let long = lines.concat();
        for (fleet, own) in [
            ("", ""),
            ("a 1\n", "b 2\n"),
            ("", "b 2\n"),
            ("a 1\n", ""),
            (&*long, "b 2\n"),
            ("a 1\n", &*long),
        ] {
            let page = page(fleet, own);
            assert_eq!(page.plain().concat(), format!("{fleet}{own}").into_bytes());
            assert_eq!(unzip(&page), format!("{fleet}{own}"));
        }
    }

    #[test]
    fn refreshing_the_own_part_shares_the_fleets_part() {
        let first = page("fleet 1\n", "own 1\n");
        let second = Page::new(Arc::clone(first.fleet()), "own 2\n".into()).expect("compressed");
        assert_eq!(first.plain()[0].as_ptr(), second.plain()[0].as_ptr());
        assert_eq!(first.gzip()[0].as_ptr(), second.gzip()[0].as_ptr());
        assert_eq!(unzip(&second), "fleet 1\nown 2\n");
    }
}
