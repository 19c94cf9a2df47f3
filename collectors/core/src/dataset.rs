//! The datasets a collector can be polled for.

gpuwatch_inventory::words! {
    /// One kind of fact, with its own interval, deadline and last good answer.
    /// The word is the `dataset` label and the key under `intervals:`.
    Dataset, "dataset" {
        /// Instances and their accelerators.
        Inventory = "inventory",
        /// Utilisation from the cloud's own monitoring.
        Usage = "usage",
        /// Reservations, plans and blocks.
        Commitments = "commitments",
        /// Price lists.
        Prices = "prices",
        /// Billed cost.
        Spend = "spend",
        /// Managed AI platforms.
        Managed = "managed",
    }
}
