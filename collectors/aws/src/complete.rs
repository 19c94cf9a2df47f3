//! Refuses XML answers that end before their root element does.
//!
//! The SDK's XML reader takes the end of the text for the end of every open
//! element, so a body cut off in transit would pass for a shorter list
//! without a next page: instances would vanish without an error, and keys
//! would be half as long.

use aws_sdk_ec2::config::{
    ConfigBag, Intercept, RuntimeComponents, interceptors::AfterDeserializationInterceptorContextRef,
};
use aws_smithy_runtime_api::box_error::BoxError;

/// An answer whose root element is not closed.
#[derive(Debug, thiserror::Error)]
#[error("the answer is cut off before the end of its root element")]
pub(crate) struct CutOff;

/// Interceptor for services with XML answers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CompleteXml;

#[aws_smithy_runtime_api::client::interceptors::dyn_dispatch_hint]
impl Intercept for CompleteXml {
    fn name(&self) -> &'static str {
        "CompleteXml"
    }

    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let response = context.response();
        if !response.status().is_success() {
            return Ok(());
        }
        match response.body().bytes() {
            Some(body) if !is_complete(body) => Err(CutOff.into()),
            _ => Ok(()),
        }
    }
}

/// Whether the text ends with the end tag of its first element. An answer
/// always has a request id, so its root is never an empty element.
fn is_complete(body: &[u8]) -> bool {
    let Some(root) = root_name(body) else { return false };
    body.trim_ascii_end()
        .strip_suffix(b">")
        .and_then(|end| end.trim_ascii_end().strip_suffix(root))
        .is_some_and(|open| open.ends_with(b"</"))
}

/// Name of the first element, past declaration and comments.
fn root_name(mut body: &[u8]) -> Option<&[u8]> {
    loop {
        let start = body.iter().position(|byte| *byte == b'<')?;
        body = body.get(start + 1..)?;
        if !matches!(body.first()?, b'?' | b'!') {
            let end = body
                .iter()
                .position(|byte| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/'))?;
            return body.get(..end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_complete_only_with_the_end_of_its_root() {
        let whole = br#"<?xml version="1.0" encoding="UTF-8"?>
<DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><reservationSet><item/></reservationSet></DescribeInstancesResponse>
"#;
        assert!(is_complete(whole));
        // Every byte of the end tag counts; only trailing blanks may be missing.
        for cut in 1..whole.len() - 1 {
            assert!(!is_complete(&whole[..cut]), "cut at {cut}");
        }
        assert!(!is_complete(b"<DescribeInstancesResponse><reservationSet/>"));
        assert!(!is_complete(b""));
        assert!(!is_complete(b"plain text"));
    }
}
