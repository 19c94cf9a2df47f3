//! Tables for a terminal: aligned by display width (Chinese characters take
//! two columns), never wrapped, cut to fit.

use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Table, presets};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Width where none can be found out.
const DEFAULT_WIDTH: usize = 120;
/// Blanks between columns.
const GAP: u16 = 2;

/// One column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) title: &'static str,
    /// Numbers stand on the right.
    pub(super) right: bool,
    /// Never cut below this width.
    pub(super) least: usize,
    /// Cut at the front: the end of a path tells more.
    pub(super) keep_end: bool,
}

/// A column of text.
pub(super) const fn text(title: &'static str, least: usize) -> Column {
    Column {
        title,
        right: false,
        least,
        keep_end: false,
    }
}

/// A column of text that is never cut, because it is there to be copied.
pub(super) const fn whole(title: &'static str) -> Column {
    text(title, usize::MAX)
}

/// A column of numbers.
pub(super) const fn number(title: &'static str) -> Column {
    Column {
        title,
        right: true,
        least: 8,
        keep_end: false,
    }
}

/// The width of the terminal, or the default when output goes elsewhere.
pub(super) fn width() -> usize {
    Table::new().width().map_or(DEFAULT_WIDTH, usize::from)
}

/// The table as text, one line per row. `bold` is for terminals with colour.
pub(super) fn render(columns: &[Column], rows: &[Vec<String>], limit: usize, bold: bool) -> String {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| printable(cell)).collect())
        .collect();
    let widths = fit(columns, &rows, limit);
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(columns.iter().zip(&widths).map(|(column, width)| {
        let cell = Cell::new(cut(column.title, *width, false));
        if bold {
            cell.add_attribute(Attribute::Bold)
        } else {
            cell
        }
    }));
    for row in &rows {
        let cells = row.iter().zip(columns).zip(&widths);
        table.add_row(cells.map(|((cell, column), width)| cut(cell, *width, column.keep_end)));
    }
    for (index, column) in columns.iter().enumerate() {
        if let Some(style) = table.column_mut(index) {
            style.set_padding((0, GAP));
            style.set_cell_alignment(if column.right {
                CellAlignment::Right
            } else {
                CellAlignment::Left
            });
        }
    }
    if bold {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    let mut text = String::new();
    for line in table.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Takes the widest column that may still be cut, until the row fits.
fn fit(columns: &[Column], rows: &[Vec<String>], limit: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(index, column)| {
            let cells = rows.iter().filter_map(|row| row.get(index)).map(|cell| cell.width());
            cells.chain([column.title.width()]).max().unwrap_or(0)
        })
        .collect();
    let gaps = usize::from(GAP) * columns.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > limit {
        let widest = widths
            .iter_mut()
            .zip(columns)
            .filter(|(width, column)| **width > column.least)
            .max_by_key(|(width, column)| **width - column.least);
        match widest {
            Some((width, _)) => *width -= 1,
            None => break,
        }
    }
    widths
}

/// Text from outside could move the cursor or break the line.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// At most `width` columns of the text; a cut is shown by an ellipsis.
fn cut(text: &str, width: usize, keep_end: bool) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let mut used = 0;
    let mut fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= room
    };
    if keep_end {
        let end: Vec<char> = text.chars().rev().take_while(&mut fits).collect();
        std::iter::once('…').chain(end.into_iter().rev()).collect()
    } else {
        text.chars().take_while(&mut fits).chain(std::iter::once('…')).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [
        Column {
            title: "ID",
            right: false,
            least: 6,
            keep_end: true,
        },
        text("NAME", 6),
        number("GPUS"),
    ];

    fn row(id: &str, name: &str, gpus: &str) -> Vec<String> {
        vec![id.to_owned(), name.to_owned(), gpus.to_owned()]
    }

    #[test]
    fn chinese_names_are_aligned_by_display_width() {
        let text = render(
            &COLUMNS,
            &[row("i-1", "搜索团队", "8"), row("i-2", "search", "0.125")],
            80,
            false,
        );
        assert_eq!(
            text,
            "ID   NAME       GPUS\ni-1  搜索团队      8\ni-2  search    0.125\n"
        );
    }

    #[test]
    fn what_does_not_fit_is_cut_and_never_wrapped() {
        let rows = [row(
            "/subscriptions/0/virtualmachines/vm-1",
            "a very long name of a machine",
            "8",
        )];
        let text = render(&COLUMNS, &rows, 30, false);
        assert!(text.lines().all(|line| line.width() <= 30), "{text}");
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains("/vm-1") && text.contains('…'), "{text}");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let text = render(&COLUMNS, &[row("i-1", "a\nb\u{1b}[2J", "8")], 80, false);
        assert_eq!(text.lines().count(), 2);
        assert!(!text.contains('\u{1b}'));
    }
}
