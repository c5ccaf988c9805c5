//! What batches of page writes cost where each takes long: a time for itself, and one by page.

/// What of earlier batches still counts with each new one.
const MEMORY: f64 = 0.75;
/// Sizes that differ by less than this share tell nothing of what a page costs.
const SPREAD_MIN: f64 = 0.2;

/// What batches cost, as a fixed time and one by page: a line through those of late.
///
/// A slow disk that has much to do takes twice as long for twice the pages, and larger batches
/// would only keep the log's writes from it. One that takes as long for any number takes more.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BatchCost {
    weight: f64,
    pages: f64,
    micros: f64,
    pages_squared: f64,
    pages_micros: f64,
    /// By page, as far as it is known.
    page_micros: Option<f64>,
}

impl BatchCost {
    /// Takes one batch: pages that all lanes had in hand, and what it took.
    pub(crate) fn learn(&mut self, pages: f64, micros: f64) {
        let add = |sum: &mut f64, value: f64| *sum = *sum * MEMORY + value;
        add(&mut self.weight, 1.0);
        add(&mut self.pages, pages);
        add(&mut self.micros, micros);
        add(&mut self.pages_squared, pages * pages);
        add(&mut self.pages_micros, pages * micros);
        let mean = self.pages / self.weight;
        let spread = self.pages_squared / self.weight - mean * mean;
        if spread > (SPREAD_MIN * mean).powi(2) {
            let both = self.pages_micros / self.weight - mean * self.micros / self.weight;
            self.page_micros = Some((both / spread).clamp(0.0, self.micros / self.pages));
        }
    }

    /// Pages in hand beyond which a batch takes more than twice its fixed time: what more would
    /// bring is less than what the log's writes would wait for it.
    pub(crate) fn pages_useful(&self) -> Option<f64> {
        let page = self.page_micros.filter(|page| *page > 0.0)?;
        let fixed = (self.micros - page * self.pages) / self.weight;
        Some(fixed.max(0.0) / page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(batches: &[(f64, f64)]) -> BatchCost {
        let mut cost = BatchCost::default();
        batches.iter().for_each(|&(pages, micros)| cost.learn(pages, micros));
        cost
    }

    #[test]
    fn more_pages_are_useful_until_they_take_as_long_as_the_batch_itself() {
        let line = |pages: f64| (pages, 1e6 + 1e4 * pages);
        let useful = after(&[10.0, 40.0, 160.0].map(line)).pages_useful().expect("known");
        assert!((useful - 100.0).abs() < 1e-6, "{useful}");
        // What is known stays known while all batches have one size.
        let mut same = after(&[10.0, 40.0, 160.0].map(line));
        (0..50).for_each(|_| same.learn(160.0, 2.6e6));
        assert!((same.pages_useful().expect("known") - 100.0).abs() < 1e-6);
        let by_page = after(&[(10.0, 1e5), (40.0, 4e5), (20.0, 2e5)]).pages_useful();
        assert!(by_page.expect("known") < 1e-6, "only pages take time: {by_page:?}");
        assert_eq!(after(&[(10.0, 1e6), (40.0, 1e6)]).pages_useful(), None, "pages cost nothing");
        assert_eq!(after(&[(10.0, 1e6)]).pages_useful(), None, "not known yet");
        assert_eq!(after(&[]).pages_useful(), None);
    }
}
