//! `serve`: runs until a signal says otherwise.

use std::{path::PathBuf, sync::Arc, time::Duration};

use futures::FutureExt as _;
use gpuwatch_collector_core::Clock;
use gpuwatch_config::ListenAddress;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{args::ServeArgs, configuration, error::CliError, runtime};
use crate::serve::{self, Load, Running, StartError};

/// How long a graceful stop may take.
const STOP_LIMIT: Duration = Duration::from_millis(4500);

pub(super) fn run(args: &ServeArgs) -> Result<(), CliError> {
    let path = configuration::locate(args.file.config.as_deref())?;
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        // Before anything else: a signal that comes early must not kill.
        let signals = Signals::listen()?;
        let running = start(load_file(path), args.listen.as_ref().map(ListenAddress::as_str)).await?;
        until_stopped(running, signals).await;
        Ok(())
    });
    // Blocking work that is cut off is only the encoding of a page.
    runtime.shutdown_background();
    outcome
}

/// Loads the file away from the threads that serve.
fn load_file(path: PathBuf) -> Load {
    Arc::new(move || {
        let path = path.clone();
        async move {
            match tokio::task::spawn_blocking(move || configuration::load_plan(&path)).await {
                Ok(plan) => plan,
                Err(error) => Err(serve::Refused::new(vec![format!("loading was cut off: {error}")])),
            }
        }
        .boxed()
    })
}

/// Starts the program; a refused configuration is wrong usage.
pub(super) async fn start(load: Load, listen: Option<&str>) -> Result<Running, CliError> {
    serve::start(load, listen, Clock::System)
        .await
        .map_err(|error| match error {
            StartError::Configuration(refused) => configuration::refuse(&refused),
            other => CliError::Failure(other.to_string()),
        })
}

/// The signals that the program answers.
pub(super) struct Signals {
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(super) fn listen() -> Result<Self, CliError> {
        let listen = |kind| signal(kind).map_err(|error| CliError::failure("listening for signals failed", error));
        Ok(Self {
            hangup: listen(SignalKind::hangup())?,
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }
}

/// Reloads on SIGHUP; stops, within five seconds, on SIGTERM or SIGINT.
pub(super) async fn until_stopped(running: Running, mut signals: Signals) {
    let reloader = running.reloader();
    loop {
        tokio::select! {
            Some(()) = signals.hangup.recv() => {
                let reloader = reloader.clone();
                // The outcome is logged and counted where it is decided.
                tokio::spawn(async move { reloader.reload().await });
            }
            _ = signals.terminate.recv() => break,
            _ = signals.interrupt.recv() => break,
        }
    }
    tracing::info!("stopping");
    if tokio::time::timeout(STOP_LIMIT, running.stop()).await.is_err() {
        tracing::warn!("not everything stopped in time");
    }
}
