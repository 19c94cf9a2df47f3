//! Container instances: pods that run without a cluster, each rented by itself.

use gpuwatch_collector_core::{Call, CollectError, Context, Interner, Scope};
use gpuwatch_inventory::{
    Billing, BillingMode, GpuCount, Instance, Kind, Provider, State, Text,
    catalog::{self, AcceleratorFacts},
};
use serde::Deserialize;

use crate::{
    access::AccountAccess,
    api::Action,
    loose,
    pages::{self, PAGE_SIZE, Query, page},
    time,
};

const DESCRIBE_EKS_CONTAINER_INSTANCES: Action = Action::new(
    Call::new(
        "tke",
        "DescribeEKSContainerInstances",
        "tke:DescribeEKSContainerInstances",
    ),
    "2018-05-25",
);

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Container {
    #[serde(deserialize_with = "loose::text")]
    eks_ci_id: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    eks_ci_name: Option<String>,
    #[serde(deserialize_with = "loose::number")]
    gpu_count: Option<f64>,
    #[serde(deserialize_with = "loose::text")]
    gpu_type: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    status: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    creation_time: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    private_ip: Option<String>,
}

page!(ContainersPage, "EksCis": Container, "TotalCount", eks_ci_id);

/// Lists a region's container instances with GPUs that have not ended; none
/// where they are not offered.
///
/// # Errors
/// When the listing is not complete.
pub(crate) async fn list(cx: &Context, access: &AccountAccess, scope: &Scope) -> Result<Vec<Instance>, CollectError> {
    let query = Query {
        access,
        action: DESCRIBE_EKS_CONTAINER_INSTANCES,
        region: &scope.region,
        limit: PAGE_SIZE,
        parameters: &[],
    };
    let ask = pages::list::<ContainersPage>(cx, query);
    let containers: Vec<Container> = access
        .if_present(cx, DESCRIBE_EKS_CONTAINER_INSTANCES, &scope.region, ask)
        .await?;
    let mut interner = Interner::default();
    Ok(containers
        .iter()
        .filter_map(|container| instance(container, scope, &mut interner))
        .collect())
}

fn instance(container: &Container, scope: &Scope, interner: &mut Interner) -> Option<Instance> {
    let spelled = container.gpu_type.as_deref().unwrap_or_default();
    let (share, model) = share_and_model(spelled);
    let count = GpuCount::new(container.gpu_count.unwrap_or(0.0) * share).filter(|count| *count > GpuCount::ZERO);
    if count.is_none() && model.is_empty() {
        return None;
    }
    let state = match container.status.as_deref() {
        Some("Running") => State::Running,
        Some("Pending") => State::Starting,
        Some("Succeeded" | "Failed") => return None,
        _ => State::Unknown,
    };
    let facts = AcceleratorFacts {
        provider: Provider::Tencent,
        instance_type: "",
        vendor: None,
        model,
        count,
        memory_mib: None,
    };
    let mut text = |text: Option<&str>| interner.text(text.unwrap_or_default());
    Some(Instance {
        provider: Provider::Tencent,
        account: scope.account.id.clone(),
        account_name: scope.account.name.clone(),
        region: scope.region.clone(),
        id: container.eks_ci_id.as_deref()?.into(),
        name: text(container.eks_ci_name.as_deref()),
        zone: text(None),
        instance_type: text(None),
        kind: Kind::Vm,
        state,
        accelerators: catalog::builtin().accelerators(&facts),
        launched: container.creation_time.as_deref().and_then(time::parse),
        expires: None,
        auto_renew: None,
        stopped: None,
        owner: Text::default(),
        cluster: Text::default(),
        pool: Text::default(),
        platform: text(None),
        tenancy: text(None),
        reservation_id: text(None),
        private_address: text(container.private_ip.as_deref()),
        private_host: text(None),
        tags: Vec::new(),
        // The answer has no charge type, and spot ones exist.
        billing: Billing::exact(BillingMode::Unknown, ""),
    })
}

/// What part of a card and which model `1/4*T4` or `a10*gnv4` means.
fn share_and_model(spelled: &str) -> (f64, &str) {
    let Some((first, second)) = spelled.split_once('*') else {
        return (1.0, spelled.trim());
    };
    let share = first.split_once('/').and_then(|(part, of)| {
        let (part, of): (f64, f64) = (part.trim().parse().ok()?, of.trim().parse().ok()?);
        (part > 0.0 && of >= part).then_some(part / of)
    });
    match share {
        Some(share) => (share, second.trim()),
        None => (1.0, first.trim()),
    }
}

#[cfg(test)]
mod tests {
    use gpuwatch_collector_core::Account;

    use super::*;

    fn read(text: &str) -> Option<Instance> {
        let scope = Scope {
            provider: Provider::Tencent,
            account: Account {
                id: "100000000001".into(),
                name: "cn".into(),
            },
            region: "ap-guangzhou".into(),
        };
        instance(&serde_json::from_str(text).unwrap(), &scope, &mut Interner::default())
    }

    // P36
    #[test]
    fn gpus_of_containers_are_counted_with_their_fractions() {
        let whole = read(r#"{"EksCiId":"eksci-1","GpuCount":2,"GpuType":"V100","Status":"Running"}"#).unwrap();
        assert_eq!(
            (whole.accelerators.count, whole.state),
            (Some(GpuCount::from(2)), State::Running)
        );
        assert_eq!(whole.billing.mode, BillingMode::Unknown, "no charge type is stated");
        let slice = read(r#"{"EksCiId":"eksci-2","GpuCount":1,"GpuType":"1/4*T4","Status":"Pending"}"#).unwrap();
        assert_eq!(slice.accelerators.count.map(GpuCount::get), Some(0.25));
        assert_eq!((&*slice.accelerators.model, slice.state), ("T4", State::Starting));
        assert_eq!(share_and_model("a10*gnv4"), (1.0, "a10"));
        assert_eq!(share_and_model("0/0*T4"), (1.0, "0/0"));
    }

    #[test]
    fn containers_without_gpus_or_at_their_end_are_not_listed() {
        for text in [
            "{}",
            r#"{"EksCiId":"a","GpuCount":0,"Status":"Running"}"#,
            r#"{"EksCiId":"a","GpuCount":1,"GpuType":"T4","Status":"Succeeded"}"#,
            r#"{"EksCiId":"a","GpuCount":1,"GpuType":"T4","Status":"Failed"}"#,
        ] {
            assert!(read(text).is_none(), "{text}");
        }
    }
}
