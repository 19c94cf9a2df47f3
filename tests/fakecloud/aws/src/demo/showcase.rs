//! One of each thing that a collector must get right.

use super::{Demo, INFERENCE, PLATFORM, RESEARCH};
use crate::world::{InstanceSpec, InstanceState, Lifecycle, Platform};
use gpuwatch_fakecloud_core::fleet::HOSTILE_TEXTS;

impl Demo {
    pub(super) fn showcase(&mut self) {
        self.odd_types();
        self.odd_states();
        self.owned_by_programs();
        for text in HOSTILE_TEXTS {
            let spec = InstanceSpec::of("g4dn.xlarge")
                .tag("Name", text)
                .tag("team", text)
                .tag(text, "value");
            self.launch(RESEARCH, "us-east-1", spec);
        }
    }

    fn odd_types(&mut self) {
        for name in ["g6f.large", "g6f.2xlarge", "g6f.4xlarge", "gr6f.4xlarge"] {
            self.launch(
                INFERENCE,
                "ap-southeast-1",
                InstanceSpec::of(name).tag("team", "video-render"),
            );
        }
        for name in [
            "trn1.32xlarge",
            "trn2.48xlarge",
            "trn2u.48xlarge",
            "inf1.6xlarge",
            "inf2.24xlarge",
        ] {
            self.launch(
                RESEARCH,
                "us-west-2",
                InstanceSpec::of(name).tag("team", "llm-pretraining"),
            );
        }
        // No longer sold, or newer than any catalogue, or than the type API.
        for name in [
            "dl1.24xlarge",
            "dl2q.24xlarge",
            "p3.8xlarge",
            "g4ad.4xlarge",
            "vt1.6xlarge",
            "g5g.2xlarge",
        ] {
            self.launch(PLATFORM, "us-east-1", InstanceSpec::of(name).tag("team", "speech"));
        }
        for name in ["p9.48xlarge", "g99.48xlarge"] {
            self.launch(
                RESEARCH,
                "us-east-2",
                InstanceSpec::of(name).tag("team", "llm-pretraining"),
            );
        }
        for platform in [Platform::Windows, Platform::RedHat, Platform::Suse] {
            let spec = InstanceSpec {
                platform,
                ..InstanceSpec::of("g5.4xlarge")
            };
            self.launch(INFERENCE, "eu-central-1", spec.tag("team", "video-render"));
        }
        let dedicated = InstanceSpec {
            tenancy: "dedicated".to_owned(),
            ..InstanceSpec::of("g5.8xlarge")
        };
        self.launch(PLATFORM, "us-east-2", dedicated);
    }

    fn odd_states(&mut self) {
        for (name, days) in [("p4d.24xlarge", 9), ("g5.12xlarge", 41), ("g4dn.xlarge", 3)] {
            let id = self.launch(RESEARCH, "us-east-1", InstanceSpec::of(name).tag("team", "speech"));
            self.world.stop(&id, self.ago(24 * days));
        }
        for state in [
            InstanceState::Pending,
            InstanceState::Stopping,
            InstanceState::ShuttingDown,
        ] {
            self.launch(
                INFERENCE,
                "ap-northeast-1",
                InstanceSpec {
                    state,
                    ..InstanceSpec::of("g6.xlarge")
                },
            );
        }
        for _ in 0..2 {
            let id = self.launch(INFERENCE, "ap-northeast-1", InstanceSpec::of("g6.xlarge"));
            self.world.terminate(&id, self.now);
        }
        let spot = InstanceSpec {
            lifecycle: Lifecycle::Spot,
            ..InstanceSpec::of("g5.xlarge")
        };
        for name in ["g5.xlarge", "p4d.24xlarge"] {
            let spec = InstanceSpec {
                instance_type: name.to_owned(),
                ..spot.clone()
            };
            self.launch(RESEARCH, "us-west-2", spec.tag("team", "llm-pretraining"));
        }
    }

    fn owned_by_programs(&mut self) {
        let tagged = |tags: &[(&str, &str)]| {
            tags.iter().fold(InstanceSpec::of("g6.12xlarge"), |spec, (key, value)| {
                spec.tag(key, value)
            })
        };
        for spec in [
            tagged(&[
                ("eks:cluster-name", "serving"),
                ("eks:nodegroup-name", "gpu"),
                ("kubernetes.io/cluster/serving", "owned"),
            ]),
            tagged(&[
                ("karpenter.sh/nodepool", "gpu"),
                ("karpenter.sh/nodeclaim", "gpu-x7k2p"),
                ("kubernetes.io/cluster/训练集群", "owned"),
            ]),
            tagged(&[("aws:autoscaling:groupName", "render-asg"), ("team", "video-render")]),
            tagged(&[
                ("parallelcluster:cluster-name", "hpc"),
                ("parallelcluster:queue-name", "gpu"),
            ]),
            tagged(&[("AWSBatchServiceTag", "batch"), ("aws:ec2:fleet-id", "fleet-0example")]),
        ] {
            self.launch(INFERENCE, "eu-central-1", spec);
        }
        for principal in ["eks.amazonaws.com", "ecs.amazonaws.com"] {
            let spec = tagged(&[("eks:eks-cluster-name", "auto")]);
            self.launch(
                PLATFORM,
                "us-east-1",
                InstanceSpec {
                    managed_by: Some(principal.to_owned()),
                    ..spec
                },
            );
        }
    }
}
