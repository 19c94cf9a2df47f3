//! The catalogue: what the known accelerator models are, and which instance
//! types carry them. The data are the CSV files of `inventory/catalog`,
//! compiled in; `inventory/catalog/README.md` explains their columns.
//!
//! A cloud's own type API is asked before the catalogue. The catalogue gives
//! models one spelling, adds what no API tells (architecture, throughput),
//! corrects the few figures that an API is known to state wrongly, and fills
//! in where an API is silent.

mod accelerators;
mod csv_file;
mod matching;
mod models;
mod shapes;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

pub use accelerators::AcceleratorFacts;
pub use csv_file::{CatalogError, CsvFile};
pub use models::{Confidence, GpuModel, TypicalClass};
pub use shapes::{InstanceShape, ReferencePrice};

use crate::Provider;
use matching::ModelIndex;
use shapes::ShapeIndex;

/// The compiled-in table of accelerator models.
const MODELS: CsvFile<'static> = CsvFile {
    name: "gpu_models.csv",
    text: include_str!("../../catalog/gpu_models.csv"),
};

/// The compiled-in tables of instance types, one per cloud.
const SHAPES: [CsvFile<'static>; 5] = [
    CsvFile {
        name: "aws_instance_types.csv",
        text: include_str!("../../catalog/aws_instance_types.csv"),
    },
    CsvFile {
        name: "gcp_machine_types.csv",
        text: include_str!("../../catalog/gcp_machine_types.csv"),
    },
    CsvFile {
        name: "azure_vm_sizes.csv",
        text: include_str!("../../catalog/azure_vm_sizes.csv"),
    },
    CsvFile {
        name: "aliyun_instance_types.csv",
        text: include_str!("../../catalog/aliyun_instance_types.csv"),
    },
    CsvFile {
        name: "tencent_instance_types.csv",
        text: include_str!("../../catalog/tencent_instance_types.csv"),
    },
];

/// Known accelerator models and instance types, indexed for look-up.
#[derive(Debug)]
pub struct Catalog {
    models: Vec<GpuModel>,
    shapes: Vec<InstanceShape>,
    model_index: ModelIndex,
    shape_index: ShapeIndex,
}

/// The catalogue that is compiled into the program, parsed on first use.
#[must_use]
#[allow(clippy::expect_used, reason = "the data are compiled in and a test parses them")]
pub fn builtin() -> &'static Catalog {
    static BUILTIN: LazyLock<Catalog> =
        LazyLock::new(|| Catalog::from_csv(MODELS, &SHAPES).expect("the compiled-in catalogue is well-formed"));
    &BUILTIN
}

impl Catalog {
    /// Reads a catalogue from one table of models and any number of tables of
    /// instance types.
    ///
    /// # Errors
    /// [`CatalogError`] for the first malformed row, naming its file, line and
    /// column.
    pub fn from_csv(models: CsvFile<'_>, shapes: &[CsvFile<'_>]) -> Result<Self, CatalogError> {
        let models = models::read(models)?;
        let model_index = ModelIndex::new(&models);
        let (shapes, shape_index) = shapes::read(shapes)?;
        Ok(Self {
            models,
            shapes,
            model_index,
            shape_index,
        })
    }

    /// Every model, in the order of the table.
    #[must_use]
    pub fn models(&self) -> &[GpuModel] {
        &self.models
    }

    /// Every instance type, cloud by cloud. A few of GCP's rows are
    /// accelerator types (`nvidia-tesla-t4`), which attach to any machine.
    #[must_use]
    pub fn shapes(&self) -> &[InstanceShape] {
        &self.shapes
    }

    /// The model that a name from an API, an exporter or a bill means.
    ///
    /// `memory_gib` is the memory of one whole card as reported; it decides
    /// between the rows of an ambiguous name (`A100`, `H20`, `V100`), within
    /// 8 %. Between rows alike in memory (H100 80 GB as PCI card or SXM) the one
    /// with the lower figures is taken. `None` when the catalogue does not
    /// have the name or when an ambiguous name stays undecided. The bare
    /// versions of TPUs (`v4`) name anything outside a TPU API and match only
    /// in [`Catalog::accelerators`], for the maker `google`.
    #[must_use]
    pub fn model(&self, name: &str, memory_gib: Option<f64>) -> Option<&GpuModel> {
        let candidates = self.model_index.candidates(&self.models, name, None);
        matching::pick(&candidates, memory_gib, None, false)
    }

    /// The facts about an instance type, whatever the case of its spelling.
    #[must_use]
    pub fn shape(&self, provider: Provider, instance_type: &str) -> Option<&InstanceShape> {
        self.shape_index
            .position(provider, instance_type)
            .and_then(|at| self.shapes.get(at))
    }
}
