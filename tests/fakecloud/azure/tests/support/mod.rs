//! A simulated Azure with one subscription, and how to ask it.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "each test uses a part of it, and stops at the first surprise"
)]

use gpuwatch_fakecloud_azure::{ACCESS_TOKEN, Azure, World};
use gpuwatch_fakecloud_core::{Server, ServerOptions};
use serde_json::Value;

pub const SUBSCRIPTION: &str = "00000000-0000-4000-8000-000000000001";

/// The version of the Compute API.
pub const COMPUTE: &str = "api-version=2024-07-01";

/// Serves a world, with the subscription added.
pub async fn serve(world: &World) -> Server {
    world.add_subscription(SUBSCRIPTION, "corp");
    Server::start(&ServerOptions::default(), vec![Box::new(Azure::new(world.clone()))])
        .await
        .unwrap()
}

/// What a path answers.
pub async fn get(server: &Server, path: &str) -> (u16, Value) {
    get_as(server, path, ACCESS_TOKEN).await
}

/// What a path answers to this token.
pub async fn get_as(server: &Server, path: &str, token: &str) -> (u16, Value) {
    let request = reqwest::Client::new()
        .get(format!("{}{path}", server.url()))
        .bearer_auth(token);
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}

/// Rows of a listing's page.
pub fn rows(body: &Value) -> usize {
    body["value"].as_array().unwrap().len()
}
