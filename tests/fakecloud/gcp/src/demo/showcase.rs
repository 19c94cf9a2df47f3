//! One of each thing that a collector must get right.

use gpuwatch_fakecloud_core::fleet::HOSTILE_TEXTS;

use super::{Demo, INFERENCE, PLATFORM, RESEARCH};
use crate::world::{InstanceSpec, Provisioning, Status, TpuSpec};

impl Demo {
    pub(super) fn showcase(&mut self) {
        self.states();
        self.purchases();
        self.odd_types();
        self.owned_by_programs();
        self.nodes();
    }

    /// Every state, of machines that have accelerators.
    pub(super) fn states(&mut self) {
        for (number, status) in [
            Status::Pending,
            Status::Provisioning,
            Status::Staging,
            Status::Running,
            Status::Repairing,
            Status::PendingStop,
            Status::Stopping,
            Status::Deprovisioning,
            Status::Stopped,
            Status::Terminated,
            Status::Suspending,
            Status::Suspended,
        ]
        .into_iter()
        .enumerate()
        {
            let stopped = matches!(status, Status::Stopped | Status::Terminated | Status::Suspended);
            let spec = InstanceSpec {
                never_started: status == Status::Pending,
                stopped: stopped.then(|| self.ago(24 * 9)),
                ..InstanceSpec::of("g2-standard-4")
            };
            let spec = spec.named(&format!("state-{number}")).in_state(status);
            self.launch(PLATFORM, "us-east4-c", spec.label("team", "speech"));
        }
    }

    /// Every way to buy a machine.
    pub(super) fn purchases(&mut self) {
        for (number, provisioning) in [
            Provisioning::Standard,
            Provisioning::Unset,
            Provisioning::Spot,
            Provisioning::LegacyPreemptible,
            Provisioning::FlexStart,
            Provisioning::ReservationBound,
            Provisioning::Other("BRAND_NEW_MODEL"),
        ]
        .into_iter()
        .enumerate()
        {
            let flex = provisioning == Provisioning::FlexStart;
            let spec = InstanceSpec {
                max_run_seconds: flex.then_some(7 * 86_400),
                ..InstanceSpec::of("a2-highgpu-1g")
            };
            let spec = spec.named(&format!("bought-{number}")).bought(provisioning);
            self.launch(RESEARCH, "us-central1-b", spec.label("team", "llm-pretraining"));
        }
        let waiting = InstanceSpec::of("a3-highgpu-8g").named("waits-for-capacity");
        let waiting = InstanceSpec {
            never_started: true,
            max_run_seconds: Some(3 * 86_400),
            ..waiting.bought(Provisioning::FlexStart).in_state(Status::Pending)
        };
        self.launch(RESEARCH, "us-central1-b", waiting);
        let tenant = InstanceSpec {
            node_group: Some("licences".to_owned()),
            ..InstanceSpec::of("n1-standard-32").attached("nvidia-tesla-p100", 2)
        };
        self.launch(PLATFORM, "us-west1-b", tenant.named("sole-tenant"));
    }

    pub(super) fn odd_types(&mut self) {
        for name in ["g4-standard-6", "g4-standard-12", "g4-standard-24", "g4-standard-48"] {
            let spec = InstanceSpec::of(name).named(&format!("render-{name}"));
            self.launch(INFERENCE, "asia-southeast1-b", spec.label("team", "video-render"));
        }
        for name in [
            // No list of accelerators in the record: the type says it.
            "a3-ultragpu-8g",
            "a4-highgpu-8g",
            // Newer than any catalogue, and newer than the type API.
            "a9-futuregpu-8g",
            "a4x-futuregpu-16g",
            "ct6e-standard-8t",
        ] {
            let spec = InstanceSpec {
                accelerators: Some(Vec::new()),
                ..InstanceSpec::of(name)
            };
            let spec = spec.named(&format!("odd-{name}"));
            self.launch(RESEARCH, "us-central1-a", spec.label("team", "llm-pretraining"));
        }
        let custom = InstanceSpec::of("n1-custom-8-30720").attached("nvidia-tesla-t4", 1);
        self.launch(PLATFORM, "us-west1-b", custom.named("custom-with-t4"));
        let station = InstanceSpec {
            windows: true,
            ..InstanceSpec::of("n1-standard-8").attached("nvidia-tesla-t4-vws", 1)
        };
        self.launch(PLATFORM, "us-west1-b", station.named("workstation"));
        let public = InstanceSpec {
            public_ip: Some("203.0.113.7".to_owned()),
            ..InstanceSpec::of("a2-megagpu-16g")
        };
        self.launch(PLATFORM, "us-west1-b", public.named("with-public-address"));
    }

