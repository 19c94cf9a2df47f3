//! The running program: polling, publishing and serving, wired together, and
//! the supervisor that reloads the configuration and stops everything.

mod collecting;
mod supervisor;

use std::{net::SocketAddr, sync::Arc};

use futures::future::BoxFuture;
use gpuwatch_collector_core::{Accounting, Clock, Collector, Options};
use gpuwatch_collector_telemetry::Reader;
use tokio::sync::{mpsc, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use collecting::Collecting;
pub use supervisor::{Refused, Reloader};

use crate::{
    http::{self, listen::ListenError},
    metrics::OwnMetrics,
    publisher::{PublishError, Publisher, Source},
};

/// Reload requests that wait at once; more are told to come back.
const WAITING_RELOADS: usize = 16;

/// What a configuration asks for.
pub struct Plan {
    /// Address to listen on.
    pub listen: String,
    /// One per configured section.
    pub collectors: Vec<Arc<dyn Collector>>,
    /// One per telemetry server.
    pub telemetry: Vec<Reader>,
    /// Timing and limits.
    pub options: Options,
}

/// Loads the configuration anew each time it is called.
pub type Load = Arc<dyn Fn() -> BoxFuture<'static, Result<Plan, Refused>> + Send + Sync>;

/// Why the program could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration has problems.
    #[error(transparent)]
    Configuration(#[from] Refused),
    /// The address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The first page could not be made.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The program's own metrics could not be set up.
    #[error("setting up the program's own metrics failed: {0}")]
    Metrics(#[from] prometheus::Error),
}

/// A running program.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    reloader: Reloader,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// Loads the configuration, listens, and starts polling. `listen` takes the
/// place of the configured address.
///
/// # Errors
/// When the configuration is refused or the address cannot be used.
pub async fn start(load: Load, listen: Option<&str>, clock: Clock) -> Result<Running, StartError> {
    let plan = load().await?;
    let metrics = OwnMetrics::new()?;
    let accounting = Accounting::new(metrics.registry())?;
    let address = listen.unwrap_or(&plan.listen).to_owned();
    let listener = http::listen::bind(&address).await?;
    let bound = listener
        .local_addr()
        .map_err(|source| ListenError::Other { address, source })?;

    let stop = CancellationToken::new();
    let tasks = TaskTracker::new();
    let sections = plan.collectors.len();
    let collecting = Collecting::start(
        plan.collectors,
        plan.telemetry,
        plan.options,
        &clock,
        accounting.clone(),
        None,
    );
    metrics.configuration_loaded(clock.now());
    let (sources, publisher_sources) = watch::channel(Source {
        snapshots: collecting.polling().snapshots(),
        sections,
    });
    let publisher = Publisher::new(metrics.clone(), publisher_sources)?;
    let newest = publisher.published();
    tasks.spawn(publisher.run(stop.clone()));

    let (requests, waiting) = mpsc::channel(WAITING_RELOADS);
    let reloader = Reloader::new(requests);
    let supervisor = supervisor::Supervisor {
        load,
        listen: plan.listen,
        listen_fixed: listen.is_some(),
        clock,
        accounting,
        metrics: metrics.clone(),
        sources,
    };
    tasks.spawn(supervisor.run(collecting, waiting, stop.clone()));

    let app = http::App {
        published: newest,
        metrics,
        reloader: reloader.clone(),
    };
    tasks.spawn(http::listen::serve(listener, http::router(app), stop.clone()));
    tracing::info!(address = %bound, sections, "listening");
    Ok(Running {
        address: bound,
        reloader,
        stop,
        tasks,
    })
}

impl Running {
    /// The address it listens on, with the real port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A handle to reload the configuration.
    #[must_use]
    pub fn reloader(&self) -> Reloader {
        self.reloader.clone()
    }

    /// Stops listening, lets answers in flight finish, stops polling. Takes a
    /// few seconds at most.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
