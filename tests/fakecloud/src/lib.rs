//! Simulated clouds on loopback, speaking the real wire formats.
//!
//! Tests run the real collectors against it, and `gpuwatch demo` shows a live
//! fleet without an account anywhere. It checks what the real services check
//! (signatures, parameters, paging tokens), so that a client that is wrong
//! fails here too, and it injects the faults that real services show.
//!
//! Each cloud is a crate of its own; [`FakeCloud`] serves all of them behind
//! one address.

pub use gpuwatch_fakecloud_aliyun as aliyun;
pub use gpuwatch_fakecloud_aws as aws;
pub use gpuwatch_fakecloud_azure as azure;
pub use gpuwatch_fakecloud_core::{CallRecord, FaultId, FaultKind, FaultRule, Faults, Outcome};
pub use gpuwatch_fakecloud_gcp as gcp;
pub use gpuwatch_fakecloud_telemetry::{Options as TelemetryServerOptions, Storage, TelemetryServer};
pub use gpuwatch_fakecloud_tencent as tencent;

pub mod telemetry;

use std::{io, ops::Deref, time::Duration};

use gpuwatch_fakecloud_core::{Server, ServerOptions};

/// What the fake shows and how it behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// Seed of the demo fleets: the same seed gives the same fleets.
    pub seed: u64,
    /// Accelerator instances of each demo fleet, about, over all accounts and
    /// regions of one cloud.
    pub instances: usize,
    /// Added to every call before its answer.
    pub latency: Duration,
    /// Port on 127.0.0.1; 0 takes any free one.
    pub port: u16,
    /// Calls the log keeps; older ones are forgotten.
    pub keep_calls: usize,
    /// The AWS world to serve in place of the demo fleet.
    pub aws: Option<aws::World>,
    /// The Google Cloud world to serve in place of the demo fleet.
    pub gcp: Option<gcp::World>,
    /// The Azure world to serve in place of the demo fleet.
    pub azure: Option<azure::World>,
    /// The Alibaba Cloud world to serve in place of the demo fleet.
    pub aliyun: Option<aliyun::World>,
    /// The Tencent Cloud world to serve in place of the demo fleet.
    pub tencent: Option<tencent::World>,
}

impl Default for Options {
    fn default() -> Self {
        let server = ServerOptions::default();
        Self {
            seed: 1,
            instances: 120,
            latency: server.latency,
            port: server.port,
            keep_calls: server.keep_calls,
            aws: None,
            gcp: None,
            azure: None,
            aliyun: None,
            tencent: None,
        }
    }
}

/// All simulated clouds behind one address; what can be asked of the server
/// ([`Server`]) can be asked of it.
pub struct FakeCloud {
    server: Server,
    aws: aws::World,
    gcp: gcp::World,
    azure: azure::World,
    aliyun: aliyun::World,
    tencent: tencent::World,
}

impl FakeCloud {
    /// Starts to serve on 127.0.0.1.
    ///
    /// # Errors
    /// When the port cannot be bound.
    pub async fn start(options: Options) -> io::Result<Self> {
        let (seed, instances) = (options.seed, options.instances);
        let aws = options.aws.unwrap_or_else(|| aws::World::demo(seed, instances));
        let gcp = options.gcp.unwrap_or_else(|| gcp::World::demo(seed, instances));
        let azure = options.azure.unwrap_or_else(|| azure::World::demo(seed, instances));
        let aliyun = options.aliyun.unwrap_or_else(|| aliyun::World::demo(seed, instances));
        let tencent = options.tencent.unwrap_or_else(|| tencent::World::demo(seed, instances));
        let server_options = ServerOptions {
            latency: options.latency,
            port: options.port,
            keep_calls: options.keep_calls,
        };
        let server = Server::start(
            &server_options,
            // The first that recognises a request answers it. AWS comes last:
            // it takes every form with an action.
            vec![
                Box::new(gcp::Gcp::new(gcp.clone())),
                Box::new(azure::Azure::new(azure.clone())),
                Box::new(aliyun::Aliyun::new(aliyun.clone())),
                Box::new(tencent::Tencent::new(tencent.clone())),
                Box::new(aws::Aws::new(aws.clone())),
            ],
        )
        .await?;
        Ok(Self {
            server,
            aws,
            gcp,
            azure,
            aliyun,
            tencent,
        })
    }

    /// The truth of the AWS side, readable and changeable while it is served.
    #[must_use]
    pub fn aws(&self) -> &aws::World {
        &self.aws
    }

    /// The truth of the Google Cloud side.
    #[must_use]
    pub fn gcp(&self) -> &gcp::World {
        &self.gcp
    }

    /// The truth of the Azure side.
    #[must_use]
    pub fn azure(&self) -> &azure::World {
        &self.azure
    }

    /// The truth of the Alibaba Cloud side.
    #[must_use]
    pub fn aliyun(&self) -> &aliyun::World {
        &self.aliyun
    }

    /// The truth of the Tencent Cloud side.
    #[must_use]
    pub fn tencent(&self) -> &tencent::World {
        &self.tencent
    }

    /// Closes every connection, hanging ones too, and frees the port.
    pub async fn stop(self) {
        self.server.stop().await;
    }
}

impl Deref for FakeCloud {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}
