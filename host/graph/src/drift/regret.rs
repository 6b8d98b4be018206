//! When a better layout is worth moving to: a counter of lost savings.
//!
//! A layout's price is paid once, what it saves is gained statement by statement, and how long the
//! workload stays as it is nobody knows. So, as in ski rental: go on as you are until what a better
//! layout would have saved since the last move exceeds the price of moving, then move. Whatever comes
//! next, no more than about twice what the better layout would have cost was spent (A. Karlin et al.,
//! "Competitive snoopy caching", Algorithmica 3, 1988; for many layouts, metrical task systems:
//! A. Borodin, N. Linial, M. Saks, J. ACM 39, 1992).
//!
//! 1. After every stretch of statements, each layout in view adds to its counter what it would have
//!    read less than the present one; what it would have read more is taken off, down to 0, so that a
//!    passing mood leaves no debt.
//! 2. The layout whose counter exceeds its price by the most, margin included, is moved to, unless
//!    the last move is too recent.
//! 3. A move sets all counters to 0.
//!
//! Worked example: moving costs 100 bytes, the margin is 0.1. Stretches in which the other layout
//! reads 60, −20 and 80 bytes less leave the counter at 60, 40 and 120; 120 > 110, so move.

/// What a move must be worth, and how soon it may follow another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RegretSettings {
    /// Hysteresis: lost savings must exceed the price by this share of it.
    pub margin: f64,
    /// Stretches that a layout is kept at least.
    pub dwell: u32,
}

/// A layout as one stretch of statements sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// Bytes that the stretch reads under it.
    pub reads: f64,
    /// Bytes that moving to it costs.
    pub price: f64,
}

/// Savings lost since the last move, per layout.
#[derive(Debug, Clone, PartialEq)]
pub struct Regret {
    settings: RegretSettings,
    lost: Vec<f64>,
    stretches: u32,
}

impl Regret {
    /// Starts counting for so many layouts, as if the present one were old.
    #[must_use]
    pub fn new(layouts: usize, settings: RegretSettings) -> Self {
        Self { settings, lost: vec![0.0; layouts], stretches: settings.dwell }
    }

    /// Counts a stretch that read `reads` bytes, and returns the layout to move to, if any. The
    /// layouts stand in the order of [`Regret::new`]; further ones are not looked at.
    pub fn observe(&mut self, reads: f64, layouts: &[Standing]) -> Option<usize> {
        self.stretches = self.stretches.saturating_add(1);
        for (lost, layout) in self.lost.iter_mut().zip(layouts) {
            *lost = (*lost + reads - layout.reads).max(0.0);
        }
        if self.stretches <= self.settings.dwell {
            return None;
        }
        let gain = |index: usize| {
            let price = layouts[index].price * (1.0 + self.settings.margin);
            self.lost[index] - price
        };
        let best = (0..self.lost.len().min(layouts.len()))
            .filter(|&index| self.lost[index] > 0.0 && gain(index) > 0.0)
            .reduce(|best, index| if gain(index) > gain(best) { index } else { best })?;
        self.lost.fill(0.0);
        self.stretches = 0;
        Some(best)
    }

    /// Returns what each layout would have saved since the last move, in bytes.
    #[must_use]
    pub fn lost(&self) -> &[f64] {
        &self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::{Regret, RegretSettings, Standing};

    const PRICE: f64 = 100.0;

    fn regret(margin: f64, dwell: u32) -> Regret {
        Regret::new(1, RegretSettings { margin, dwell })
    }

    /// One stretch that reads 1000 bytes, in which the other layout reads so much less.
    fn observe(regret: &mut Regret, less: f64) -> Option<usize> {
        regret.observe(1000.0, &[Standing { reads: 1000.0 - less, price: PRICE }])
    }

    #[test]
    fn the_worked_example_moves_at_the_third_stretch() {
        let mut regret = regret(0.1, 0);
        let moves: Vec<_> = [60.0, -20.0, 80.0].map(|less| observe(&mut regret, less)).into();
        assert_eq!(moves, [None, None, Some(0)]);
        assert_eq!(regret.lost(), [0.0], "a move forgets");
    }

    #[test]
    fn debts_are_not_carried_along() {
        let mut regret = regret(0.0, 0);
        assert_eq!(observe(&mut regret, -5000.0), None);
        assert_eq!(observe(&mut regret, 101.0), Some(0));
    }

    #[test]
    fn dwell_time_holds_back_the_next_move_only() {
        let mut regret = regret(0.0, 2);
        let moves: Vec<_> = [200.0; 4].map(|less| observe(&mut regret, less)).into();
        assert_eq!(moves, [Some(0), None, None, Some(0)]);
    }

    #[test]
    fn the_layout_that_is_most_above_its_price_is_taken() {
        let mut regret = Regret::new(3, RegretSettings { margin: 0.0, dwell: 0 });
        let standing = |reads, price| Standing { reads, price };
        let layouts = [standing(500.0, 450.0), standing(700.0, 100.0), standing(1000.0, 0.0)];
        assert_eq!(regret.observe(1000.0, &layouts), Some(1));
        assert_eq!(regret.observe(1000.0, &[standing(1000.0, 0.0); 3]), None, "nothing is lost");
    }

    #[test]
    fn never_more_than_twice_the_price_is_lost_to_a_layout_that_stays_better() {
        let mut regret = regret(0.0, 0);
        let mut lost = 0.0;
        for stretch in 0..100 {
            lost += 30.0;
            if observe(&mut regret, 30.0).is_some() {
                assert_eq!(stretch, 3);
                break;
            }
        }
        assert!(lost <= 2.0 * PRICE, "{lost}");
    }
}
