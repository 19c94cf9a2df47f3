//! Reading the catalogue's CSV files, with errors that name the cell.

use std::str::FromStr;

use csv::StringRecord;

/// A CSV file, already in memory.
#[derive(Debug, Clone, Copy)]
pub struct CsvFile<'a> {
    /// Name for error messages.
    pub name: &'a str,
    /// Its whole text: UTF-8, comma separated, one header line.
    pub text: &'a str,
}

/// What can be wrong with a catalogue file. Lines count from 1 and include the
/// header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// Not readable as CSV, for example a row with a cell too many.
    #[error("{file}:{line}: {problem}")]
    Syntax {
        /// File name.
        file: String,
        /// Line of the row.
        line: u64,
        /// What the CSV reader says.
        problem: String,
    },
    /// The header lacks a column.
    #[error("{file}:1: column {column} is missing")]
    MissingColumn {
        /// File name.
        file: String,
        /// The column that is expected.
        column: String,
    },
    /// The header has a column that nobody reads, or one twice.
    #[error("{file}:1: column {column:?} is not known or not unique")]
    UnknownColumn {
        /// File name.
        file: String,
        /// The header cell.
        column: String,
    },
    /// A cell does not hold what its column asks for.
    #[error("{file}:{line}: column {column}: expected {expected}, found {given:?}")]
    Cell {
        /// File name.
        file: String,
        /// Line of the row.
        line: u64,
        /// Column name.
        column: String,
        /// What the column holds.
        expected: &'static str,
        /// What the cell holds.
        given: String,
    },
    /// A key that another row has already.
    #[error("{file}:{line}: column {column}: {given:?} is listed twice")]
    Duplicate {
        /// File name.
        file: String,
        /// Line of the second row.
        line: u64,
        /// Column name.
        column: String,
        /// The key.
        given: String,
    },
}

/// A file split into rows, with a checked header.
pub(super) struct Table<'a> {
    file: &'a str,
    header: StringRecord,
    records: Vec<(u64, StringRecord)>,
}

impl<'a> Table<'a> {
    /// Splits a file and checks that its header has every column of `columns`,
    /// and beyond those only columns that begin with `variable_prefix`.
    pub fn read(file: CsvFile<'a>, columns: &[&str], variable_prefix: Option<&str>) -> Result<Self, CatalogError> {
        let syntax = |error: &csv::Error| CatalogError::Syntax {
            file: file.name.to_owned(),
            line: error.position().map_or(1, csv::Position::line),
            problem: error.to_string(),
        };
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .has_headers(true)
            .from_reader(file.text.as_bytes());
        let header = reader.headers().map_err(|error| syntax(&error))?.clone();
        if let Some(missing) = columns.iter().find(|name| !header.iter().any(|cell| cell == **name)) {
            return Err(CatalogError::MissingColumn {
                file: file.name.to_owned(),
                column: (*missing).to_owned(),
            });
        }
        let is_known =
            |cell: &str| columns.contains(&cell) || variable_prefix.is_some_and(|prefix| cell.starts_with(prefix));
        for (at, cell) in header.iter().enumerate() {
            if !is_known(cell) || header.iter().take(at).any(|earlier| earlier == cell) {
                return Err(CatalogError::UnknownColumn {
                    file: file.name.to_owned(),
                    column: cell.to_owned(),
                });
            }
        }
        let mut records = Vec::new();
        for record in reader.into_records() {
            let record = record.map_err(|error| syntax(&error))?;
            records.push((record.position().map_or(0, csv::Position::line), record));
        }
        Ok(Self {
            file: file.name,
            header,
            records,
        })
    }

    /// File name for error messages.
    pub const fn file(&self) -> &'a str {
        self.file
    }

    /// Header cells, in order.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.header.iter()
    }

    /// Rows, in order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.records.iter().map(|(line, record)| Row {
            table: self,
            line: *line,
            record,
        })
    }
}

/// One row of a [`Table`]. Cells are addressed by column name.
pub(super) struct Row<'a> {
    table: &'a Table<'a>,
    line: u64,
    record: &'a StringRecord,
}

impl<'a> Row<'a> {
    /// The cell's text; empty when it is blank.
    pub fn text(&self, column: &str) -> &'a str {
        self.table
            .header
            .iter()
            .position(|name| name == column)
            .and_then(|at| self.record.get(at))
            .unwrap_or_default()
    }

    /// The cell's text, which must not be blank.
    pub fn required(&self, column: &str) -> Result<&'a str, CatalogError> {
        let text = self.text(column);
        if text.is_empty() {
            Err(self.bad_cell(column, "a text"))
        } else {
            Ok(text)
        }
    }

    /// The cell's value, or `None` when it is blank: not known.
    pub fn optional<T>(
        &self,
        column: &str,
        expected: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, CatalogError> {
        match self.text(column) {
            "" => Ok(None),
            text => parse(text).map(Some).ok_or_else(|| self.bad_cell(column, expected)),
        }
    }

    /// The cell's value, which must not be blank.
    pub fn word<T: FromStr>(&self, column: &str, expected: &'static str) -> Result<T, CatalogError> {
        self.text(column).parse().map_err(|_| self.bad_cell(column, expected))
    }

    /// A number above zero. Zero is refused, because a blank cell is how the
    /// catalogue says that a figure is not known.
    pub fn positive(&self, column: &str) -> Result<Option<f64>, CatalogError> {
        self.optional(column, "a number above 0, or nothing", positive_number)
    }

    /// `true` or `false`.
    pub fn flag(&self, column: &str) -> Result<Option<bool>, CatalogError> {
        self.optional(column, "true, false, or nothing", |text| text.parse().ok())
    }

    /// The error for a cell of this row.
    pub fn bad_cell(&self, column: &str, expected: &'static str) -> CatalogError {
        CatalogError::Cell {
            file: self.table.file.to_owned(),
            line: self.line,
            column: column.to_owned(),
            expected,
            given: self.text(column).to_owned(),
        }
    }

    /// The error for a key of this row that an earlier row has.
    pub fn duplicate(&self, column: &str) -> CatalogError {
        CatalogError::Duplicate {
            file: self.table.file.to_owned(),
            line: self.line,
            column: column.to_owned(),
            given: self.text(column).to_owned(),
        }
    }
}

/// A finite number above zero.
pub(super) fn positive_number(text: &str) -> Option<f64> {
    text.parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number > 0.0)
}
