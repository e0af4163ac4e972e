//! What is worked on: the strokes of everybody's work, in order.

/// One stroke is one write. The number is that of the entry it belongs to, counted over all contenders.
#[derive(Debug, Default)]
pub(super) struct Register {
    strokes: Vec<usize>,
}

impl Register {
    pub(super) fn stroke(&mut self, entry: usize) {
        self.strokes.push(entry);
    }

    /// How many entered while another was not done: his strokes go on after theirs have begun.
    pub(super) fn double_entries(&self) -> usize {
        let spans: Vec<(usize, usize)> = (0..=self.strokes.iter().copied().max().unwrap_or(0))
            .filter_map(|entry| {
                let first = self.strokes.iter().position(|stroke| *stroke == entry)?;
                let last = self.strokes.iter().rposition(|stroke| *stroke == entry)?;
                Some((first, last))
            })
            .collect();
        let is_double = |entry: &&(usize, usize)| {
            spans.iter().any(|(first, last)| (*first..*last).contains(&entry.0) && *first != entry.0)
        };
        spans.iter().filter(is_double).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_double_if_another_goes_on_after_it_began() {
        let double = |strokes: &[usize]| Register { strokes: strokes.to_vec() }.double_entries();
        assert_eq!([double(&[]), double(&[0]), double(&[0, 0, 1, 1, 2])], [0; 3]);
        assert_eq!([double(&[0, 1, 0]), double(&[0, 1, 0, 1]), double(&[1, 1, 0, 1, 0])], [1; 3]);
        assert_eq!([double(&[0, 1, 2, 0]), double(&[0, 1, 0, 2, 1, 2])], [2; 2]);
        // One that never wrote was never in.
        assert_eq!(double(&[3, 3, 5, 5]), 0);
    }
}
