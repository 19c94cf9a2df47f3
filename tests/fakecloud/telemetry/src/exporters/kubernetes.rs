//! kube-state-metrics: the nodes.

use crate::{
    host::{Host, Tie},
    source::{Source, labels},
};

/// One series per machine that is a node.
#[must_use]
pub fn nodes<'a>(hosts: impl IntoIterator<Item = &'a Host>) -> Vec<Source> {
    let nodes = hosts.into_iter().filter(|host| host.tie == Tie::Node);
    let series = nodes.map(|host| {
        let labels = labels([
            ("node", &host.node()),
            ("internal_ip", &host.address),
            ("provider_id", &host.provider_id()),
            ("kubelet_version", "v1.33.4"),
        ]);
        Source::gauge("kube_node_info", labels, |_, _| Some(1.0))
    });
    series.collect()
}
