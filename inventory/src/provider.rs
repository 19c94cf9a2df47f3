//! The clouds gpuwatch covers.

crate::words! {
    /// A cloud provider; the word is the `provider` label of every metric.
    Provider, "provider" {
        /// Amazon Web Services, including its China and GovCloud partitions.
        Aws = "aws",
        /// Google Cloud.
        Gcp = "gcp",
        /// Microsoft Azure, including China (21Vianet) and US Government.
        Azure = "azure",
        /// Alibaba Cloud (Aliyun), China and international sites.
        Aliyun = "aliyun",
        /// Tencent Cloud, China and international sites.
        Tencent = "tencent",
    }
}
