//! What all calls of the billing product have in common.

use std::{collections::HashMap, sync::Mutex, time::Duration};

use gpuwatch_collector_core::{Call, CollectError, Context, Reason, lock};
use gpuwatch_collector_rest::Rows;
use gpuwatch_inventory::Text;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::{errors, loose};

/// How long an account is not asked about at a site that has refused it: the
/// vendor blocks accounts that go on.
const QUIET: Duration = Duration::from_hours(24);

/// The accounts that the configured site does not have.
#[derive(Default)]
pub(crate) struct Bss {
    refused: Mutex<HashMap<Text, (Duration, CollectError)>>,
}

impl Bss {
    /// Makes calls for an account, unless they would be refused again.
    ///
    /// # Errors
    /// Those of the calls, and for a day that of an account which is known to
    /// be one of the other site.
    pub(crate) async fn ask<T>(
        &self,
        cx: &Context,
        id: &Text,
        calls: impl Future<Output = Result<T, CollectError>>,
    ) -> Result<T, CollectError> {
        if let Some((at, error)) = lock(&self.refused).get(id)
            && cx.monotonic().saturating_sub(*at) < QUIET
        {
            // Made anew, so that it is counted for this run too.
            let known = CollectError::new(error.reason, error.message.clone());
            return Err(known.code(error.code.clone().unwrap_or_default()));
        }
        let result = calls.await;
        match &result {
            Err(error) if errors::is_of_other_site(error) => {
                lock(&self.refused).insert(id.clone(), (cx.monotonic(), error.clone()));
            }
            _ => {
                lock(&self.refused).remove(id);
            }
        }
        result
    }
}

/// An answer of the billing product.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Page {
    #[serde(default)]
    pub data: Option<Data>,
}

/// The part of an answer that is the listing.
#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Data {
    #[serde(default, deserialize_with = "loose::number")]
    pub total_count: Option<f64>,
    #[serde(default)]
    pub next_token: Option<String>,
    #[serde(default)]
    items: Option<Box<RawValue>>,
}

impl Data {
    /// The list, plain or in an object around it.
    ///
    /// # Errors
    /// When it is neither.
    pub(crate) fn rows<T: DeserializeOwned>(&self, call: Call) -> Result<Rows<T>, CollectError> {
        #[derive(Deserialize)]
        #[serde(bound = "T: DeserializeOwned")]
        struct Wrapped<T> {
            #[serde(rename = "Item", default)]
            item: Rows<T>,
        }
        let Some(items) = &self.items else {
            return Ok(Rows::default());
        };
        serde_json::from_str(items.get())
            .or_else(|_| serde_json::from_str::<Wrapped<T>>(items.get()).map(|wrapped| wrapped.item))
            .map_err(|_| CollectError::new(Reason::Decode, format!("{}: `Items` is no list", call.title())))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::testing;

    const CALL: Call = Call::new("bssopenapi", "QuerySavingsPlansInstance", "");

    fn items(json: &str) -> usize {
        let data: Data = serde_json::from_str(json).unwrap();
        data.rows::<Value>(CALL).unwrap().good.len()
    }

    #[test]
    fn both_shapes_of_the_list_are_read() {
        assert_eq!(items(r#"{"Items": [{"InstanceId": "spn-1"}]}"#), 1);
        assert_eq!(items(r#"{"Items": {"Item": [{"InstanceId": "spn-1"}]}}"#), 1);
        assert_eq!(items(r#"{"Items": null}"#), 0);
        assert_eq!(items("{}"), 0);
        let other: Data = serde_json::from_str(r#"{"Items": "none"}"#).unwrap();
        assert_eq!(other.rows::<Value>(CALL).unwrap_err().reason, Reason::Decode);
    }

    proptest! {
        #[test]
        fn no_answer_can_make_it_panic(text in testing::document(&[
            "Data", "TotalCount", "NextToken", "Items", "Item", "InstanceId",
        ])) {
            let data = serde_json::from_str::<Page>(&text).ok().and_then(|page| page.data);
            let _ = data.map(|data| data.rows::<Value>(CALL));
        }
    }
}
