//! Reservations and commitments, used in part.

use super::{Demo, INFERENCE, RESEARCH};
use crate::world::{
    CommitmentResource, CommitmentSpec, FutureReservationSpec, InstanceSpec, Provisioning, ReservationSpec,
};

impl Demo {
    pub(super) fn capacity(&mut self) {
        self.committed();
        self.kept_free();
        self.shared();
        self.over();
    }

    /// A commitment, and the reservation attached to it: six of eight in use.
    fn committed(&mut self) {
        let commitment = CommitmentSpec {
            name: "h100-three-years".to_owned(),
            plan: "THIRTY_SIX_MONTH".to_owned(),
            auto_renew: true,
            resources: vec![
                CommitmentResource::accelerators("nvidia-h100-80gb", 64),
                CommitmentResource::of("VCPU", 1_664),
                CommitmentResource::of("MEMORY", 15_335_424),
                CommitmentResource::of("LOCAL_SSD", 48_000),
            ],
            ..CommitmentSpec::default()
        };
        let commitment = self.world.add_commitment(RESEARCH, "europe-west4", commitment);
        let reservation = ReservationSpec {
            name: "h100-committed".to_owned(),
            commitment,
            specific: true,
            ..ReservationSpec::of("a3-highgpu-8g", 8)
        };
        self.filled(RESEARCH, "europe-west4-b", reservation, "a3-highgpu-8g", 6, RESEARCH);
    }

    /// A reservation at the on-demand price, and one that was bought for fixed
    /// dates, which only machines bound to it can use.
    fn kept_free(&mut self) {
        let open = ReservationSpec {
            name: "l4-peak".to_owned(),
            used_elsewhere: 1,
            ..ReservationSpec::of("g2-standard-96", 5)
        };
        self.filled(INFERENCE, "asia-southeast1-b", open, "g2-standard-96", 2, INFERENCE);
        let bound = ReservationSpec {
            name: "b200-dense".to_owned(),
            specific: true,
            delete_at: Some(self.now + jiff::SignedDuration::from_hours(24 * 20)),
            ..ReservationSpec::of("a4-highgpu-8g", 4)
        };
        let bound = self.world.add_reservation(RESEARCH, "us-central1-b", bound);
        for (name, status, reservations) in [
            ("b200-sprint", "FULFILLED", bound.iter().cloned().collect()),
            ("b200-next-quarter", "APPROVED", Vec::new()),
        ] {
            let spec = FutureReservationSpec {
                name: name.to_owned(),
                machine_type: "a4-highgpu-8g".to_owned(),
                count: 4,
                status: status.to_owned(),
                reservations,
                ..FutureReservationSpec::default()
            };
            self.world.add_future_reservation(RESEARCH, "us-central1-b", spec);
        }
        for number in 0..3 {
            let spec = InstanceSpec {
                reservation: bound.clone(),
                ..InstanceSpec::of("a4-highgpu-8g")
            };
            let spec = spec.named(&format!("dense-{number}")).label("team", "llm-pretraining");
            self.launch(RESEARCH, "us-central1-b", spec.bought(Provisioning::ReservationBound));
        }
    }

    /// A reservation that another project uses too.
    fn shared(&mut self) {
        let shared = ReservationSpec {
            name: "t4-shared".to_owned(),
            accelerators: vec![("nvidia-tesla-t4".to_owned(), 1)],
            shared_with: vec![RESEARCH.to_owned()],
            ..ReservationSpec::of("n1-standard-8", 3)
        };
        let id = self.world.add_reservation(INFERENCE, "asia-east1-c", shared);
        let spec = InstanceSpec {
            reservation: id,
            ..InstanceSpec::of("n1-standard-8").attached("nvidia-tesla-t4", 1)
        };
        self.launch(RESEARCH, "asia-east1-c", spec.named("borrows-a-place"));
    }

    /// What is no longer, or not yet, in force; and machines without
    /// accelerators.
    fn over(&mut self) {
        for (name, status) in [("expired", "EXPIRED"), ("coming", "NOT_YET_ACTIVE")] {
            let spec = CommitmentSpec {
                name: name.to_owned(),
                status: status.to_owned(),
                ..CommitmentSpec::default()
            };
            self.world.add_commitment(RESEARCH, "us-central1", spec);
        }
        let plain = CommitmentSpec {
            name: "general-purpose".to_owned(),
            commitment_type: "GENERAL_PURPOSE_N2".to_owned(),
            resources: vec![
                CommitmentResource::of("VCPU", 64),
                CommitmentResource::of("MEMORY", 262_144),
            ],
            ..CommitmentSpec::default()
        };
        self.world.add_commitment(RESEARCH, "us-central1", plain);
        let deleting = ReservationSpec {
            name: "going".to_owned(),
            status: "DELETING".to_owned(),
            ..ReservationSpec::of("a2-highgpu-8g", 2)
        };
        self.world.add_reservation(RESEARCH, "us-central1-a", deleting);
        let cpu = ReservationSpec {
            name: "web".to_owned(),
            ..ReservationSpec::of("n2-standard-8", 10)
        };
        self.world.add_reservation(RESEARCH, "us-central1-a", cpu);
    }

    fn filled(
        &mut self,
        owner: &str,
        zone: &str,
        reservation: ReservationSpec,
        machine_type: &str,
        count: usize,
        user: &str,
    ) {
        let name = reservation.name.clone();
        let id = self.world.add_reservation(owner, zone, reservation);
        for number in 0..count {
            let spec = InstanceSpec {
                reservation: id.clone(),
                ..InstanceSpec::of(machine_type)
            };
            let spec = spec.named(&format!("{name}-{number}")).label("team", "speech");
            self.launch(user, zone, spec);
        }
    }
}
