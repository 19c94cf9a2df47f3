//! `telemetry`.

use gpuwatch_collector_rest::SecretSource;
use gpuwatch_collector_telemetry::{Authentication, Reader, TelemetryOptions, Tls};
use gpuwatch_config::{Config, TelemetrySection};

use super::secret;

/// One reader per section. What cannot be used is added to the problems.
pub(super) fn readers(config: &Config, problems: &mut Vec<String>) -> Vec<Reader> {
    let mut readers = Vec::new();
    for section in &config.telemetry {
        if section.tls.server_name.is_some() {
            problems.push(format!(
                "telemetry {}: tls.server_name is not available in this version of gpuwatch; use a URL whose host is in \
                 the certificate",
                section.name.as_str()
            ));
        }
        match Reader::new(options(section, config)) {
            Ok(reader) => readers.push(reader),
            Err(error) => problems.push(format!("telemetry {}: {error}", section.name.as_str())),
        }
    }
    readers
}

fn options(section: &TelemetrySection, config: &Config) -> TelemetryOptions {
    let bearer = secret::source(section.bearer_token.as_ref(), section.bearer_token_file.as_deref());
    let basic = section.basic_auth.as_ref().map(|basic| Authentication::Basic {
        username: basic.username.clone(),
        password: secret::source(basic.password.as_ref(), basic.password_file.as_deref()),
    });
    let given = section
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), SecretSource::value(value.expose())));
    let in_files = section
        .header_files
        .iter()
        .map(|(name, path)| (name.clone(), SecretSource::File(path.clone())));
    TelemetryOptions {
        authentication: bearer.map(Authentication::Bearer).or(basic).unwrap_or_default(),
        headers: given.chain(in_files).collect(),
        tls: Tls {
            ca_file: section.tls.ca_file.clone(),
            identity: section.tls.cert_file.clone().zip(section.tls.key_file.clone()),
            insecure_skip_verify: section.tls.insecure_skip_verify,
        },
        timeout: section.timeout.get(),
        matchers: section
            .matchers
            .iter()
            .map(|matcher| matcher.as_str().to_owned())
            .collect(),
        instance_id_labels: section.instance_id_labels.clone(),
        interval: config.intervals.usage.get(),
        ..TelemetryOptions::new(section.name.as_str(), section.prometheus_url.as_str())
    }
}
