//! Machines from Resource Graph: one query lists a subscription, with power
//! states, from an index that is seconds to minutes behind.

use std::collections::{BTreeMap, HashMap, HashSet};

use gpuwatch_collector_core::{Call, CollectError, Context, Progress, Reason, read_all};
use gpuwatch_collector_rest::Rows;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    arm::{Arm, Listing},
    sizes,
    vm::{Record, SetFacts},
};

const RESOURCES: Listing = Listing {
    call: Call::new("resourcegraph", "resources", "Microsoft.ResourceGraph/resources/read"),
    versions: &["2021-03-01"],
};

/// Rows of a page, at most.
const PAGE_SIZE: u32 = 1000;

const MACHINES: &str = "Resources\n\
    | where type =~ 'microsoft.compute/virtualmachines'\n\
    | where properties.hardwareProfile.vmSize startswith 'Standard_N'\n\
    | project id, name, location, zones, tags, properties\n\
    | order by id asc";

const MEMBERS: &str = "ComputeResources\n\
    | where type =~ 'microsoft.compute/virtualmachinescalesets/virtualmachines'\n\
    | project id, name, location, zones, tags, sku, properties\n\
    | order by id asc";

const SETS: &str = "Resources\n\
    | where type =~ 'microsoft.compute/virtualmachinescalesets'\n\
    | project id, name, location, tags, sku, properties\n\
    | order by id asc";

#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned", rename_all = "camelCase")]
struct Answer<T> {
    #[serde(default)]
    total_records: Option<u64>,
    #[serde(default)]
    result_truncated: Option<Value>,
    #[serde(rename = "$skipToken", default)]
    skip_token: Option<String>,
    #[serde(default)]
    data: Rows<T>,
}

struct Found<T> {
    rows: Vec<T>,
    seen: u64,
    total: Option<u64>,
    malformed: u64,
    cut: bool,
}

/// A scale set.
#[derive(Debug, Deserialize)]
pub(crate) struct Set {
    pub id: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub location: String,
    #[serde(default)]
    tags: Option<BTreeMap<String, Option<String>>>,
    #[serde(default)]
    sku: Option<SetSku>,
    #[serde(default)]
    properties: Option<SetProperties>,
}

#[derive(Debug, Deserialize)]
struct SetSku {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    capacity: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SetProperties {
    orchestration_mode: Option<String>,
    virtual_machine_profile: Option<SetProfile>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SetProfile {
    priority: Option<String>,
}

impl Set {
    /// What it says for its members.
    pub(crate) fn facts(&self) -> SetFacts {
        let profile = self
            .properties
            .as_ref()
            .and_then(|p| p.virtual_machine_profile.as_ref());
        SetFacts {
            name: self.name.clone(),
            size: self.size().to_owned(),
            priority: profile.and_then(|profile| profile.priority.clone()),
            tags: self
                .tags
                .iter()
                .flatten()
                .map(|(key, value)| (key.clone(), value.clone().unwrap_or_default()))
                .collect(),
        }
    }

    /// Whether its members are listed with the machines, not apart from them.
    pub(crate) fn is_flexible(&self) -> bool {
        let mode = self.properties.as_ref().and_then(|p| p.orchestration_mode.as_deref());
        mode.is_some_and(|mode| mode.eq_ignore_ascii_case("Flexible"))
    }

    /// Whether it may have members that are listed apart from the machines and
    /// have accelerators. A mixed set names its sizes elsewhere: its members
    /// are looked at.
    pub(crate) fn has_own_members(&self) -> bool {
        let size = self.size();
        let may_fit = size.is_empty() || size.eq_ignore_ascii_case("Mix") || sizes::has_accelerators(size);
        may_fit && !self.is_flexible() && self.capacity().is_none_or(|capacity| capacity > 0.0)
    }

    /// Whether it says itself that it has accelerator machines.
    fn is_inhabited(&self) -> bool {
        sizes::has_accelerators(self.size()) && self.capacity().is_some_and(|capacity| capacity > 0.0)
    }

    fn size(&self) -> &str {
        self.sku
            .as_ref()
            .and_then(|sku| sku.name.as_deref())
            .unwrap_or_default()
    }

