//! Shared by the integration tests; each uses a part of it.
#![allow(dead_code, reason = "every test binary compiles all of it and uses some")]

use gpuwatch_fakecloud_core::{Server, ServerOptions};
use gpuwatch_fakecloud_gcp::{Gcp, ProjectSpec, World};
use reqwest::Response;
use serde_json::Value;

/// Three zones in two regions, and one project `p`.
pub fn small_world() -> World {
    let world = World::with_regions(&[("europe-west4", "ab"), ("us-central1", "a")]);
    world.add_project("p", ProjectSpec::named("Project"));
    world
}

pub async fn serve(world: &World) -> Server {
    let clouds: Vec<Box<dyn gpuwatch_fakecloud_core::Cloud>> = vec![Box::new(Gcp::new(world.clone()))];
    Server::start(&ServerOptions::default(), clouds).await.unwrap()
}

/// What came back, read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub body: Value,
}

impl Answer {
    async fn read(response: Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Self { status, headers, body }
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap_or_default())
    }

    /// `error.details[0].reason`, else `error.errors[0].reason`.
    pub fn reason(&self) -> &str {
        let error = &self.body["error"];
        let detail = error["details"][0]["reason"].as_str();
        detail
            .or_else(|| error["errors"][0]["reason"].as_str())
            .unwrap_or_default()
    }
}

/// A GET without credentials.
pub async fn get(server: &Server, path: &str) -> Answer {
    let url = format!("{}{path}", server.url());
    Answer::read(reqwest::get(url).await.unwrap()).await
}

/// A GET with a bearer token.
pub async fn get_as(server: &Server, path: &str, token: &str) -> Answer {
    let url = format!("{}{path}", server.url());
    let request = reqwest::Client::new().get(url).bearer_auth(token);
    Answer::read(request.send().await.unwrap()).await
}

/// A GET of the metadata server.
pub async fn metadata(server: &Server, path: &str) -> Answer {
    let url = format!("{}/computeMetadata/v1/{path}", server.url());
    let request = reqwest::Client::new().get(url).header("metadata-flavor", "Google");
    Answer::read(request.send().await.unwrap()).await
}

/// A POST of JSON, with a bearer token.
pub async fn post_as(server: &Server, path: &str, token: &str, body: &Value) -> Answer {
    let url = format!("{}{path}", server.url());
    let request = reqwest::Client::new().post(url).bearer_auth(token).json(body);
    Answer::read(request.send().await.unwrap()).await
}

/// All pages of a call; `query` begins with `?` or is empty.
pub async fn pages(server: &Server, path: &str, query: &str) -> Vec<Value> {
    let mut pages = Vec::new();
    let mut token = String::new();
    loop {
        let separator = if query.is_empty() { '?' } else { '&' };
        let answer = get(server, &format!("{path}{query}{separator}pageToken={token}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body["nextPageToken"]
            .as_str()
            .unwrap_or_default()
            .clone_into(&mut token);
        pages.push(answer.body);
        assert!(pages.len() < 100, "pages without end");
        if token.is_empty() {
            return pages;
        }
    }
}

/// Names of the rows of an aggregated list's page, by scope and place.
pub fn names(page: &Value, field: &str) -> Vec<(String, String)> {
    let mut names = Vec::new();
    for (scope, scoped) in page["items"].as_object().unwrap() {
        for row in scoped[field].as_array().into_iter().flatten() {
            names.push((scope.clone(), row["name"].as_str().unwrap_or_default().to_owned()));
        }
    }
    names
}

/// Google's libraries that the tests need.
pub const SDK: &str = "google.cloud.compute_v1, google.auth";
