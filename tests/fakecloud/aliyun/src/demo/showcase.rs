//! One of each thing that a collector must get right.

use super::{Demo, OVERSEAS, PLATFORM, TRAINING};
use crate::world::{Charge, InstanceSpec, Renewal, Status, StoppedMode};
use gpuwatch_fakecloud_core::fleet::HOSTILE_TEXTS;

impl Demo {
    pub(super) fn showcase(&mut self) {
        self.odd_types();
        self.odd_states();
        self.every_charge();
        self.owned_by_programs();
        for text in HOSTILE_TEXTS {
            let spec = InstanceSpec::of("ecs.gn6i-c4g1.xlarge").named(text).tag("team", text);
            self.create(PLATFORM, "cn-hangzhou", spec.tag(text, "value"));
        }
    }

    /// Slices of cards, bare metal, old and withdrawn families, and families
    /// that are newer than any catalogue.
    fn odd_types(&mut self) {
        for name in [
            "ecs.vgn6i-m4-vws.xlarge",
            "ecs.vgn6i-m8-vws.2xlarge",
            "ecs.vgn7i-vws-m4.xlarge",
            "ecs.vgn7i-vws-m24.7xlarge",
            "ecs.sgn7i-vws-m2.xlarge",
            "ecs.sgn7i-vws-m8s.4xlarge",
            "ecs.sgn8ia-m2.xlarge",
            "ecs.sgn8ia-m24.12xlarge",
        ] {
            self.create(
                PLATFORM,
                "cn-shanghai",
                InstanceSpec::of(name).tag("team", "video-render"),
            );
        }
        for name in [
            "ecs.ebmgn9g.64xlarge",
            "ecs.gn9gc-8x.64xlarge",
            "ecs.gn7r-c16g1.4xlarge",
            "ecs.gn7s-c8g1.2xlarge",
            "ecs.sccgn7ex.32xlarge",
            "ecs.gn5i-c2g1.large",
            "ecs.gn8v-tee.4xlarge",
        ] {
            self.create(TRAINING, "cn-beijing", InstanceSpec::of(name).tag("team", "推荐算法"));
        }
        // Known to nobody; told by the instance; told by the type API only.
        let unknown = InstanceSpec::of("ecs.gn11q-c16g2.8xlarge").tag("team", "llm-pretraining");
        self.create(TRAINING, "cn-wulanchabu", unknown.clone());
        let stated = InstanceSpec {
            stated_gpus: Some((2, "NVIDIA X1000".to_owned())),
            ..unknown
        };
        self.create(TRAINING, "cn-wulanchabu", stated);
        for (name, hide_gpus) in [
            ("ecs.gn10x-c32g4.32xlarge", true),
            ("ecs.gn10x-c32g4.32xlarge", false),
            ("ecs.gn7i-c8g1.2xlarge", true),
            ("ecs.sgn7i-vws-m4.2xlarge", true),
        ] {
            let spec = InstanceSpec {
                hide_gpus,
                ..InstanceSpec::of(name)
            };
            self.create(TRAINING, "cn-wulanchabu", spec);
        }
        let dedicated = InstanceSpec {
            dedicated_host: Some("dh-bp1fakecloud".to_owned()),
            os_type: "windows".to_owned(),
            ..InstanceSpec::of("ecs.gn6i-c4g1.xlarge")
        };
        self.create(PLATFORM, "cn-shanghai", dedicated.tag("owner", "韩梅梅"));
    }

    fn odd_states(&mut self) {
        let spec = InstanceSpec::of("ecs.gn7e-c16g1.4xlarge").tag("team", "speech");
        for mode in [
            StoppedMode::KeepCharging,
            StoppedMode::StopCharging,
            StoppedMode::NotApplicable,
        ] {
            self.create(OVERSEAS, "ap-southeast-1", spec.clone().stopped(mode));
            let prepaid = InstanceSpec {
                charge: Charge::PrePaid,
                ..spec.clone()
            };
            self.create(OVERSEAS, "ap-southeast-1", prepaid.stopped(mode));
        }
        for status in [Status::Pending, Status::Starting, Status::Stopping] {
            let spec = InstanceSpec { status, ..spec.clone() };
            self.create(OVERSEAS, "us-west-1", spec);
        }
    }

    fn every_charge(&mut self) {
        for charge in [
            Charge::PostPaid,
            Charge::PrePaid,
            Charge::SpotWithPriceLimit,
            Charge::SpotAsPriceGo,
        ] {
            let spec = InstanceSpec {
                charge,
                ..InstanceSpec::of("ecs.gn8is.4xlarge")
            };
            self.create(PLATFORM, "cn-shanghai-finance-1", spec.named("训练 节点~*'()+/=&%"));
        }
        for (renewal, days) in [
            (Renewal::AutoRenewal, 5),
            (Renewal::Normal, 3),
            (Renewal::NotRenewal, 1),
        ] {
            let spec = InstanceSpec {
                charge: Charge::PrePaid,
                renewal,
                expires: Some(self.ago(-24 * days)),
                ..InstanceSpec::of("ecs.gn7i-c32g1.32xlarge")
            };
            self.create(
                PLATFORM,
                "cn-hangzhou",
                spec.tag("team", "自动驾驶感知").tag("owner", "李雷"),
            );
        }
        let going = InstanceSpec {
            charge: Charge::SpotAsPriceGo,
            locks: vec!["Recycling".to_owned()],
            ..InstanceSpec::of("ecs.gn7i-c8g1.2xlarge")
        };
        self.create(TRAINING, "cn-beijing", going);
        let overdue = InstanceSpec {
            locks: vec!["financial".to_owned()],
            ..InstanceSpec::of("ecs.gn6i-c4g1.xlarge").stopped(StoppedMode::StopCharging)
        };
        self.create(TRAINING, "cn-beijing", overdue);
    }

    fn owned_by_programs(&mut self) {
        let tagged = |tags: &[(&str, &str)]| {
            let spec = InstanceSpec::of("ecs.gn7i-c32g1.8xlarge");
            tags.iter().fold(spec, |spec, (key, value)| spec.tag(key, value))
        };
        for spec in [
            tagged(&[
                ("ack.aliyun.com", "c0a1b2c3d4e5f"),
                ("ack.alibabacloud.com/nodepool-id", "np-gpu"),
            ]),
            tagged(&[
                ("ack.aliyun.com", "训练集群"),
                ("team", "推荐算法"),
                ("owner", "王小明"),
            ]),
            tagged(&[
                ("acs:autoscaling:scalingGroupId", "asg-bp1render"),
                ("team", "video-render"),
            ]),
        ] {
            self.create(PLATFORM, "cn-hangzhou", spec);
        }
    }
}
