//! Times of the SDK.

use jiff::Timestamp;

/// A time of the SDK as a timestamp; `None` outside the years -9999 to 9999.
pub(crate) fn timestamp(time: &aws_smithy_types::DateTime) -> Option<Timestamp> {
    Timestamp::new(time.secs(), i32::try_from(time.subsec_nanos()).ok()?).ok()
}
