//! CSV that is safe to open in a spreadsheet.

use std::borrow::Cow;

use super::error::CliError;

/// A header and rows as CSV text.
pub(super) fn render<'a>(
    header: &[&str],
    rows: impl IntoIterator<Item = Vec<Cow<'a, str>>>,
) -> Result<Vec<u8>, CliError> {
    let failed = |error: csv::Error| CliError::failure("writing CSV failed", error);
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(header).map_err(failed)?;
    for row in rows {
        writer
            .write_record(row.into_iter().map(|cell| neutral(cell).into_owned()))
            .map_err(failed)?;
    }
    writer
        .into_inner()
        .map_err(|error| CliError::failure("writing CSV failed", error))
}

/// A cell that a spreadsheet would run as a formula gets an apostrophe, which
/// makes it text. Tags and names come from whoever may tag a machine.
fn neutral(cell: Cow<'_, str>) -> Cow<'_, str> {
    if cell.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        Cow::Owned(format!("'{cell}"))
    } else {
        cell
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_become_text() {
        for formula in ["=HYPERLINK(\"http://x\")", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"] {
            assert_eq!(neutral(Cow::Borrowed(formula)), format!("'{formula}"));
        }
        assert_eq!(neutral(Cow::Borrowed("i-0=1")), "i-0=1");
    }

    #[test]
    fn cells_are_quoted_where_needed() {
        let row = vec![Cow::Borrowed("a,b"), Cow::Borrowed("say \"hi\"")];
        let text = render(&["x", "y"], [row]).expect("csv");
        assert_eq!(text, b"x,y\n\"a,b\",\"say \"\"hi\"\"\"\n");
    }
}
