//! Columns for a person.

/// Rows under a heading, each column as wide as it must be; a column with nothing below its heading is left out. A row may have
/// more to say, on lines below it.
pub(crate) struct Table<const COLUMNS: usize> {
    heading: [&'static str; COLUMNS],
    rows: Vec<([String; COLUMNS], Option<String>)>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    pub(crate) fn new(heading: [&'static str; COLUMNS]) -> Self {
        Self { heading, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, row: [String; COLUMNS], more: Option<String>) {
        self.rows.push((row, more));
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|(row, _)| row[column].chars().count()).max().unwrap_or(0);
            if cells == 0 { 0 } else { cells.max(self.heading[column].chars().count()) }
        };
        let widths: [usize; COLUMNS] = std::array::from_fn(width);
        let line = |row: &[String; COLUMNS]| {
            let shown = row.iter().zip(&widths).filter(|(_, width)| **width > 0);
            let cells = shown.map(|(cell, width)| format!("{cell:<width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let mut lines = vec![line(&self.heading.map(str::to_owned))];
        for (row, more) in &self.rows {
            lines.push(line(row));
            lines.extend(more.iter().flat_map(|more| more.lines()).map(|more| format!("    {more}")));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_must_be_and_empty_ones_are_left_out() {
        let mut table = Table::new(["", "name", "none", "x"]);
        table.row(["m1".into(), "ä".into(), String::new(), "long".into()], None);
        table.row(["m2".into(), "longer".into(), String::new(), String::new()], Some("a\nb".into()));
        assert_eq!(table.lines(), ["    name    x", "m1  ä       long", "m2  longer", "    a", "    b"]);
    }
}
