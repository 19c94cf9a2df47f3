//! The configuration file `gpuwatch.yaml`: schema, loading, validation with
//! line numbers, secrets.
//!
//! [`load`] reads a file and [`parse`] a text. Either returns the whole
//! [`Config`], valid throughout, or every problem that was found, each with
//! file, line, column, key and a way to mend it. `${VAR}` and
//! `${VAR:-default}` expand inside single values; every secret also has a
//! `*_file` form; relative paths start from the file's own folder.

mod budgets;
mod check;
mod config;
mod error;
mod findings;
mod history;
mod labels;
mod load;
mod money;
pub mod providers;
mod remote;
mod report;
mod schema;
mod show;
mod telemetry;
mod timing;
mod values;
mod yaml;

pub use budgets::{Budgets, ProviderBudgets};
pub use config::Config;
pub use error::{ConfigErrors, Invalid, Problem};
pub use findings::{FINDINGS, FindingsSection};
pub use history::{HistorySection, HistoryStore};
pub use labels::LabelsSection;
pub use load::{Loaded, load, parse};
pub use money::{CurrencySection, Discount, PricesSection};
pub use providers::{
    AliyunSection, AssumeRole, AwsSection, AzureSection, GcpSection, Partition, Providers, Regions, TencentSection,
    TypeFilter,
};
pub use remote::{BasicAuth, ClientTls, Remote};
pub use report::{ReportSection, Route, Smtp, SmtpTls};
pub use schema::schema_json;
pub use show::show;
pub use telemetry::TelemetrySection;
pub use timing::{DATASETS, DatasetPeriods, Intervals};
pub use values::{
    Amount, CurrencyCode, Factor, HttpUrl, LabelMatcher, Language, ListenAddress, Mailbox, Name, Percent, Period, Rate,
    Ratio, Schedule, Secret, Zone,
};

/// A commented configuration with every key. As it stands it holds nothing
/// but defaults.
pub const EXAMPLE: &str = include_str!("../gpuwatch.example.yaml");
