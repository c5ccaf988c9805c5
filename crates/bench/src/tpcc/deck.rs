//! Which transaction comes next (clause 5.2.3), by a deck of cards (clause 5.2.4.2).
use super::random::Random;

/// The five transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Clause 2.4.
    NewOrder,
    /// Clause 2.5.
    Payment,
    /// Clause 2.6.
    OrderStatus,
    /// Clause 2.7.
    Delivery,
    /// Clause 2.8.
    StockLevel,
}

impl Kind {
    /// All of them, in the clauses' order.
    pub const ALL: [Kind; 5] =
        [Kind::NewOrder, Kind::Payment, Kind::OrderStatus, Kind::Delivery, Kind::StockLevel];

    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::NewOrder => "new_order",
            Kind::Payment => "payment",
            Kind::OrderStatus => "order_status",
            Kind::Delivery => "delivery",
            Kind::StockLevel => "stock_level",
        }
    }

    /// Cards in a deck: 43.5 % New-Order and Payment, 4.3 % of each of the others. A deck delivers
    /// as many orders as it enters, so that the undelivered ones stay as many as they are.
    fn cards(self) -> usize {
        match self {
            Kind::NewOrder | Kind::Payment => 10,
            Kind::OrderStatus | Kind::Delivery | Kind::StockLevel => 1,
        }
    }
}

/// Dealt to the last card, then shuffled anew.
pub(crate) struct Deck {
    cards: Vec<Kind>,
    dealt: usize,
}

impl Deck {
    pub(crate) fn new() -> Self {
        let cards: Vec<Kind> = Kind::ALL
            .into_iter()
            .flat_map(|kind| std::iter::repeat_n(kind, kind.cards()))
            .collect();
        let dealt = cards.len();
        Deck { cards, dealt }
    }

    pub(crate) fn deal(&mut self, random: &mut Random) -> Kind {
        if self.dealt == self.cards.len() {
            random.shuffle(&mut self.cards);
            self.dealt = 0;
        }
        self.dealt += 1;
        self.cards[self.dealt - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_deck_is_the_mix_and_no_two_are_alike() {
        let (mut deck, mut random) = (Deck::new(), Random::new(1));
        let mut last = Vec::new();
        for _ in 0..100 {
            let dealt: Vec<Kind> = (0..23).map(|_| deck.deal(&mut random)).collect();
            for (kind, cards) in Kind::ALL.into_iter().zip([10, 10, 1, 1, 1]) {
                assert_eq!(dealt.iter().filter(|&&dealt| dealt == kind).count(), cards);
            }
            assert_ne!(dealt, last);
            last = dealt;
        }
    }
}
