//! What happens at the end of subscriptions: whether they are renewed.
//!
//! Instances do not say it themselves; another call does, a hundred at a time.
//! It is a detail: what cannot be had costs no instance.

use std::{
    collections::{HashMap, HashSet},
    sync::Mutex,
    time::Duration,
};

use gpuwatch_collector_core::{CollectError, Context, Scope, lock};
use gpuwatch_collector_rest::Rows;
use gpuwatch_inventory::Text;
use serde::Deserialize;

use crate::{
    account::Account,
    client::{Action, detail, parameters},
    errors,
    hosts::Product,
    loose, numbered,
};

const DESCRIBE_AUTO_RENEW: Action = Action::new(
    Product::Ecs,
    "DescribeInstanceAutoRenewAttribute",
    "ecs:DescribeInstanceAutoRenewAttribute",
);

/// Instances named in one call, at most; the largest page, too.
const INSTANCES_PER_CALL: usize = 100;
const PAGE_SIZE: &str = "100";

/// Asked for anew after this time.
const KEPT: Duration = Duration::from_hours(1);

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page {
    #[serde(default, deserialize_with = "loose::number")]
    total_count: Option<f64>,
    #[serde(default)]
    instance_renew_attributes: Option<Attributes>,
}

#[derive(Deserialize, Default)]
struct Attributes {
    #[serde(rename = "InstanceRenewAttribute", default)]
    rows: Rows<Row>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Row {
    #[serde(rename = "InstanceId")]
    id: String,
    #[serde(default, deserialize_with = "loose::text")]
    renewal_status: String,
    #[serde(default, deserialize_with = "loose::flag")]
    auto_renew_enabled: Option<bool>,
}

impl Row {
    /// Whether it is renewed without anybody doing anything.
    fn is_renewed(&self) -> Option<bool> {
        match self.renewal_status.as_str() {
            "AutoRenewal" => Some(true),
            // Its owner is asked, or not even that.
            "Normal" | "NotRenewal" => Some(false),
            _ => self.auto_renew_enabled,
        }
    }
}

/// Whether each is renewed, with the monotonic time of the answer.
type Kept = HashMap<Text, (Duration, Option<bool>)>;

/// Renewal of the subscriptions of every account and region.
#[derive(Default)]
pub(crate) struct Renewals {
    kept: Mutex<HashMap<(Text, Text), Kept>>,
}

impl Renewals {
    /// Whether these subscriptions are renewed, as far as that can be had.
    pub(crate) async fn of(
        &self,
        cx: &Context,
        account: &Account,
        scope: &Scope,
        subscriptions: &[Text],
    ) -> HashMap<Text, bool> {
        let place = (scope.account.id.clone(), scope.region.clone());
        let missing: Vec<Text> = {
            let mut kept = lock(&self.kept);
            let kept = kept.entry(place.clone()).or_default();
            let current: HashSet<&Text> = subscriptions.iter().collect();
            kept.retain(|id, (at, _)| current.contains(id) && cx.monotonic().saturating_sub(*at) < KEPT);
            subscriptions
                .iter()
                .filter(|id| !kept.contains_key(*id))
                .cloned()
                .collect()
        };
        let mut open: Vec<&[Text]> = missing.chunks(INSTANCES_PER_CALL).collect();
        while let Some(batch) = open.pop() {
            // Boxed: rare, and its future is large.
            let fetch = Box::pin(describe(cx, account, scope, batch));
            match detail(cx, DESCRIBE_AUTO_RENEW.call, fetch).await {
                Ok(found) => {
                    let mut kept = lock(&self.kept);
                    let kept = kept.entry(place.clone()).or_default();
                    for id in batch {
                        kept.insert(id.clone(), (cx.monotonic(), found.get(id).copied()));
                    }
                }
                // One that was released, or is no subscription any more, costs
                // the answer about all that are named with it.
                Err(error) if errors::is_about_an_instance(&error) => {
                    let (first, second) = batch.split_at(batch.len() / 2);
                    if !first.is_empty() {
                        open.extend([first, second]);
                    }
                }
                Err(error) => {
                    cx.degraded(&error);
                    break;
                }
            }
        }
        let kept = lock(&self.kept);
        let answers = kept.get(&place).into_iter().flatten();
        answers
            .filter_map(|(id, (_, renewed))| Some((id.clone(), (*renewed)?)))
            .collect()
    }
}

async fn describe(
    cx: &Context,
    account: &Account,
    scope: &Scope,
    subscriptions: &[Text],
) -> Result<HashMap<Text, bool>, CollectError> {
    let region: &str = &scope.region;
    let ids = &subscriptions.join(",");
    let fetch = |number: u64| async move {
        let mut asked = parameters(&[("RegionId", region), ("InstanceId", ids), ("PageSize", PAGE_SIZE)]);
        asked.insert("PageNumber".into(), number.to_string());
        let page: Page = account.call(cx, DESCRIBE_AUTO_RENEW, region, &asked).await?;
        let total = loose::units(page.total_count).map(u64::from);
        Ok((page.instance_renew_attributes.unwrap_or_default().rows, total))
    };
    let rows = numbered::read(cx, DESCRIBE_AUTO_RENEW.call, |row: &Row| &row.id, fetch).await?;
    let answers = rows
        .iter()
        .filter_map(|row| Some((row.id.as_str().into(), row.is_renewed()?)));
    Ok(answers.collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing;

    #[test]
    fn words_that_nobody_knows_leave_it_to_the_flag() {
        for (word, flag, renewed) in [
            ("\"AutoRenewal\"", "false", Some(true)),
            ("\"Normal\"", "false", Some(false)),
            ("\"NotRenewal\"", "true", Some(false)),
            ("\"Foo\"", "\"true\"", Some(true)),
            ("null", "false", Some(false)),
            ("null", "7", None),
        ] {
            let row = format!(r#"{{"InstanceId": "i-1", "RenewalStatus": {word}, "AutoRenewEnabled": {flag}}}"#);
            let row: Row = serde_json::from_str(&row).unwrap();
            assert_eq!(row.is_renewed(), renewed, "{word} {flag}");
        }
    }

    proptest! {
        #[test]
        fn no_answer_can_make_it_panic(
            text in testing::record(&["InstanceId", "RenewalStatus", "AutoRenewEnabled"]),
            other in testing::document(&["TotalCount", "InstanceRenewAttributes", "InstanceRenewAttribute"]),
        ) {
            let page = format!(r#"{{"InstanceRenewAttributes": {{"InstanceRenewAttribute": [{text}]}}}}"#);
            let page: Page = serde_json::from_str(&page).unwrap();
            prop_assert_eq!(page.instance_renew_attributes.unwrap().rows.total(), 1);
            let _ = serde_json::from_str::<Page>(&other);
        }
    }
}
