//! Whether words stand in a row, or near each other, by their places.

/// Whether words stand side by side: each with its distance, in words, from the first. `columns`
/// is what places of neighbours in one column differ by. `starts` are those of the first word that
/// are left.
#[must_use]
pub(crate) fn in_a_row(words: &[(u64, Vec<u64>)], columns: u64) -> Vec<u64> {
    let Some(((first, starts), others)) = words.split_first() else { return Vec::new() };
    let fits = |start: &u64| {
        others.iter().all(|(distance, places)| {
            let place = start.saturating_add((distance - first).saturating_mul(columns));
            places.binary_search(&place).is_ok()
        })
    };
    starts.iter().copied().filter(fits).collect()
}

/// Whether all words stand within so many words of a document, the first and the last of them
/// counted.
#[must_use]
pub(crate) fn is_near(words: &[Vec<u64>], columns: u64, distance: u64) -> bool {
    let mut at = vec![0; words.len()];
    loop {
        let place = |nth: usize| words[nth].get(at[nth]).copied();
        let Some(places) = (0..words.len()).map(place).collect::<Option<Vec<u64>>>() else {
            return false;
        };
        let least = (0..places.len()).min_by_key(|&nth| places[nth]);
        let (Some(least), Some(greatest)) = (least, places.iter().max()) else { return false };
        if (greatest - places[least]) / columns.max(1) < distance {
            return true;
        }
        // No later place of another word is nearer to this one.
        at[least] += 1;
    }
}