    pub(super) fn owned_by_programs(&mut self) {
        for number in 0..3 {
            let pool = InstanceSpec {
                instance_group: Some("gke-train-l4-pool-0af3".to_owned()),
                ..InstanceSpec::of("g2-standard-48")
            };
            let pool = pool
                .named(&format!("gke-train-l4-pool-0af3-{number}"))
                .label("goog-k8s-cluster-name", "train")
                .label("goog-k8s-node-pool-name", "l4-pool")
                .label("goog-k8s-cluster-location", "europe-west4")
                .label("goog-gke-node", "");
            self.launch(RESEARCH, "europe-west4-a", pool);
        }
        let tpu_pool = InstanceSpec::of("ct5lp-hightpu-4t")
            .named("gke-train-tpu-pool-77aa-0")
            .label("goog-k8s-cluster-name", "train")
            .label("goog-k8s-node-pool-name", "tpu-pool")
            .label("goog-gke-node", "");
        self.launch(RESEARCH, "europe-west4-a", tpu_pool);
        let group = InstanceSpec {
            instance_group: Some("ranker-serving".to_owned()),
            ..InstanceSpec::of("g2-standard-12")
        };
        self.launch(INFERENCE, "asia-northeast1-a", group.named("ranker-serving-x1k9"));
        let batch = InstanceSpec::of("a2-highgpu-4g")
            .named("sweep-group0-0-8xqd")
            .label("batch-job-id", "sweep")
            .label("goog-batch-worker", "true");
        self.launch(RESEARCH, "us-central1-a", batch.bought(Provisioning::Spot));
        let slurm = InstanceSpec::of("a3-megagpu-8g")
            .named("slurm-a3-0")
            .label("slurm_cluster_name", "hpc")
            .label("ghpc_role", "compute");
        self.launch(RESEARCH, "us-central1-a", slurm);
        let notebook = InstanceSpec {
            metadata: vec![("proxy-url".to_owned(), "x-dot-us-west1.notebooks.example".to_owned())],
            ..InstanceSpec::of("n1-standard-4").attached("nvidia-tesla-t4", 1)
        };
        let notebook = notebook
            .named("workbench-mei")
            .label("notebooks-product", "workbench-instances");
        self.launch(PLATFORM, "us-west1-b", notebook);
    }

    /// TPU nodes: generations, purchases and states.
    fn nodes(&mut self) {
        let node = |name: &str, accelerator_type: &str| TpuSpec::of(accelerator_type).named(name);
        let specs = [
            node("v5e-train", "v5litepod-16").shaped("V5LITE_POD", "4x4"),
            TpuSpec {
                spot: true,
                ..node("v6e-sweep", "v6e-8")
            },
            TpuSpec {
                preemptible: true,
                ..node("v4-old", "v4-8")
            },
            TpuSpec {
                reserved: true,
                hosts: 4,
                ..node("v5p-reserved", "v5p-32").shaped("V5P", "2x2x4")
            },
            TpuSpec {
                state: "STOPPED".to_owned(),
                ..node("v3-stopped", "v3-8")
            },
            TpuSpec {
                state: "CREATING".to_owned(),
                ..node("v6e-coming", "v6e-4")
            },
            node("newer-than-known", "v99-8"),
        ];
        for spec in specs {
            let spec = TpuSpec {
                created: Some(self.launch_time()),
                ..spec
            };
            let spec = spec.label("team", "llm-pretraining").label("owner", "王小明");
            self.world.add_tpu(RESEARCH, "us-east5-a", spec);
        }
    }

    /// Texts that Google itself refuses in names and labels; a program has to
    /// survive whatever an answer holds.
    pub(super) fn hostile(&mut self) {
        for text in HOSTILE_TEXTS {
            let spec = InstanceSpec::of("g2-standard-4").named(text);
            let spec = spec.label("team", text).label("owner", text).label(text, "value");
            self.launch(RESEARCH, "us-central1-a", spec);
        }
    }
}
