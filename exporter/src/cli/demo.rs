//! `demo`: simulated clouds on loopback, polled by the real collectors.

use std::{path::Path, sync::Arc};

use futures::FutureExt as _;
use gpuwatch_fakecloud::{FakeCloud, Storage, TelemetryServer, TelemetryServerOptions, aws, telemetry};

use super::{
    args::DemoArgs,
    error::CliError,
    output, runtime,
    serve::{Signals, start, until_stopped},
};
use crate::{
    demo,
    registry::{self, FixedKeys},
    serve::{Load, Plan, Refused},
};

/// The keys that the simulated AWS accepts; those of the other clouds are in
/// the demo's configuration.
const KEYS: FixedKeys = FixedKeys {
    access_key_id: aws::ACCESS_KEY_ID,
    secret_access_key: aws::SECRET_ACCESS_KEY,
};

/// Calls that the simulation remembers; only tests read them.
const KEPT_CALLS: usize = 100;

pub(super) fn run(args: &DemoArgs) -> Result<(), CliError> {
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let signals = Signals::listen()?;
        let clouds = FakeCloud::start(gpuwatch_fakecloud::Options {
            seed: args.seed,
            instances: args.instances,
            keep_calls: KEPT_CALLS,
            ..gpuwatch_fakecloud::Options::default()
        })
        .await
        .map_err(|error| CliError::failure("the simulated clouds could not start on 127.0.0.1", error))?;
        let exporters = Storage::new(telemetry::hosts(&clouds));
        let telemetry = TelemetryServer::start(exporters, TelemetryServerOptions::default())
            .await
            .map_err(|error| CliError::failure("the simulated telemetry could not start on 127.0.0.1", error))?;
        let running = start(
            load(demo::configuration(&clouds, &telemetry)),
            Some(args.listen.as_str()),
        )
        .await
        .map_err(propose_free_port)?;
        let address = running.address();
        output::print(
            format!(
                "page     http://{address}/\n\
                 metrics  http://{address}/metrics\n\
                 stop     press Ctrl-C\n"
            )
            .as_bytes(),
        )?;
        until_stopped(running, signals).await;
        clouds.stop().await;
        Ok(())
    });
    runtime.shutdown_background();
    outcome
}

fn propose_free_port(error: CliError) -> CliError {
    match error {
        CliError::Failure(text) => CliError::Failure(format!(
            "{text}\nto take any free port: gpuwatch demo --listen 127.0.0.1:0"
        )),
        CliError::Usage(text) => CliError::Usage(text),
    }
}

fn load(configuration: String) -> Load {
    Arc::new(move || {
        let plan = plan(&configuration);
        async move { plan }.boxed()
    })
}

fn plan(configuration: &str) -> Result<Plan, Refused> {
    let loaded = gpuwatch_config::parse(configuration, "demo", &|_| None, Path::new(""))
        .map_err(|errors| Refused::new(errors.problems().iter().map(ToString::to_string).collect()))?;
    registry::plan(&loaded.config, Some(KEYS))
}
