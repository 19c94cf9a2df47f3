//! The configuration of the demo: every cloud this program was built with, as
//! simulated by [`gpuwatch_fakecloud`].

use gpuwatch_fakecloud::{FakeCloud, TelemetryServer, aliyun, azure, tencent};
use gpuwatch_inventory::Provider;

use crate::registry;

/// A configuration for simulated clouds and their telemetry; a file like any
/// other, but that AWS has no keys in it (see [`registry::FixedKeys`]).
#[must_use]
pub fn configuration(clouds: &FakeCloud, telemetry: &TelemetryServer) -> String {
    let sections = Provider::ALL
        .iter()
        .filter(|provider| registry::is_built_in(**provider))
        .map(|provider| section(*provider, clouds));
    format!(
        "providers:\n{}telemetry:\n  - {{name: demo, prometheus_url: \"{}\"}}\n\
         intervals: {{inventory: 5s, usage: 15s, commitments: 10s}}\n",
        sections.collect::<String>(),
        telemetry.url()
    )
}

/// The section of one cloud under `providers`: all of its accounts.
#[must_use]
pub fn section(provider: Provider, clouds: &FakeCloud) -> String {
    let settings = match provider {
        Provider::Aws => "organization: true\n".to_owned(),
        Provider::Gcp => "anonymous: true\n".to_owned(),
        Provider::Azure => format!("access_token: {}\n", azure::ACCESS_TOKEN),
        Provider::Aliyun => format!(
            "access_key_id: {}\n      access_key_secret: {}\n      {}",
            aliyun::ACCESS_KEY_ID,
            aliyun::ACCESS_KEY_SECRET,
            assume_roles(&other_accounts(provider, clouds))
        ),
        Provider::Tencent => format!(
            "secret_id: {}\n      secret_key: {}\n      {}",
            tencent::SECRET_ID,
            tencent::SECRET_KEY,
            assume_roles(&other_accounts(provider, clouds))
        ),
    };
    let url = clouds.url();
    format!("  {provider}:\n    - name: demo\n      endpoint_url: {url}\n      {settings}")
}

/// Roles in the accounts beside the one that the keys belong to, for clouds
/// that do not list accounts.
#[must_use]
pub fn other_accounts(provider: Provider, clouds: &FakeCloud) -> Vec<String> {
    match provider {
        Provider::Aliyun => {
            let own = clouds.aliyun().base_account();
            let accounts = clouds.aliyun().accounts().into_iter();
            accounts
                .filter(|account| account.uid != own)
                .map(|account| account.role_arn)
                .collect()
        }
        Provider::Tencent => clouds.tencent().role_arns(),
        Provider::Aws | Provider::Gcp | Provider::Azure => Vec::new(),
    }
}

fn assume_roles(roles: &[String]) -> String {
    let quoted = roles.iter().map(|role| format!("\"{role}\""));
    let all: Vec<String> = std::iter::once("self".to_owned()).chain(quoted).collect();
    format!("assume_roles: [{}]\n", all.join(", "))
}
