//! The filters that `list` and every later view share.

use gpuwatch_inventory::{BillingMode, Instance, Provider, State, catalog};

/// Which instances to show. Every given filter must match; of several values
/// of one filter, one must.
#[allow(clippy::doc_markdown, reason = "the comments of arguments are help texts")]
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Filters (repeat or separate by commas for several values)")]
pub struct Filters {
    /// Cloud: aws, gcp, azure, aliyun or tencent
    #[arg(long, value_name = "CLOUD", value_delimiter = ',')]
    pub provider: Vec<Provider>,
    /// Account id or account name
    #[arg(long, value_name = "ACCOUNT", value_delimiter = ',')]
    pub account: Vec<String>,
    /// Region, as the cloud spells it
    #[arg(long, value_name = "REGION", value_delimiter = ',')]
    pub region: Vec<String>,
    /// GPU model, whole words of it (H100 finds every form of the H100), or another name of it
    #[arg(long, value_name = "MODEL", value_delimiter = ',')]
    pub gpu_model: Vec<String>,
    /// How it is paid for: on_demand, reserved, spot or unknown
    #[arg(long, value_name = "MODE", value_delimiter = ',')]
    pub billing_mode: Vec<BillingMode>,
    /// Owner, by the configured owner tags
    #[arg(long, value_name = "OWNER", value_delimiter = ',')]
    pub owner: Vec<String>,
    /// State: running, starting, stopping, stopped, stopped_billed or unknown
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    pub state: Vec<State>,
}

impl Filters {
    /// Whether the instance is to be shown.
    #[must_use]
    pub fn matches(&self, instance: &Instance) -> bool {
        let text = |wanted: &[String], values: &[&str]| {
            wanted.is_empty()
                || wanted
                    .iter()
                    .any(|wanted| values.iter().any(|value| same(wanted, value)))
        };
        (self.provider.is_empty() || self.provider.contains(&instance.provider))
            && text(&self.account, &[&instance.account, &instance.account_name])
            && text(&self.region, &[&instance.region])
            && any_model(&self.gpu_model, &instance.accelerators.model)
            && (self.billing_mode.is_empty() || self.billing_mode.contains(&instance.billing.mode))
            && text(&self.owner, &[&instance.owner])
            && (self.state.is_empty() || self.state.contains(&instance.state))
    }
}

/// Whether one of the wanted models (none means any) is this one.
#[must_use]
pub fn any_model(wanted: &[String], model: &str) -> bool {
    wanted.is_empty() || wanted.iter().any(|wanted| is_model(wanted, model))
}

/// By the words of the name, so that `L4` does not find an L40S; or by
/// another name that the catalogue knows for the model.
fn is_model(wanted: &str, model: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    let (wanted_words, model_words) = (words(wanted), words(model));
    if wanted_words.is_empty() {
        return same(wanted, model);
    }
    model_words
        .windows(wanted_words.len())
        .any(|window| window == wanted_words)
        || catalog::builtin()
            .model(wanted, None)
            .is_some_and(|known| &*known.model == model)
}

fn same(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_found_by_whole_words_or_by_another_name() {
        for (wanted, model) in [
            ("h100", "H100 80GB SXM"),
            ("H100 NVL", "H100 NVL 94GB"),
            ("L4", "L4"),
            ("nvidia-tesla-k80", "K80"),
            ("910b", "Ascend 910B"),
        ] {
            assert!(is_model(wanted, model), "{wanted} should find {model}");
        }
        for (wanted, model) in [
            ("L4", "L40S"),
            ("A10", "A100 40GB"),
            ("H100 PCIe", "H100 80GB SXM"),
            ("H100", ""),
        ] {
            assert!(!is_model(wanted, model), "{wanted} should not find {model}");
        }
    }
}
