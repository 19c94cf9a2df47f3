//! What the command line accepts.
#![allow(clippy::doc_markdown, reason = "the comments of arguments are help texts")]

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use gpuwatch_config::ListenAddress;
use gpuwatch_inventory::Provider;

use crate::{filter::Filters, logging::Format};

/// Watches the GPUs that a company rents: what runs and how it is paid for
#[derive(Debug, Parser)]
#[command(
    name = "gpuwatch",
    version,
    propagate_version = false,
    arg_required_else_help = true,
    max_term_width = 120
)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) logging: LoggingArgs,
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Logging (to standard error)")]
pub(super) struct LoggingArgs {
    /// off, error, warn, info, debug or trace; or target=level, comma-separated
    /// [default: info for serve, warn for demo, else error]
    #[arg(
        long,
        global = true,
        value_name = "LEVEL",
        env = "GPUWATCH_LOG",
        hide_env_values = true
    )]
    pub(super) log_level: Option<String>,
    /// How log lines look
    #[arg(long, global = true, value_name = "FORMAT", value_enum, default_value = "auto")]
    pub(super) log_format: Format,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Poll the configured clouds and serve the metrics page
    Serve(ServeArgs),
    /// Try gpuwatch without an account: simulated clouds on this machine, polled by the real collectors
    Demo(DemoArgs),
    /// Check every account and API: what works, what is missing, which permission to add
    Check(CheckArgs),
    /// List the GPU instances of the configured clouds, once
    List(ListArgs),
    /// Show the instance types and GPU models that gpuwatch knows
    Catalog(CatalogArgs),
    /// Describe, write or check the configuration file
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page (read it with: gpuwatch man | man -l -)
    Man,
}

impl Command {
    /// A server tells its life; the demo's output is three lines; a one-shot
    /// command reports its own problems.
    pub(super) fn default_log_level(&self) -> &'static str {
        match self {
            Self::Serve(_) => "info",
            Self::Demo(_) | Self::Config(_) => "warn",
            _ => "error",
        }
    }
}

#[derive(Debug, Clone, Args)]
pub(super) struct ConfigFile {
    /// Configuration file [default: ./gpuwatch.yaml, else /etc/gpuwatch/gpuwatch.yaml]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    #[command(flatten)]
    pub(super) file: ConfigFile,
    /// Address and port to listen on, instead of the configured one
    #[arg(long, value_name = "ADDR")]
    pub(super) listen: Option<ListenAddress>,
}

#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// Number of simulated GPU instances
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(super) instances: usize,
    /// Seed of the simulated fleet; the same seed gives the same fleet
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(super) seed: u64,
    /// Address and port to listen on; port 0 takes any free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9836")]
    pub(super) listen: ListenAddress,
}

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    pub(super) file: ConfigFile,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    pub(super) file: ConfigFile,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) filters: Filters,
}

#[derive(Debug, Args)]
pub(super) struct CatalogArgs {
    /// Show GPU models instead of instance types
    #[arg(long)]
    pub(super) models: bool,
    /// Cloud: aws, gcp, azure, aliyun or tencent; several separated by commas
    #[arg(long, value_name = "CLOUD", value_delimiter = ',', conflicts_with = "models")]
    pub(super) provider: Vec<Provider>,
    /// GPU model, whole words of it, or another name of it; several separated by commas
    #[arg(long, value_name = "MODEL", value_delimiter = ',')]
    pub(super) gpu_model: Vec<String>,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    /// How to print the result
    #[arg(long, short, value_name = "FORMAT", value_enum, default_value = "table")]
    pub(super) output: OutputFormat,
    /// No colours, also on a terminal (NO_COLOR does the same)
    #[arg(long)]
    pub(super) no_color: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    /// Aligned columns for people
    Table,
    /// A list of objects
    Json,
    /// Comma-separated values with a header
    Csv,
}

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Print the JSON schema of the configuration file, for editors
    Schema,
    /// Print a commented example to start from
    Example,
    /// Check the configuration file and print it with every default, secrets hidden
    Show(ConfigFile),
}
