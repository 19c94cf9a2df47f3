//! Simulated GPU exporters and a server that answers Prometheus queries about
//! them.