    fn capacity(&self) -> Option<f64> {
        self.sku.as_ref()?.capacity
    }
}

/// What the index has of a subscription.
pub(crate) struct Indexed {
    pub machines: Vec<Record>,
    /// Sets that say they have accelerator machines, of which the index shows
    /// none: its table of members is young.
    pub doubtful: Vec<Set>,
    /// Whether it shows any machine, and any set: to an identity that may not
    /// read them it shows none, and no error.
    pub shows_machines: bool,
    pub shows_sets: bool,
}

/// Accelerator machines of a subscription, members of uniform sets included.
///
/// # Errors
/// When a query fails or its answer is not whole.
pub(crate) async fn machines(cx: &Context, arm: &Arm, subscription: &str) -> Result<Indexed, CollectError> {
    let mut machines: Vec<Record> = query(cx, arm, subscription, MACHINES).await?;
    let mut sets: Vec<Set> = query(cx, arm, subscription, SETS).await?;
    let (shows_machines, shows_sets) = (!machines.is_empty(), !sets.is_empty());
    if sets.iter().any(Set::has_own_members) {
        let mut members: Vec<Record> = query(cx, arm, subscription, MEMBERS).await?;
        let facts: HashMap<String, SetFacts> = sets.iter().map(|set| (set.id.to_lowercase(), set.facts())).collect();
        let mut shown = HashSet::new();
        for member in &mut members {
            if let Some(id) = set_of_member(&member.id) {
                member.set = facts.get(&id).cloned();
                shown.insert(id);
            }
        }
        sets.retain(|set| set.has_own_members() && set.is_inhabited() && !shown.contains(&set.id.to_lowercase()));
        machines.extend(members);
    } else {
        sets.clear();
    }
    machines.retain(Record::has_accelerators);
    Ok(Indexed {
        machines,
        doubtful: sets,
        shows_machines,
        shows_sets,
    })
}

/// The set of a member, from the member's id.
fn set_of_member(id: &str) -> Option<String> {
    let lower = id.to_lowercase();
    lower
        .rfind("/virtualmachines/")
        .and_then(|at| lower.get(..at))
        .map(str::to_owned)
}

async fn query<T: DeserializeOwned + Send>(
    cx: &Context,
    arm: &Arm,
    subscription: &str,
    query: &str,
) -> Result<Vec<T>, CollectError> {
    let fetch = |token: Option<String>| async move {
        let mut options = json!({"resultFormat": "objectArray", "$top": PAGE_SIZE});
        if let (Some(token), Some(options)) = (token, options.as_object_mut()) {
            options.insert("$skipToken".into(), token.into());
        }
        let body = json!({"subscriptions": [subscription], "query": query, "options": options});
        let path = "/providers/Microsoft.ResourceGraph/resources";
        let mut answer: Answer<T> = arm.post(cx, RESOURCES, path, &body).await?;
        let next = answer.skip_token.take();
        Ok((answer, next))
    };
    let begin = || Found {
        rows: Vec::new(),
        seen: 0,
        total: None,
        malformed: 0,
        cut: false,
    };
    let found = read_all(RESOURCES.call, begin, fetch, |found: &mut Found<T>, page: Answer<T>| {
        let records = page.data.total();
        found.seen += records as u64;
        found.total = page.total_records.or(found.total);
        found.malformed += page.data.bad;
        found.cut = is_cut(page.result_truncated.as_ref()) && page.skip_token.is_none();
        found.rows.extend(page.data.good);
        Progress::all_new(records)
    })
    .await?;
    // Rows can be cut off without a next page, and without a word.
    if found.total.map_or(found.cut, |total| found.seen < total) {
        return Err(CollectError::new(
            Reason::Decode,
            format!("{}: rows are missing and there is no next page", RESOURCES.call.title()),
        ));
    }
    cx.skip("malformed", found.malformed);
    Ok(found.rows)
}

/// `"true"`, or `true`.
fn is_cut(flag: Option<&Value>) -> bool {
    match flag {
        Some(Value::Bool(cut)) => *cut,
        Some(Value::String(text)) => text.eq_ignore_ascii_case("true"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_name_their_set() {
        let id = "/subscriptions/s/resourceGroups/G/providers/Microsoft.Compute/virtualMachineScaleSets/Set/virtualMachines/0";
        assert_eq!(
            set_of_member(id).as_deref(),
            Some("/subscriptions/s/resourcegroups/g/providers/microsoft.compute/virtualmachinescalesets/set")
        );
        assert_eq!(set_of_member("/x"), None);
    }

    #[test]
    fn the_flag_for_missing_rows_is_a_text() {
        assert!(is_cut(Some(&json!("true"))) && is_cut(Some(&json!(true))));
        assert!(!is_cut(Some(&json!("false"))) && !is_cut(None));
    }

    #[test]
    fn a_bare_set_is_uniform_and_may_have_members() {
        let set: Set = serde_json::from_value(json!({"id": "/s"})).unwrap();
        assert!(!set.is_flexible() && set.has_own_members() && !set.is_inhabited());
    }
}
