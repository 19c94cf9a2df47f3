//! Everything that gathers facts by one configuration: the clouds' poll tasks
//! and the readers of telemetry, each fed with what the other finds.

use std::sync::Arc;

use gpuwatch_collector_core::{Accounting, Clock, Collector, Options, Polling, Scheduler};
use gpuwatch_collector_telemetry::{Board, Reader};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// What gathers, until stopped.
#[derive(Debug)]
pub struct Collecting {
    polling: Polling,
    board: Arc<Board>,
    stop: CancellationToken,
    readers: TaskTracker,
}

impl Collecting {
    /// Starts to gather. What an earlier configuration gathered is shown until
    /// it is too old.
    #[must_use]
    pub fn start(
        collectors: Vec<Arc<dyn Collector>>,
        telemetry: Vec<Reader>,
        options: Options,
        clock: &Clock,
        accounting: Accounting,
        earlier: Option<&Self>,
    ) -> Self {
        let board = Board::new(telemetry.iter().map(|reader| reader.options().name.clone()));
        let mut scheduler =
            Scheduler::new(collectors, options, clock.clone(), accounting).with_telemetry(board.telemetry());
        if let Some(earlier) = earlier {
            board.resume(&earlier.board);
            scheduler = scheduler.resume(&earlier.polling);
        }
        let polling = scheduler.start();
        let (stop, readers) = (CancellationToken::new(), TaskTracker::new());
        board.start(telemetry, clock, &polling.snapshots(), None, &stop, &readers);
        Self {
            polling,
            board,
            stop,
            readers,
        }
    }

    /// The clouds' poll tasks.
    #[must_use]
    pub fn polling(&self) -> &Polling {
        &self.polling
    }

    /// Stops to gather.
    pub async fn stop(self) {
        self.stop.cancel();
        self.readers.close();
        self.polling.stop().await;
        self.readers.wait().await;
    }
}
