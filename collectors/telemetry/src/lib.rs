//! GPU counters read from Prometheus-compatible servers.
