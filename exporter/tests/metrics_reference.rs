//! `docs/metrics.md` is what the table of metrics says.

use std::path::Path;

#[test]
fn the_metrics_reference_is_up_to_date() {
    let path = Path::new("../docs/metrics.md");
    let generated = gpuwatch::encode::docs::markdown();
    if std::env::var_os("GPUWATCH_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("folder");
        std::fs::write(path, &generated).expect("written");
    }
    let written = std::fs::read_to_string(path).expect("docs/metrics.md");
    assert!(
        written == generated,
        "docs/metrics.md is out of date; run: GPUWATCH_BLESS=1 cargo test -p gpuwatch --test metrics_reference"
    );
}
