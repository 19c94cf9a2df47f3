//! Currencies and prices.

use std::{collections::BTreeMap, path::PathBuf};

use gpuwatch_inventory::Provider;
use rust_decimal::Decimal;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{
    CurrencyCode, Percent, Rate,
    check::Check,
    yaml::{Checks, Spot},
};

/// The report's currency and what others are worth in it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CurrencySection {
    /// The currency that reports convert to.
    pub report: CurrencyCode,
    /// Units of a currency per one unit of the report currency. Amounts in a
    /// currency without a rate stay in it and are not added.
    pub rates: BTreeMap<CurrencyCode, Rate>,
}

impl Check for CurrencySection {
    fn check(&mut self, spot: &Spot<'_>, checks: &Checks<'_>) {
        let own = self.rates.get(&self.report).filter(|rate| rate.get() != Decimal::ONE);
        if own.is_some() {
            let spot = spot.key("rates").key(&self.report.to_string());
            checks.problem(
                &spot,
                "a rate of the report currency to itself",
                "remove it: it is always 1",
            );
        }
    }
}

/// Prices that no public list knows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PricesSection {
    /// Negotiated discounts; the first that matches counts.
    pub discounts: Vec<Discount>,
    /// A CSV file with prices, for regions whose list is not public.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}

/// A discount on list prices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Discount {
    /// The cloud that grants it.
    #[schemars(schema_with = "provider_schema")]
    pub provider: Provider,
    /// Instance types it holds for; `*` stands for any characters.
    #[serde(rename = "match", default = "any")]
    pub pattern: String,
    /// Percent off the list price.
    pub percent: Percent,
}

fn any() -> String {
    "*".to_owned()
}

fn provider_schema(_: &mut SchemaGenerator) -> Schema {
    let words: Vec<&str> = Provider::ALL.iter().map(|provider| provider.as_str()).collect();
    json_schema!({ "type": "string", "enum": words })
}

impl Check for PricesSection {
    fn check(&mut self, spot: &Spot<'_>, checks: &Checks<'_>) {
        let discounts = spot.key("discounts");
        for (index, discount) in self.discounts.iter().enumerate() {
            if discount.pattern.trim().is_empty() {
                let fix = "write a pattern such as p5.*, or remove the key for every type";
                checks.problem(&discounts.item(index).key("match"), "an empty pattern", fix);
            }
        }
        checks.file(&spot.key("file"), self.file.as_mut());
    }
}
