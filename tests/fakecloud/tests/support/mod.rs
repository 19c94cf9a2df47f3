//! Shared by the integration tests; each uses a part of it.
#![allow(dead_code, reason = "every test binary compiles all of it and uses some")]

pub mod client;

use gpuwatch_fakecloud::aws::{AccountSpec, OptIn, Partition, World};
use gpuwatch_fakecloud::{FakeCloud, Options};

/// The account of the base credentials.
pub const BASE: &str = "111122223333";
/// Another account, reached through a role.
pub const MEMBER: &str = "444455556666";

/// Two regions open to all, one that must be enabled, two accounts.
pub fn small_world() -> World {
    let regions = [
        ("us-east-1", OptIn::NotRequired),
        ("us-west-2", OptIn::NotRequired),
        ("ap-east-1", OptIn::Required),
    ];
    let world = World::with_regions(Partition::Aws, &regions);
    world.add_account(
        BASE,
        AccountSpec {
            name: "base".to_owned(),
            ..AccountSpec::default()
        },
    );
    world.add_account(
        MEMBER,
        AccountSpec {
            name: "member".to_owned(),
            ..AccountSpec::default()
        },
    );
    world
}

pub async fn serve(world: &World) -> FakeCloud {
    FakeCloud::start(Options {
        aws: Some(world.clone()),
        ..Options::default()
    })
    .await
    .unwrap()
}
